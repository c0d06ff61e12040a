"""rewrite_data_files: files with many deleted rows are written anew without those."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ArgumentError
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.layout_history import layout_begins
from penstock.lake.compaction import RewriteFiles
from penstock.lake.delete_positions import Whose, load
from penstock.lake.files import DataFile, FileSet, Table
from penstock.lake.maintenance.compacting import (
    MEMORY,
    compact,
    each,
    memory_checked,
    planned,
)
from penstock.lake.maintenance.groups import rewrite_groups
from penstock.lake.maintenance.parquet_settings import settings_of
from penstock.lake.maintenance.results import Compacted
from penstock.lake.maintenance.scope import HasCatalog, tables_meant
from penstock.lake.maintenance.writing import Job

_THRESHOLD = 0.95  # the format's default


def rewrite_data_files(
    lake: HasCatalog,
    table: str | None = None,
    *,
    schema: str | None = None,
    delete_threshold: float | None = None,
    dry_run: bool = False,
    memory: int = MEMORY,
) -> list[Compacted]:
    """Rewrite the files of all tables or one of which a share of rows or more is deleted.

    ``delete_threshold`` is 0 to 1; the option ``rewrite_delete_threshold`` else, or 0.95. Rows
    keep their ids. Older snapshots go on reading the old files, which go when those expire. (The
    feed of DuckDB 1.5.5 shows rows that were only rewritten as updates to what they were.)

    Raises CommitConflict when rows of a table were deleted or compacted meanwhile.
    """
    if delete_threshold is not None and not 0 <= delete_threshold <= 1:
        raise ArgumentError(
            f"delete_threshold is {delete_threshold}", hint="give a number between 0 and 1"
        )
    catalog = lake.catalog
    left = memory_checked(memory)

    def run(one: Table) -> list[Compacted]:
        base = catalog.latest()
        one = catalog.table(one.schema_name, one.name, base.id)
        settings = settings_of(catalog, one, base.id)
        files = catalog.files(one, base.id)
        with catalog.reading() as connection:
            begins = layout_begins(connection, one.id)
        share = _threshold(catalog, one, delete_threshold)
        groups = rewrite_groups(files, begins, share, settings.target)
        if dry_run:
            return planned(one, groups)
        work = (
            (
                group,
                Job(
                    *(one, one.schema, settings, left),
                    merges=False,
                    mappings=files.mappings,
                    deleted=_deleted(group, files, one, base.id),
                ),
            )
            for group in groups
        )
        return compact(
            *(catalog, base, one, work),
            lambda new: RewriteFiles(one.id, one.qualified_name, one.path, new),
        )

    return each(tables_meant(catalog, table, schema), run)


def _threshold(catalog: Catalog, table: Table, given: float | None) -> float:
    if given is not None:
        return given
    told = catalog.option("rewrite_delete_threshold", table)
    return float(told) if told else _THRESHOLD


def _deleted(
    group: Sequence[DataFile], files: FileSet, table: Table, snapshot_id: int
) -> dict[int, pa.Int64Array]:
    """The positions deleted from these files, by delete files and by the catalog itself."""
    found: dict[int, list[pa.Array]] = defaultdict(list)
    singly = [replace(file, delete=one, more_deletes=()) for file in group for one in file.deletes]
    for gone in load(singly, Whose(table.qualified_name, snapshot_id)):
        found[gone.file.id or 0].append(gone.positions)
    if files.inlined_deletes is not None:
        rows = files.inlined_deletes.rows
        for file_id in {file.id for file in group} & set(rows["file_id"].to_pylist()):
            here = rows.filter(pc.equal(rows["file_id"], file_id))["position"]
            found[file_id or 0].extend(here.chunks)
    return {key: pa.concat_arrays(arrays) for key, arrays in found.items()}
