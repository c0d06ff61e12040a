"""rewrite_data_files: files with many deleted rows are written anew without those."""

from __future__ import annotations

from penstock.errors import ArgumentError
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.format.changes import RewriteFiles
from penstock.lake.format.files import Table
from penstock.lake.maintenance.compacting import AsItIs, Plan, compact_each
from penstock.lake.maintenance.groups import Group, rewrite_groups
from penstock.lake.maintenance.parquet_settings import DEFAULT, Resources
from penstock.lake.maintenance.reading import deletes_of
from penstock.lake.maintenance.scope import Compacted, HasCatalog
from penstock.lake.maintenance.writing import Job
from penstock.lake.reading.deleted.positions import Whose

_THRESHOLD = 0.95  # the format's default


def rewrite_data_files(
    lake: HasCatalog,
    table: str | None = None,
    *,
    schema: str | None = None,
    delete_threshold: float | None = None,
    dry_run: bool = False,
    resources: Resources = DEFAULT,
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

    def plan(found: AsItIs) -> Plan:
        share = _threshold(catalog, found.table, delete_threshold)
        return _plan(found, share, resources.memory)

    return compact_each(lake, (table, schema), plan, resources, dry_run=dry_run)


def _threshold(catalog: Catalog, table: Table, given: float | None) -> float:
    if given is not None:
        return given
    told = catalog.option("rewrite_delete_threshold", table)
    return float(told) if told else _THRESHOLD


def _plan(found: AsItIs, share: float, memory: int) -> Plan:
    table, files = found.table, found.files

    def job(group: Group) -> Job:
        return Job(
            *(table, table.schema, found.settings, memory),
            merges=False,
            mappings=files.mappings,
            deletes=deletes_of(group, files, Whose(table.qualified_name, found.base.id)),
        )

    groups = rewrite_groups(files, found.begins, share, found.settings.target)
    return Plan(groups, job, RewriteFiles)
