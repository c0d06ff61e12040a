"""What merges and rewrites share: the table as it is, its files written anew, and the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from penstock.errors import CommitUnknown, EnvironmentMissing
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.options import layout_begins
from penstock.lake.format.changes import MergeFiles, NewFile, RewriteFiles
from penstock.lake.format.files import FileSet, Table
from penstock.lake.maintenance.groups import Group
from penstock.lake.maintenance.parquet_settings import ParquetSettings, Resources, settings_of
from penstock.lake.maintenance.scope import (
    Compacted,
    HasCatalog,
    HasSpark,
    base_of,
    each,
    publish,
    tables_meant,
)
from penstock.lake.maintenance.spark_writing import Part, write_on_spark
from penstock.lake.maintenance.writing import Job, remove_staged, write_together
from penstock.lake.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class AsItIs:
    """A table at the snapshot ``base``; ``begins`` are those at which its layout changed."""

    base: Snapshot
    table: Table
    settings: ParquetSettings
    files: FileSet
    begins: Sequence[int]


@dataclass(frozen=True, slots=True)
class Plan:
    """Groups of files that become one file each, by the job that ``job_of`` makes for a group."""

    groups: Sequence[Group]
    job_of: Callable[[Group], Job]
    kind: type[MergeFiles] | type[RewriteFiles]


Planner = Callable[[AsItIs], Plan]


def compact_each(
    lake: HasCatalog,
    meant: tuple[str | None, str | None],
    planner: Planner,
    resources: Resources,
    *,
    dry_run: bool,
) -> list[Compacted]:
    """Each of the tables that are meant (a table, a schema) by its plan, one commit a table.

    A dry run answers that each group would become one file. A table that was dropped meanwhile is
    passed over; one that fails does not keep the others from it.
    """

    def run(table: Table) -> list[Compacted]:
        found = as_it_is(lake.catalog, table, base_of(lake))
        if found is None:
            return []
        plan = planner(found)
        if dry_run:
            name = (found.table.schema_name, found.table.name)
            return [Compacted(*name, len(group), 1) for group in plan.groups]
        return compact(lake, found, plan, resources)

    return each(tables_meant(lake.catalog, *meant, base_of(lake)), run)


def as_it_is(catalog: Catalog, table: Table, base: Snapshot) -> AsItIs | None:
    """The table at the snapshot ``base``; ``None`` where it is dropped by then."""
    now = catalog.current(table, base.id)
    if now is None:
        return None
    files = catalog.files(now, base.id)
    with catalog.reading() as connection:
        begins = layout_begins(connection, now.id)
    return AsItIs(base, now, settings_of(catalog, now, base.id), files, begins)


def compact(lake: HasCatalog, found: AsItIs, plan: Plan, resources: Resources) -> list[Compacted]:
    """Write each group, and commit what came of them as one snapshot, or with the open transaction.

    What others commit meanwhile is no matter unless they deleted rows of the table, compacted or
    dropped it: that is a CommitConflict, which says who did what. Nothing is left behind where the
    commit fails; where nobody can tell whether it did, nothing is touched.
    """
    table = found.table
    done: list[NewFile] = []
    try:
        _write(lake, plan, resources, done)
        if done:
            one = plan.kind(table.id, table.qualified_name, table.path, tuple(done))
            what = f"compaction of {table.qualified_name}"
            publish(lake, found.base, (one,), lambda: remove_staged(done), what)
    except CommitUnknown:
        raise
    except BaseException:
        remove_staged(done)
        raise
    return [
        Compacted(table.schema_name, table.name, len(one.sources), int(one.file is not None))
        for one in done
    ]


def _write(lake: HasCatalog, plan: Plan, resources: Resources, done: list[NewFile]) -> None:
    """Add the new files to ``done``, as they come to be."""
    size = sum(file.size_bytes for group in plan.groups for file in group)
    large = resources.spark_from is not None and size >= resources.spark_from
    if plan.groups and large and isinstance(lake, HasSpark):
        # Without Spark, or executors that have Penstock, this process does it as well, if later.
        with suppress(EnvironmentMissing):
            parts = [Part(one, plan.job_of(one)) for one in plan.groups]
            done += write_on_spark(lake.spark_source(), parts)
            return
    for group in plan.groups:
        done += write_together(group, plan.job_of(group))
