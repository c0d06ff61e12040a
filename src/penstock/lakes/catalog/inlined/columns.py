"""The columns of an inlined table: their types on each database, how values go into them and out.

DuckDB stores a type natively where the catalog's database has one that holds all its values, and as
text otherwise; on PostgreSQL text is stored as bytes, since its text cannot hold NUL (measured with
1.5.5). Versions of DuckDB differ in which types are native, so the stored types are looked up.
Fetched values become one Arrow type for each type of the format, mostly strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column as StoredColumn
from sqlalchemy import ColumnElement, Connection, MetaData, Table, Text, cast, select, text
from sqlalchemy.types import NullType

from penstock.errors import CatalogCorrupt
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.reads import build_schema
from penstock.lakes.format.files import Table as TableInfo
from penstock.lakes.format.naming import fold, quote_identifier
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type, bound_to_text
from penstock.lazy import pa

_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"})
_FLOATS = frozenset({"float32", "float64"})
_BYTES = frozenset({"blob", "geometry"})
_TEXTS = frozenset({"varchar", "json"})


class Schemas:
    """The columns of a table at each version of its schema: two queries."""

    def __init__(self, connection: Connection, table: TableInfo) -> None:
        t = metadata.of(connection)
        v, c = t.schema_versions.c, t.column.c
        versions = select(v.schema_version, v.begin_snapshot).where(v.table_id == table.id)
        self._begins = sorted(tuple(row) for row in connection.execute(versions))
        columns = select(t.column).where(c.table_id == table.id).order_by(c.column_order)
        self._columns = connection.execute(columns).all()
        self._table = table

    def at(self, version: int) -> TableSchema:
        """The columns that the inlined table of this version was made with.

        A table that was made when inlining was off, and first inlined into later, has a version
        of its own that was never counted: its columns are those of the one before.
        """
        begins = [begin for known, begin in self._begins if known <= version]
        if not begins:
            raise CatalogCorrupt(
                f"table {self._table.qualified_name} has inlined rows of schema version {version}, "
                "which is not among its schema versions",
                hint="restore the catalog from a backup",
            )
        return self.in_force(max(begins))

    def in_force(self, snapshot_id: int) -> TableSchema:
        """The columns at a snapshot, as far as the catalog still has them."""
        rows = [
            row
            for row in self._columns
            if row.begin_snapshot <= snapshot_id
            and (row.end_snapshot is None or row.end_snapshot > snapshot_id)
        ]
        return build_schema(rows)


@dataclass(frozen=True, slots=True)
class Picked:
    """A column of a schema version, and how to ask its inlined table for it."""

    column: Column
    value: ColumnElement[Any]


def pick(
    connection: Connection, name: str, known: TableSchema, wanted: TableSchema
) -> tuple[list[Picked], Table]:
    """The columns of ``known`` that ``wanted`` still has, in the inlined table called ``name``.

    One query, for the names and types that the table really has.
    """
    described = connection.execute(select(text("*")).select_from(_bare(name)).limit(0))
    names = list(described.keys())
    codes = [] if described.cursor is None else [c[1] for c in described.cursor.description or ()]
    described.close()
    source = _bare(name, *names)
    exact = {fold(stored_name): stored_name for stored_name in reversed(names)} | {
        stored_name: stored_name for stored_name in names
    }
    ids = {column.id for column in wanted.columns}
    picked = []
    for column in known.columns:
        if column.id in ids:
            stored_name = exact.get(column.name, exact.get(fold(column.name)))
            if stored_name is None:
                raise CatalogCorrupt(
                    f"the inlined table {name} has no column {column.name!r}",
                    hint="restore the catalog from a backup",
                )
            value = source.c[stored_name]
            as_text = _AS_TEXT.get(connection.dialect.name, _never)
            lossy = as_text(column, codes[names.index(stored_name)])
            picked.append(Picked(column, cast(value, Text) if lossy else value))
    return picked, source


def _bare(name: str, *columns: str) -> Table:
    """A table whose columns are fetched without a conversion by SQLAlchemy."""
    return Table(name, MetaData(), *(StoredColumn(each, NullType()) for each in columns))


def _never(column: Column, code: Any) -> bool:  # noqa: ARG001 - of the table's shape
    return False


# bool, bytea, int8, int2, int4, text, float4, float8, varchar: Python has the same values.
_POSTGRES_NATIVE = frozenset({16, 17, 20, 21, 23, 25, 700, 701, 1043})
_AS_TEXT: Mapping[str, Callable[[Column, Any], bool]] = {
    "postgresql": lambda _, code: code not in _POSTGRES_NATIVE,
    "duckdb": lambda column, _: (
        base_type(column.type) not in _INTEGERS | _FLOATS | _BYTES | _TEXTS | {"boolean"}
    ),
}


def settle(connection: Connection) -> None:
    """Have PostgreSQL write intervals and floats in one way, whatever the server's settings."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL intervalstyle = 'postgres'"))
        connection.execute(text("SET LOCAL extra_float_digits = 1"))


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type of a column's fetched values."""
    return getattr(pa, _storage(column)[0])()


def to_arrow(values: Iterable[Any], column: Column, table: str) -> pa.Array:
    """Fetched values as an Arrow array. Raises CatalogCorrupt, naming the column."""
    convert = _storage(column)[1]
    try:
        converted = [None if value is None else convert(value) for value in values]
        return pa.array(converted, arrow_type(column))
    except (TypeError, ValueError, OverflowError, pa.ArrowInvalid) as error:
        raise CatalogCorrupt(
            f"column {column.name!r} of the inlined table {table} has a value that is not a valid "
            f"{column.type}: {error}",
            hint="correct the value in the catalog, or restore it from a backup",
            data={"column": column.name, "type": column.type},
        ) from error


def _storage(column: Column) -> tuple[str, Callable[[Any], Any]]:
    kind = base_type(column.type)
    return next((storage for kinds, storage in _STORAGE if kind in kinds), ("string", _text))


def _text(value: Any) -> str:
    return bytes(value).decode() if isinstance(value, bytes | memoryview) else str(value)


def _boolean(value: Any) -> bool:
    if value not in {0, 1}:
        raise ValueError(f"{value!r}")
    return bool(value)


_STORAGE: Sequence[tuple[frozenset[str], tuple[str, Callable[[Any], Any]]]] = (
    (frozenset({"boolean"}), ("bool_", _boolean)),
    (_INTEGERS, ("int64", int)),
    (_FLOATS, ("float64", float)),
    (_BYTES, ("binary", bytes)),
)
_SQLITE = dict.fromkeys(
    ("boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), "BIGINT"
) | {"blob": "BLOB"}
_POSTGRES = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "INTEGER",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "float32": "REAL",
    "float64": "DOUBLE PRECISION",
    "time": "TIME",
    "timetz": "TIMETZ",
    "uuid": "UUID",
    "interval": "INTERVAL",
    **dict.fromkeys(("varchar", "json", "blob"), "BYTEA"),
}
_DUCKDB = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "int128": "HUGEINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "timetz": "TIME WITH TIME ZONE",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    **{
        name: name.upper()
        for name in (
            *("date", "time", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"),
            *("varchar", "json", "uuid", "blob", "interval"),
        )
    },
}


def storage_type(column: Column, dialect: str) -> str:
    """The type of a column of an inlined table, as this database spells it."""
    return _TYPES[dialect](column)


def _on_sqlite(column: Column) -> str:
    return _SQLITE.get(base_type(column.type), "VARCHAR")


def _on_postgres(column: Column) -> str:
    if base_type(column.type) == "decimal":
        return column.type.lower().replace("decimal", "NUMERIC")
    return _POSTGRES.get(base_type(column.type), "VARCHAR")


def _on_duckdb(column: Column) -> str:
    if column.type == "list":
        return f"{_on_duckdb(column.children[0])}[]"
    if column.type == "map":
        return f"MAP({', '.join(map(_on_duckdb, column.children))})"
    if column.type == "struct":
        fields = (f"{quote_identifier(c.name)} {_on_duckdb(c)}" for c in column.children)
        return f"STRUCT({', '.join(fields)})"
    if base_type(column.type) == "decimal":
        return column.type.upper()
    return _DUCKDB[base_type(column.type)]


_TYPES: Mapping[str, Callable[[Column], str]] = {
    "sqlite": _on_sqlite,
    "postgresql": _on_postgres,
    "duckdb": _on_duckdb,
}


def placeholder(column: Column, dialect: str) -> str:
    """The SQL of a value in an INSERT, with ``?`` for the parameter."""
    return f"CAST(? AS {_on_duckdb(column)})" if dialect == "duckdb" else "?"


def bound(value: Any, column: Column, dialect: str) -> Any:
    """A value as `inlined.text` stores it, for the parameter."""
    if value is None:
        return None
    kind = base_type(column.type)
    if dialect == "sqlite" and kind in {"float32", "float64"}:
        return bound_to_text(column.type, value) or "nan"
    if dialect == "sqlite" and kind == "boolean":
        return int(value)
    if dialect == "postgresql" and kind in {"varchar", "json"}:
        return value.encode()
    return value
