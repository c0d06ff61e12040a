"""Methods of tables and lakes: files that are added, changes of definitions, options.

Adding existing Parquet files to a table: they are registered where they are, not copied.

It works as ``ducklake_add_data_files`` of DuckDB 1.5.5 (measured). From then on the files belong to
the lake: maintenance removes them when no snapshot needs them any more. Some cases that DuckDB
accepts are refused, because they lead to wrong rows later: a file that the table has already, a
file that is scheduled for deletion, NULLs in NOT NULL columns, a path that contradicts the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from penstock.errors import ArgumentError, CommitConflict, NameTaken
from penstock.lakes import alter
from penstock.lakes.catalog import options as stored
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.commits.commit import OnCommit
from penstock.lakes.catalog.snapshots import expiry
from penstock.lakes.format.changes import ChangeSet, TableChange
from penstock.lakes.format.files import DataFile, NameMapping, PartitionField, Table
from penstock.lakes.format.inlined.text import SYSTEM
from penstock.lakes.format.naming import TableRef, fold
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.option_values import INLINING_ROW_LIMIT, option_kind, option_text
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.types import from_spark_json
from penstock.lakes.snapshot import LATEST, Snapshot
from penstock.lakes.staging import TransactionTable
from penstock.lakes.writing.adding.files import Progress, Reader, expand
from penstock.lakes.writing.adding.fit import Rules

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


Stage = Callable[[TransactionTable], None]
Path = str | Sequence[str]
_SHORT = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}
_TRANSFORM = re.compile(r"(?i)(year|month|day|hour)\((.+)\)")
_BUCKET = re.compile(r"(?i)bucket\(\s*(\d+)\s*,\s*(.+?)\s*\)")


@dataclass(frozen=True, slots=True)
class Altering:
    """Changes of one table's definition. Each makes a snapshot, or ``None`` if nothing changed.

    A column is named as ``a`` or ``struct.field``, with ``element``, ``key`` and ``value`` for what
    lists and maps hold; by a sequence of names where one has a dot in it. A type is Spark's name of
    it (``int``, ``decimal(10,2)``), or a `Column` for what is nested or is not Spark's.
    """

    alone: Callable[[Stage], Snapshot | None]

    def add_column(
        self,
        column: Path,
        type: str | Column,  # noqa: A002 - what everybody calls it
        *,
        default: str | None = None,
        if_not_exists: bool = False,
    ) -> Snapshot | None:
        """Add a column at the end; existing rows get ``default``, DuckDB's text of a value."""
        *into, name = _path(column)
        new = replace(_column(name, type), default=default)
        return self._alter(
            lambda schema: alter.add_column(schema, into, new, if_not_exists=if_not_exists)
        )

    def drop_column(self, column: Path, *, if_exists: bool = False) -> Snapshot | None:
        """Drop a column; older snapshots still have it."""
        path = _path(column)
        return self._alter(lambda schema: alter.drop_column(schema, path, if_exists=if_exists))

    def rename_column(self, column: Path, name: str) -> Snapshot | None:
        return self._alter(lambda schema: alter.rename_column(schema, _path(column), name))

    def set_type(self, column: Path, type: str | Column) -> Snapshot | None:  # noqa: A002
        """Change a column to a wider type that loses nothing."""
        path = _path(column)
        return self._alter(lambda schema: alter.set_type(schema, path, _column(path[-1], type)))

    def set_default(self, column: Path, default: str | None) -> Snapshot | None:
        """Set the value that later inserts use where none is given; ``None`` for NULL."""
        return self._alter(lambda schema: alter.set_default(schema, _path(column), default))

    def set_not_null(self, column: Path) -> Snapshot | None:
        """Set NOT NULL. Raises SchemaMismatch where the column has NULLs."""
        return self._alter(lambda schema: alter.set_nullable(schema, _path(column), False))

    def drop_not_null(self, column: Path) -> Snapshot | None:
        return self._alter(lambda schema: alter.set_nullable(schema, _path(column), True))

    def partition_by(self, *fields: str | PartitionField) -> Snapshot | None:
        """Partition later writes by ``a``, ``month(b)``, ``bucket(8, c)``; without keys by none."""
        keys = [_field(field) if isinstance(field, str) else field for field in fields]
        return self.alone(lambda table: table.set_partitioning(keys))

    def sort_by(self, *keys: str | SortKey) -> Snapshot | None:
        """Sort later writes and compactions by these keys; without keys not at all."""
        sort_keys = [SortKey(key) if isinstance(key, str) else key for key in keys]
        return self.alone(lambda table: table.set_sorting(sort_keys))

    def comment(self, text: str | None, column: str | None = None) -> Snapshot | None:
        """Comment on the table or on a column; ``None`` removes the comment."""
        return self.alone(lambda table: table.comment(text, column))

    def rename(self, name: str) -> Snapshot | None:
        """Rename the table within its schema. Raises NameTaken."""
        return self.alone(lambda table: table.rename(name))

    def drop(self) -> Snapshot | None:
        """Drop the table; older snapshots still have it."""
        return self.alone(lambda table: table.drop())

    def _alter(self, change: Callable[[TableSchema], TableSchema]) -> Snapshot | None:
        return self.alone(lambda table: table.alter(change(table.schema)))


def _path(column: Path) -> tuple[str, ...]:
    return tuple(column.split(".")) if isinstance(column, str) else tuple(column)


def _column(name: str, type_: str | Column) -> Column:
    if isinstance(type_, Column):
        return replace(type_, name=name)
    return from_spark_json(_SHORT.get(type_.lower(), type_.lower()), name)


def _field(text: str) -> PartitionField:
    bucket, transform = _BUCKET.fullmatch(text), _TRANSFORM.fullmatch(text)
    if bucket is not None:
        return PartitionField(bucket[2], f"bucket({bucket[1]})")
    if transform is not None:
        return PartitionField(transform[2].strip(), transform[1].lower())
    if "(" in text:
        raise ArgumentError(
            f"{text} is not a partition transform",
            hint="there are year, month, day and hour of a column, and bucket(N, column)",
        )
    return PartitionField(text)


def set_option(
    catalog: Catalog,
    key: str,
    value: object,
    *,
    schema: str | None = None,
    table: str | None = None,
) -> None:
    """Set an option for the lake, for a schema, or for a table (``name`` or ``schema.name``).

    ``None`` removes it, so that the next wider scope counts again. It is written at once, without a
    snapshot. Raises ArgumentError for an unknown option or an invalid value, SchemaNotFound and
    TableNotFound, and NameTaken where rows would be inlined of a table that has a column with the
    name of a system column of inlined rows (DuckDB refuses that, too).
    """
    write = option_writer(catalog, key, value, schema=schema, table=table)
    with catalog.writing() as connection:
        write(connection)


def option_writer(
    catalog: Catalog,
    key: str,
    value: object,
    *,
    schema: str | None = None,
    table: str | None = None,
) -> Callable[[Connection], None]:
    """Check an option, and return the function that writes it. Raises as `set_option`."""
    name, text = (option_kind(key).name, None) if value is None else option_text(key, value)
    if table is not None and schema is None:
        ref = TableRef.parse(table)
        schema, table = ref.schema, ref.name
    if name == INLINING_ROW_LIMIT and text not in {None, "0"}:
        _refuse_reserved(catalog, schema, table)
    with catalog.reading() as connection:
        scope = stored.find_scope(connection, schema, table)
    return lambda connection: stored.write_option(connection, scope, name, text)


def _refuse_reserved(catalog: Catalog, schema: str | None, table: str | None) -> None:
    for info in catalog.tables(catalog.snapshot(LATEST).id):
        if (schema is not None and fold(info.schema_name) != fold(schema)) or (
            table is not None and fold(info.name) != fold(table)
        ):
            continue
        for column in info.schema.names:
            if fold(column) in SYSTEM:
                raise NameTaken(
                    f"rows of {info.qualified_name} cannot be inlined: its column {column!r} is "
                    "called like one that inlined rows have of their own",
                    hint="rename or drop the column before, or set the option for other tables",
                    data={"table": info.qualified_name, "column": column},
                )
