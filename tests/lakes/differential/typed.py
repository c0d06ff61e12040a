"""Rows of both engines in one form, by the types that the table has.

Both hand over Arrow. What Arrow from DuckDB rounds or leaves out (``int128``, the zone of a
``timetz``, variants) is asked of it as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from penstock.lakes.format.naming import quote_identifier
from penstock.lakes.format.schema import Column
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.catalog.conftest import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_INFINITE = (1 << 63) - 1
_AS_TEXT = ("int128", "uint128", "timetz", "time", "json")


Rows = Mapping[tuple[str, int], list[str]]


def differences(place: Place, spark: SparkSession, versions: Sequence[int] = ()) -> list[str]:
    """Where Penstock does not read what DuckDB reads, of all tables at these snapshots or at all.

    The two take turns at the catalog: they would undo each other's locks.
    """
    known = _known(place, versions)
    problems: list[str] = []
    with Lake.attach(place.uri, spark=spark) as lake:
        for (name, version), rows in known.items():
            schema, _, table = name.partition(".")
            columns = lake.catalog.table(schema, table, version).schema.columns
            df = lake.table(name).to_df(version=version)
            mine = spark_rows(df, columns)
            if df.columns != [c.name for c in columns] or mine != rows:
                problems.append(f"{name} at {version}: {shown(mine, rows)}")
    return problems


def shown(mine: list[str], known: list[str]) -> str:
    """The first row that differs, from where it does."""
    pair = next(((a, b) for a, b in zip(mine, known, strict=False) if a != b), None)
    if pair is None:
        return f"{len(mine)} rows instead of {len(known)}"
    at = next(at for at in range(len(pair[0])) if pair[0][: at + 1] != pair[1][: at + 1])
    begin = max(0, at - 60)
    return f"{pair[0][begin : at + 100]} instead of {pair[1][begin : at + 100]}"


def _known(place: Place, versions: Sequence[int]) -> Rows:
    with Lake.attach(place.uri) as lake:
        wanted = versions or [snapshot.id for snapshot in lake.snapshots()]
        tables = [(version, table) for version in wanted for table in lake.tables(version)]
    with duck.attach(place.uri) as connection:
        return {
            (t.qualified_name, version): duck_rows(
                connection, t.schema_name, t.name, version, t.schema.columns
            )
            for version, t in tables
        }


def spark_rows(df: DataFrame, columns: tuple[Column, ...]) -> list[str]:
    from pyspark.sql import functions as fn

    asked = [fn.to_json(df[at]) if c.type == "variant" else df[at] for at, c in enumerate(columns)]
    return _rows(df.select(*asked).toArrow(), columns)


def duck_rows(
    connection: duckdb.DuckDBPyConnection,
    schema: str,
    name: str,
    version: int,
    columns: tuple[Column, ...],
) -> list[str]:
    asked = ", ".join(_asked(column) for column in columns)
    place = f"{quote_identifier(schema)}.{quote_identifier(name)}"
    query = f"SELECT {asked} FROM {place} AT (VERSION => {version})"
    return _rows(connection.execute(query).to_arrow_table(), columns)


def duck_feed(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    first: int,
    last: int,
    columns: tuple[Column, ...],
) -> list[str]:
    """The changes of a table of these snapshots, with these of its columns and of the feed's."""
    asked = ", ".join(_asked(column) for column in columns)
    query = f"SELECT {asked} FROM lk.table_changes('{name}', {first}, {last})"
    return _rows(connection.execute(query).to_arrow_table(), columns)


def _asked(column: Column) -> str:
    name = quote_identifier(column.name)
    if column.type == "variant":
        return f"CAST({name} AS JSON)::VARCHAR"
    return f"{name}::VARCHAR" if base_type(column.type) in _AS_TEXT else name


def _rows(table: pa.Table, columns: tuple[Column, ...]) -> list[str]:
    values = [
        [_value(scalar, column) for scalar in chunk]
        for chunk, column in zip(table.columns, columns, strict=True)
    ]
    return sorted(repr(row) for row in zip(*values, strict=True))


def _value(scalar: pa.Scalar, column: Column) -> Any:
    if not scalar.is_valid:
        return None
    nested = _NESTED.get(column.type)
    if nested is not None:
        return nested(scalar, column)
    convert = _LEAVES.get(base_type(column.type))
    if convert is not None:
        return convert(scalar)
    value = scalar.as_py()
    return f"{value!r}" if isinstance(value, float) else value


def _struct(scalar: pa.Scalar, column: Column) -> Any:
    return {c.name: _value(scalar[at], c) for at, c in enumerate(column.children)}


def _list(scalar: pa.Scalar, column: Column) -> Any:
    return [_value(item, column.children[0]) for item in scalar.values]


def _map(scalar: pa.Scalar, column: Column) -> Any:
    key, value = column.children
    pairs = [(_value(e[0], key), _value(e[1], value)) for e in scalar.values]
    return sorted(pairs, key=repr)


_NESTED: Mapping[str, Callable[[pa.Scalar, Column], Any]] = {
    "struct": _struct,
    "list": _list,
    "map": _map,
}


def _moment(scalar: pa.Scalar) -> str:
    """Infinite ones are the last count of their unit."""
    count = scalar.value
    if abs(count) == _INFINITE:
        return "infinity" if count > 0 else "-infinity"
    return f"{count * _NANOSECONDS[scalar.type.unit]} ns"


def _time(scalar: pa.Scalar) -> Any:
    if pa.types.is_string(scalar.type):
        return scalar.as_py()
    seconds, micros = divmod(scalar.value * _NANOSECONDS[scalar.type.unit] // 1000, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return clock + (f".{micros:06}".rstrip("0") if micros else "")


def _interval(scalar: pa.Scalar) -> tuple[int, int, int]:
    if pa.types.is_struct(scalar.type):
        return (scalar[0].as_py(), scalar[1].as_py(), scalar[2].as_py())
    months, days, nanoseconds = scalar.as_py()
    return (months, days, nanoseconds // 1000)


def _variant(scalar: pa.Scalar) -> Any:
    return json.loads(scalar.as_py())


_MOMENTS = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz")
_LEAVES: Mapping[str, Callable[[pa.Scalar], Any]] = {
    **dict.fromkeys(_MOMENTS, _moment),
    **dict.fromkeys(("uint64", "int128", "uint128"), lambda s: int(s.as_py())),
    "date": lambda s: f"day {s.value}",
    "time": _time,
    "timetz": lambda s: _time(s).removesuffix("+00"),
    "uuid": lambda s: str(s.as_py()),
    "geometry": lambda s: bytes(getattr(s, "value", s).as_py()),
    "interval": _interval,
    "variant": _variant,
}
