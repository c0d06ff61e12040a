"""merge_adjacent_files: small files become larger ones; nothing else is to be seen of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.errors import ArgumentError
from penstock.lake.catalog.layout_history import columns_at, layout_begins
from penstock.lake.compaction import MergeFiles
from penstock.lake.files import Table
from penstock.lake.maintenance.compacting import (
    MEMORY,
    compact,
    each,
    memory_checked,
    planned,
)
from penstock.lake.maintenance.groups import Group, Sizes, merge_groups
from penstock.lake.maintenance.parquet_settings import settings_of
from penstock.lake.maintenance.results import Compacted
from penstock.lake.maintenance.scope import HasCatalog, tables_meant
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
    memory: int = MEMORY,
) -> list[Compacted]:
    """Merge files of one partition that were written with the same columns, of all tables or one.

    Time travel, row ids and the feed of changes stay as they are at every snapshot: each row of a
    merged file tells which snapshot made it. Files of at least ``min_file_size`` and below
    ``max_file_size`` bytes (default: the option ``target_file_size``) are taken in their order
    until the target is reached; ``max_compacted_files`` so many new files at most, of each table.
    The old files are scheduled for `cleanup_old_files`. About ``memory`` bytes are held at once.
    A dry run says what would be merged, as far as the catalog tells.

    Raises CommitConflict when rows of a table were deleted or compacted meanwhile.
    """
    _check(max_compacted_files, min_file_size, max_file_size)
    catalog = lake.catalog
    left = memory_checked(memory)

    def run(one: Table) -> list[Compacted]:
        base = catalog.latest()
        one = catalog.table(one.schema_name, one.name, base.id)
        settings = settings_of(catalog, one, base.id)
        sizes = Sizes(settings.target, max_file_size or settings.target, min_file_size or 0)
        files = catalog.files(one, base.id)
        with catalog.reading() as connection:
            begins = layout_begins(connection, one.id)
        groups = merge_groups(files, begins, sizes, max_compacted_files)
        if dry_run:
            return planned(one, groups)
        job = Job(one, one.schema, settings, left, merges=True, mappings=files.mappings)

        def work() -> Iterator[tuple[Group, Job]]:
            for group in groups:
                first = min(file.begin_snapshot or 0 for file in group)
                with catalog.reading() as connection:
                    then = columns_at(connection, catalog.data_path, one.id, first)
                yield group, replace(job, schema=then or one.schema)

        return compact(
            catalog,
            base,
            one,
            work() if groups else (),
            lambda new: MergeFiles(one.id, one.qualified_name, one.path, new),
        )

    return each(tables_meant(catalog, table, schema), run)


def _check(most: int | None, least_size: int | None, most_size: int | None) -> None:
    if most is not None and most < 1:
        raise ArgumentError("max_compacted_files is less than 1", hint="give 1 or more")
    if most_size is not None and most_size < 1:
        raise ArgumentError("max_file_size must be greater than zero", hint="give bytes")
    if least_size is not None and most_size is not None and least_size >= most_size:
        raise ArgumentError(
            f"min_file_size ({least_size}) must be less than max_file_size ({most_size})",
            hint="files between the two are merged",
        )
