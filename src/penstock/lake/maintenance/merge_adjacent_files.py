"""merge_adjacent_files: small files become larger ones; nothing else is to be seen of it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ArgumentError
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.options import columns_at
from penstock.lake.format.changes import MergeFiles
from penstock.lake.maintenance.compacting import AsItIs, Plan, compact_each
from penstock.lake.maintenance.groups import Group, Sizes, merge_groups
from penstock.lake.maintenance.parquet_settings import DEFAULT, Resources
from penstock.lake.maintenance.scope import Compacted, HasCatalog
from penstock.lake.maintenance.writing import Job


def merge_adjacent_files(
    lake: HasCatalog,
    table: str | None = None,
    *,
    schema: str | None = None,
    max_compacted_files: int | None = None,
    min_file_size: int | None = None,
    max_file_size: int | None = None,
    dry_run: bool = False,
    resources: Resources = DEFAULT,
) -> list[Compacted]:
    """Merge files of one partition that were written with the same columns, of all tables or one.

    Time travel, row ids and the feed of changes stay as they are at every snapshot: each row of a
    merged file tells which snapshot made it. Files of at least ``min_file_size`` and below
    ``max_file_size`` bytes (default: the option ``target_file_size``) are taken in their order
    until the target is reached; ``max_compacted_files`` so many new files at most, of each table.
    The old files are scheduled for `cleanup_old_files`. A dry run says what would be merged, as far
    as the catalog tells.

    Raises CommitConflict when rows of a table were deleted or compacted meanwhile.
    """
    wanted = _Wanted(max_compacted_files, min_file_size, max_file_size)
    catalog = lake.catalog
    return compact_each(
        *(lake, (table, schema), lambda found: _plan(catalog, found, wanted, resources.memory)),
        resources,
        dry_run=dry_run,
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """At most so many new files a table, from files of these sizes in bytes."""

    at_most: int | None
    least: int | None
    below: int | None

    def __post_init__(self) -> None:
        if self.at_most is not None and self.at_most < 1:
            raise ArgumentError("max_compacted_files is less than 1", hint="give 1 or more")
        if self.below is not None and self.below < 1:
            raise ArgumentError("max_file_size must be greater than zero", hint="give bytes")
        if self.least is not None and self.below is not None and self.least >= self.below:
            raise ArgumentError(
                f"min_file_size ({self.least}) must be less than max_file_size ({self.below})",
                hint="files between the two are merged",
            )


def _plan(catalog: Catalog, found: AsItIs, wanted: _Wanted, memory: int) -> Plan:
    target = found.settings.target
    sizes = Sizes(target, wanted.below or target, wanted.least or 0)
    table, files = found.table, found.files

    def job(group: Group) -> Job:
        """With the columns that the table had when the group's files were written."""
        first = min(file.begin_snapshot or 0 for file in group)
        with catalog.reading() as connection:
            then = columns_at(connection, catalog.data_path, table.id, first)
        columns = then or table.schema
        return Job(*(table, columns, found.settings, memory), merges=True, mappings=files.mappings)

    return Plan(merge_groups(files, found.begins, sizes, wanted.at_most), job, MergeFiles)
