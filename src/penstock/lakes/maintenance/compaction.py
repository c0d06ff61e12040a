"""merge_adjacent_files and rewrite_data_files: small files merged, files of deleted rows rewritten.

Nothing else changes that a reader could see. Only files of one partition and of one version of the
table's columns are merged.

Inlined deletes as delete files, together with the delete files that their data files have.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.errors import ArgumentError, CommitUnknown, EnvironmentMissing
from penstock.lakes import storage
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.options import columns_at, layout_begins
from penstock.lakes.format.changes import FlushInlined, MergeFiles, NewFile, RewriteFiles
from penstock.lakes.format.files import DataFile, DeleteFile, FileSet, Table
from penstock.lakes.format.files import write as write_deletes
from penstock.lakes.format.naming import new_uuid7
from penstock.lakes.maintenance.reading import deletes_of
from penstock.lakes.maintenance.scope import (
    Compacted,
    HasCatalog,
    HasSpark,
    base_of,
    each,
    publish,
    tables_meant,
)
from penstock.lakes.maintenance.writing import (
    DEFAULT,
    Group,
    Job,
    ParquetSettings,
    Part,
    Resources,
    remove_staged,
    settings_of,
    write_on_spark,
    write_together,
)
from penstock.lakes.reading.deleted.positions import Whose, combined, load
from penstock.lakes.snapshot import Snapshot
from penstock.lazy import pa, pc


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
    """Compact each of the tables by its plan, with one commit a table.

    A dry run reports that each group would become one file. A table that was dropped meanwhile is
    skipped; the failure of a table does not stop the others.
    """

    def run(table: Table) -> list[Compacted]:
        state = as_it_is(lake.catalog, table, base_of(lake))
        if state is None:
            return []
        plan = planner(state)
        if dry_run:
            name = (state.table.schema_name, state.table.name)
            return [Compacted(*name, len(group), 1) for group in plan.groups]
        return compact(lake, state, plan, resources)

    return each(tables_meant(lake.catalog, *meant, base_of(lake)), run)


def as_it_is(catalog: Catalog, table: Table, base: Snapshot) -> AsItIs | None:
    """The table at the snapshot ``base``; ``None`` where it was dropped before."""
    now = catalog.current(table, base.id)
    if now is None:
        return None
    files = catalog.files(now, base.id)
    with catalog.reading() as connection:
        begins = layout_begins(connection, now.id)
    return AsItIs(base, now, settings_of(catalog, now, base.id), files, begins)


def compact(lake: HasCatalog, state: AsItIs, plan: Plan, resources: Resources) -> list[Compacted]:
    """Write each group, and commit the files as one snapshot, or with the open transaction.

    Commits of others meanwhile are harmless unless they deleted rows of the table, compacted or
    dropped it: then it raises a CommitConflict that says who did what. A failed commit leaves no
    files behind; where its outcome is unknown, no file is removed.
    """
    table = state.table
    done: list[NewFile] = []
    folding = Folding(table, state.base.id, [])

    def discard() -> None:
        remove_staged(done)
        for directory in folding.directories:
            storage.remove_directory(directory)

    try:
        _write(lake, plan, resources, done)
        if done:
            compaction = plan.kind(table.id, table.qualified_name, table.path, tuple(done))
            if isinstance(compaction, RewriteFiles):
                folded = fold_rewritten(folding, state.files, done)
                compaction = replace(compaction, folded=folded)
            what = f"compaction of {table.qualified_name}"
            publish(lake, state.base, (compaction,), discard, what)
    except CommitUnknown:
        raise
    except BaseException:
        discard()
        raise
    return [
        Compacted(
            table.schema_name, table.name, len(new_file.sources), int(new_file.file is not None)
        )
        for new_file in done
    ]


def _write(lake: HasCatalog, plan: Plan, resources: Resources, done: list[NewFile]) -> None:
    """Write the groups and append the new files to ``done``."""
    size = sum(file.size_bytes for group in plan.groups for file in group)
    large = resources.spark_from is not None and size >= resources.spark_from
    if plan.groups and large and isinstance(lake, HasSpark):
        # Without Spark, or without Penstock on its executors, this process writes the files, later.
        with suppress(EnvironmentMissing):
            parts = [Part(group, plan.job_of(group)) for group in plan.groups]
            done += write_on_spark(lake.spark_source(), parts)
            return
    for group in plan.groups:
        done += write_together(group, plan.job_of(group))


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
    """Merge small files: ``lake.merge_adjacent_files("orders")``, or those of all tables.

    Files of one partition are merged that were written with the same columns.
    Time travel, row ids and the change feed stay the same at every snapshot: merged files have a
    column with the snapshot that made each row. Files of at least ``min_file_size`` and below
    ``max_file_size`` bytes (default: the option ``target_file_size``) are merged in their order
    until the target is reached, into at most ``max_compacted_files`` new files for each table. The
    old files are scheduled for `cleanup_old_files`. A dry run reports what would be merged, as far
    as the catalog alone can show.

    Raises CommitConflict when rows of a table were deleted or compacted meanwhile.
    """
    wanted = _Wanted(max_compacted_files, min_file_size, max_file_size)
    catalog = lake.catalog
    return compact_each(
        *(
            lake,
            (table, schema),
            lambda state: _merge_plan(catalog, state, wanted, resources.memory),
        ),
        resources,
        dry_run=dry_run,
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The largest number of new files a table, and the sizes in bytes of files to merge."""

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


def _merge_plan(catalog: Catalog, state: AsItIs, wanted: _Wanted, memory: int) -> Plan:
    target = state.settings.target
    sizes = Sizes(target, wanted.below or target, wanted.least or 0)
    table, files = state.table, state.files

    def job(group: Group) -> Job:
        """Merge with the columns that the table had when the group's files were written."""
        first = min(file.begin_snapshot or 0 for file in group)
        with catalog.reading() as connection:
            then = columns_at(connection, catalog.data_path, table.id, first)
        columns = then or table.schema
        return Job(*(table, columns, state.settings, memory), merges=True, mappings=files.mappings)

    return Plan(merge_groups(files, state.begins, sizes, wanted.at_most), job, MergeFiles)


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
    """Rewrite files: ``lake.rewrite_data_files("orders", delete_threshold=0.5)``, or of all tables.

    Those with at least a share of deleted rows are rewritten without these.
    ``delete_threshold`` is 0 to 1, by default the option ``rewrite_delete_threshold`` or 0.95. Rows
    keep their ids. Older snapshots still read the old files, which are removed when those expire.
    (DuckDB 1.5.5's change feed shows rows that were only rewritten as updates to the same values.)

    Raises CommitConflict when rows of a table were deleted or compacted meanwhile.
    """
    if delete_threshold is not None and not 0 <= delete_threshold <= 1:
        raise ArgumentError(
            f"delete_threshold is {delete_threshold}", hint="give a number between 0 and 1"
        )
    catalog = lake.catalog

    def plan(state: AsItIs) -> Plan:
        share = _threshold(catalog, state.table, delete_threshold)
        return _rewrite_plan(state, share, resources.memory)

    return compact_each(lake, (table, schema), plan, resources, dry_run=dry_run)


def _threshold(catalog: Catalog, table: Table, requested: float | None) -> float:
    if requested is not None:
        return requested
    option = catalog.option("rewrite_delete_threshold", table)
    return float(option) if option else _THRESHOLD


def _rewrite_plan(state: AsItIs, share: float, memory: int) -> Plan:
    table, files = state.table, state.files

    def job(group: Group) -> Job:
        return Job(
            *(table, table.schema, state.settings, memory),
            merges=False,
            mappings=files.mappings,
            deletes=deletes_of(group, files, Whose(table.qualified_name, state.base.id)),
        )

    groups = rewrite_groups(files, state.begins, share, state.settings.target)
    return Plan(groups, job, RewriteFiles)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes in bytes: files from ``least`` to below ``most`` are merged up to ``target``."""

    target: int
    most: int
    least: int = 0


def merge_groups(
    files: FileSet, begins: Sequence[int], sizes: Sizes, at_most: int | None = None
) -> list[Group]:
    """Groups of at least two files, each to become one file; not more than ``at_most`` groups.

    ``begins`` are the snapshots at which the table's columns or layout changed, ascending. As
    DuckDB 1.5.5 does, files are taken in their order until the target is reached, and files with
    deleted rows are left to a rewrite.
    """
    deleted_inline = inlined_deletes(files)
    wanted = (
        file
        for file in files.files
        if not file.deletes
        and file.id not in deleted_inline
        and sizes.least <= file.size_bytes < sizes.most
        and is_whole(file, files)
    )
    groups = (
        group
        for alike in by_layout(wanted, begins)
        for group in _near(alike, sizes.target)
        if len(group) > 1
    )
    return [group for _, group in zip(range(at_most), groups)] if at_most else list(groups)  # noqa: B905 - the range ends it


def rewrite_groups(
    files: FileSet, begins: Sequence[int], threshold: float, target: int
) -> list[Group]:
    """Groups of files whose share of deleted rows is at least ``threshold``."""
    gone = inlined_deletes(files)
    counts: dict[int | None, int] = defaultdict(int)
    for file in files.files:
        counts[file.id] = sum(delete.delete_count for delete in file.deletes)
    if files.inlined_deletes is not None:
        for file_id in files.inlined_deletes.rows["file_id"].to_pylist():
            counts[file_id] += 1
    wanted = (
        file
        for file in files.files
        if (file.deletes or file.id in gone)
        and counts[file.id] >= threshold * file.record_count
        and is_whole(file, files)
    )
    return [group for alike in by_layout(wanted, begins) for group in _near(alike, target)]


def inlined_deletes(files: FileSet) -> Collection[int]:
    """The ids of files with inlined deletes."""
    if files.inlined_deletes is None:
        return frozenset()
    return frozenset(files.inlined_deletes.rows["file_id"].to_pylist())


def is_whole(file: DataFile, files: FileSet) -> bool:
    """Return whether the file has all columns and the snapshot of each row is known."""
    mapping = files.mappings.get(file.mapping_id) if file.mapping_id is not None else None
    in_path = mapping is not None and bool(mapping.partitions)
    return not in_path and not (file.partial is not None and file.partial.counts)


def by_layout(files: Iterable[DataFile], begins: Sequence[int]) -> Iterator[list[DataFile]]:
    """Files of one partition and one version of the columns, in the order of their rows."""
    by_key: dict[object, list[DataFile]] = defaultdict(list)
    for file in files:
        version = bisect_right(begins, file.begin_snapshot or 0)
        by_key[version, file.partition_id, file.partition_values].append(file)
    for alike in by_key.values():
        yield sorted(alike, key=lambda file: (file.begin_snapshot or 0, file.id or 0))


def _near(files: Sequence[DataFile], target: int) -> Iterator[Group]:
    held: list[DataFile] = []
    size = 0
    for file in files:
        held.append(file)
        size += file.size_bytes
        if size >= target:
            yield tuple(held)
            held, size = [], 0
    if held:
        yield tuple(held)


@dataclass(frozen=True, slots=True)
class Folding:
    """One table, read at a snapshot; ``directories`` are those that it has written."""

    table: Table
    snapshot_id: int
    directories: list[str]

    def fold(self, flush: FlushInlined, rows: pa.Table, files: Sequence[DataFile]) -> FlushInlined:
        """The flush with delete files of ``rows``, inlined deletes of some of ``files``."""
        by_id = {file.id: file for file in files if file.id is not None}
        hit = [by_id[id_] for id_ in rows["file_id"].unique().to_pylist()]
        before = [file for file in hit if file.delete is not None]
        gone = load(before, Whose(self.table.qualified_name, self.snapshot_id))
        earlier = {positions.file.id: positions for positions in gone}
        deletes: dict[int, DeleteFile] = {}
        for file in hit:
            mine = rows.filter(pc.equal(rows["file_id"], file.id))
            positions, since = [combined(mine["position"])], [combined(mine["snapshot"])]
            if file.id in earlier:
                positions.append(earlier[file.id].positions)
                since.append(earlier[file.id].since)
            assert file.id is not None, "it is in the catalog"
            deletes[file.id] = self.delete_file(
                file.path, pa.concat_arrays(positions), pa.concat_arrays(since)
            )
        replaced = frozenset(f.delete.id for f in before if f.delete and f.delete.id is not None)
        return replace(flush, deletes=deletes, deleted=rows.num_rows, replaces=replaced)

    def delete_file(self, path: str, positions: pa.Array, since: pa.Array) -> DeleteFile:
        """A staged delete file with the snapshot that deleted each row."""
        directory = f"{self.table.path}{new_uuid7()}"
        self.directories.append(directory)
        name = f"{directory}/deletes.parquet"
        storage.make_parent(name)
        ordered = pa.table([positions, since], ["pos", "since"]).sort_by("pos")
        return replace(
            write_deletes(name, path, ordered["pos"], ordered["since"]),
            begin_snapshot=pc.min(since).as_py(),
            partial_max=pc.max(since).as_py(),
        )


def fold_rewritten(folding: Folding, files: FileSet, new: Iterable[NewFile]) -> FlushInlined | None:
    """The inlined deletes of the files that ``new`` ones are made of, if they have any."""
    if files.inlined_deletes is None:
        return None
    sources = pa.array([id_ for new_file in new for id_ in new_file.sources], pa.int64())
    rows = files.inlined_deletes.rows
    rows = rows.filter(pc.is_in(rows["file_id"], value_set=sources))
    if not rows.num_rows:
        return None
    table = folding.table
    flush = FlushInlined(table.id, table.qualified_name, table.path, folding.snapshot_id)
    return folding.fold(flush, rows, files.files)
