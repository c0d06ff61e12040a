"""`Table.alter`: changes of a table's definition in transactions of their own; setting options."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from penstock.errors import ArgumentError, NameTaken
from penstock.lake import alter
from penstock.lake.catalog import options as stored
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.format.files import PartitionField
from penstock.lake.format.inlined.text import SYSTEM
from penstock.lake.format.naming import TableRef, fold
from penstock.lake.format.objects import SortKey
from penstock.lake.format.option_values import INLINING_ROW_LIMIT, option_kind, option_text
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.types import from_spark_json
from penstock.lake.snapshot import LATEST, Snapshot
from penstock.lake.staging import TransactionTable

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
