"""Adding existing Parquet files to a table: they are registered where they are, not copied.

It works as ``ducklake_add_data_files`` of DuckDB 1.5.5 (measured). From then on the files belong to
the lake: maintenance removes them when no snapshot needs them any more. Some cases that DuckDB
accepts are refused, because they lead to wrong rows later: a file that the table has already, a
file that is scheduled for deletion, NULLs in NOT NULL columns, a path that contradicts the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from penstock.errors import CommitConflict
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.commits.commit import OnCommit
from penstock.lake.catalog.snapshots import expiry
from penstock.lake.format.changes import ChangeSet, TableChange
from penstock.lake.format.files import DataFile, NameMapping, Table
from penstock.lake.format.naming import TableRef
from penstock.lake.snapshot import Snapshot
from penstock.lake.staging import TransactionTable
from penstock.lake.writing.adding.files import Progress, Reader, expand
from penstock.lake.writing.adding.fit import Rules

STRICT = Rules()


@dataclass(frozen=True, slots=True)
class AddedFile:
    """One file that was added. ``path`` is absolute."""

    path: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Added:
    """The added files and the snapshot that has them; no snapshot when no file had rows."""

    files: tuple[AddedFile, ...]
    snapshot: Snapshot | None

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def add_data_files(
    catalog: Catalog,
    table: str | TableRef,
    paths: str | Sequence[str],
    rules: Rules = STRICT,
    *,
    author: str | None = None,
    message: str | None = None,
    extra: str | None = None,
    progress: Progress | None = None,
) -> Added:
    """Add files, directories or patterns of files to a table, in one commit.

    Columns match by name. ``progress`` is called with the number of footers read, and the total.
    Files without rows are skipped. Raises DataFileMissing, DataFileCorrupt, SchemaMismatch,
    CommitConflict.
    """
    ref = TableRef.parse(table) if isinstance(table, str) else table
    catalog.check_writable()
    base = catalog.latest()
    info = catalog.table(ref.schema, ref.name, base.id)
    files = Reader(info, rules, rules.hive_partitioning).read_all(expand(paths), progress)
    added_files = tuple(AddedFile(file.path, file.record_count, file.size_bytes) for file in files)
    if not files:
        return Added((), None)
    change = TableChange(info.schema_name, info.name, table_id=info.id, add=tuple(files))

    def look(connection: Connection, snapshot_id: int) -> None:
        _check_new(connection, catalog.data_path, info, files, snapshot_id)

    changes = ChangeSet(tables=(change,))
    snapshot = catalog.commit(
        base, changes, author=author, message=message, extra=extra, on_commit=(look,)
    )
    return Added(added_files, snapshot)


def stage_data_files(
    catalog: Catalog, table: TransactionTable, paths: str | Sequence[str], rules: Rules = STRICT
) -> tuple[tuple[AddedFile, ...], OnCommit]:
    """`add_data_files` in a transaction, which may make or alter the table before: the files, and
    what has to run in its commit.
    """
    candidate = table.candidate
    info = _as_staged(table)
    files = Reader(info, rules, rules.hive_partitioning).read_all(expand(paths))
    staged = {file.path for file in candidate.added} & {file.path for file in files}
    if staged:
        raise CommitConflict(
            f"{min(staged)} is added twice in this transaction",
            hint="add it once; its rows would be there twice",
        )
    table.stage(candidate.with_files(_with_mappings(files, candidate.added)))

    def look(connection: Connection, snapshot_id: int) -> None:
        _check_new(connection, catalog.data_path, info, files, snapshot_id)

    return tuple(AddedFile(file.path, file.record_count, file.size_bytes) for file in files), look


def _as_staged(table: TransactionTable) -> Table:
    """The table as the transaction has it so far; id 0 where the transaction makes it."""
    candidate, base, new = table.candidate, table.candidate.base, table.candidate.create
    if new is None and base is not None:
        return replace(base, schema=table.schema, partition_by=candidate.partition_by)
    assert new is not None, "a table that does not exist"
    return Table(
        0,
        new.uuid,
        candidate.schema_name,
        candidate.name,
        new.path,
        table.schema,
        table.context.base.id,
        partition_by=candidate.partition_by,
    )


def _with_mappings(files: Sequence[DataFile], staged: Sequence[DataFile]) -> list[DataFile]:
    """The files with ids of their name mappings, below -1 until a commit assigns them."""
    taken = min((file.mapping_id for file in staged if file.mapping_id is not None), default=-1)
    made: list[NameMapping] = []
    numbered: list[DataFile] = []
    for file in files:
        if file.mapping is None:
            numbered.append(file)
            continue
        plain = replace(file.mapping, id=None)
        own = next((mapping for mapping in made if replace(mapping, id=None) == plain), None)
        if own is None:
            own = replace(file.mapping, id=min(taken, -1) - 1 - len(made))
            made.append(own)
        numbered.append(replace(file, mapping=own, mapping_id=own.id))
    return numbered


def _check_new(
    connection: Connection, data_path: str, table: Table, files: Sequence[DataFile], snapshot: int
) -> None:
    """Check within the commit, so that two writers cannot both add the same file."""
    paths = {file.path for file in files}
    known = expiry.in_force(connection, table, before=snapshot) & paths if table.id else set()
    if known:
        raise CommitConflict(
            f"{len(known)} of these files are in table {table.qualified_name} already, such as "
            f"{min(known)}",
            hint="leave them out; rows of a file that is added twice would be there twice",
            data={"table": table.qualified_name, "paths": sorted(known)[:100]},
        )
    dying = expiry.scheduled(connection, data_path) & paths
    if dying:
        raise CommitConflict(
            f"{len(dying)} of these files are scheduled for deletion, such as {min(dying)}",
            hint="copy them and add the copies: maintenance is about to remove these",
            data={"table": table.qualified_name, "paths": sorted(dying)[:100]},
        )
