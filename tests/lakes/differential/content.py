"""What a table holds, in a form in which Spark's answer and DuckDB's can be held side by side.

Both engines hand over Arrow, so that no value passes through a Python type that cannot hold it:
dates before year 1, times that are no ``datetime``. A row becomes the text of its values, and a
table its column names and its sorted rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.lakes.format.naming import quote_identifier
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.catalog.conftest import Place

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


@dataclass(frozen=True)
class Content:
    """``rows`` are texts of tuples, sorted: a set of rows, each as often as it occurs."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]


Tables = Mapping[str, Content]  # by "schema.table"


def content(table: pa.Table) -> Content:
    return Content(tuple(table.column_names), tuple(sorted(repr(row) for row in _rows(table))))


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [[_plain(scalar) for scalar in column] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def expected(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Content:
    """The content of plain Python rows; numbers, text, booleans and None only."""
    return Content(tuple(columns), tuple(sorted(repr(tuple(row)) for row in rows)))


def of_spark(df: DataFrame) -> Content:
    return content(df.toArrow())


def of_duck(connection: duckdb.DuckDBPyConnection, query: str) -> Content:
    return content(connection.execute(query).to_arrow_table())


def ours(lake: Lake) -> dict[int, Tables]:
    """Every table at every snapshot as Penstock reads it."""
    by_version: dict[int, Tables] = {}
    for snapshot in lake.snapshots():
        tables = lake.tables(snapshot.id)
        names = [(f"{t.schema_name}.{t.name}", _quoted(t.schema_name, t.name)) for t in tables]
        by_version[snapshot.id] = {
            shown: of_spark(lake.table(name).to_df(version=snapshot.id)) for shown, name in names
        }
    return by_version


def theirs(place: Place) -> dict[int, Tables]:
    """Every table at every snapshot as DuckDB reads it."""
    with duck.attach(place.uri) as connection:
        ids = connection.execute("SELECT snapshot_id FROM lk.snapshots() ORDER BY 1").fetchall()
        return {
            version: {
                f"{schema}.{name}": of_duck(
                    connection, f"SELECT * FROM {_quoted(schema, name)} AT (VERSION => {version})"
                )
                for schema, name in _tables(connection, version)
            }
            for (version,) in ids
        }


def assert_same(lake: Lake, place: Place) -> dict[int, Tables]:
    """Both read the same of every table at every snapshot; what that is."""
    mine, known = ours(lake), theirs(place)
    assert mine == known
    return mine


def _tables(connection: duckdb.DuckDBPyConnection, version: int) -> list[tuple[str, str]]:
    meta = "__ducklake_metadata_lk"
    schema = f"SELECT schema_name FROM {meta}.ducklake_schema s WHERE s.schema_id = t.schema_id"
    in_force = f"begin_snapshot <= {version} AND coalesce(end_snapshot > {version}, true)"
    query = (
        f"SELECT ({schema} AND {in_force}), t.table_name FROM {meta}.ducklake_table t "
        f"WHERE t.begin_snapshot <= {version} AND coalesce(t.end_snapshot > {version}, true)"
    )
    return connection.execute(query).fetchall()


def _quoted(schema: str, name: str) -> str:
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


def assert_feed(place: Place, name: str, first: int, last: int, schema: str = "main") -> None:
    """DuckDB's ``table_changes`` over ``first`` to ``last`` lead from each snapshot to the next.

    Rows count with their row ids. ``first`` is where the table has rows first, and its columns
    stay the same.
    """
    with duck.attach(place.uri) as connection:
        table = _quoted(schema, name)
        states = [
            Counter(
                of_duck(connection, f"SELECT rowid, * FROM {table} AT (VERSION => {version})").rows
            )
            for version in range(first, last + 1)
        ]
        changes = _changes(connection, schema, name, first, last)
    before: Counter[str] = Counter()
    for version, after in zip(range(first, last + 1), states, strict=True):
        gone, come = changes.get(version, (Counter(), Counter()))
        # An update to the values that a row had is one too, and no difference.
        assert gone - come == before - after, f"deletions of snapshot {version}"
        assert come - gone == after - before, f"insertions of snapshot {version}"
        before = after


def _changes(
    connection: duckdb.DuckDBPyConnection, schema: str, name: str, first: int, last: int
) -> dict[int, tuple[Counter[str], Counter[str]]]:
    """Rows that went and that came, with their row ids, by snapshot.

    All are read and then told apart: a filter on ``snapshot_id`` makes DuckDB 1.5.5 lose deletes
    from its own lakes too, where a delete file holds those of several snapshots.
    """
    by_version: dict[int, tuple[Counter[str], Counter[str]]] = {}
    # Read whole: with a condition on the snapshot, DuckDB 1.5.5 gives it deletes of later ones too.
    query = f"SELECT * FROM ducklake_table_changes('lk', ?, ?, {first}, {last})"
    changes = connection.execute(query, [schema, name]).to_arrow_table()
    for version, row_id, kind, *values in _rows(changes):
        pair = by_version.setdefault(version, (Counter(), Counter()))
        pair[_KINDS_OF_CHANGE[kind]][repr((row_id, *values))] += 1
    return by_version


_KINDS_OF_CHANGE = {"delete": 0, "update_preimage": 0, "insert": 1, "update_postimage": 1}


def row_ids(
    place: Place, table: str, key: str, version: int, only: Iterable[Any] | None = None
) -> dict[Any, int]:
    """DuckDB's row ids by the value of a column, of all rows or ``only`` those of some values."""
    rows = duck.rows(place.uri, f"SELECT {key}, rowid FROM {table} AT (VERSION => {version})")
    wanted = {value for value, _ in rows} if only is None else set(only)
    ids = [(value, row_id) for value, row_id in rows if value in wanted]
    assert len(dict(ids)) == len(ids), "keys come once"
    return dict(ids)


def _plain(scalar: pa.Scalar) -> Any:
    if not scalar.is_valid:
        return None
    for test, convert in _KINDS:
        if test(scalar.type):
            return convert(scalar)
    return scalar.as_py()


def _moment(scalar: pa.Scalar) -> str:
    zone = "" if scalar.type.tz is None else " UTC"
    return f"{scalar.value * _NANOSECONDS[scalar.type.unit]} ns{zone}"


def _decimal(scalar: pa.Scalar) -> Decimal | int:
    """A ``uint64`` is a decimal to Spark and an integer to DuckDB."""
    value = scalar.as_py()
    return int(value) if scalar.type.scale == 0 else value


_Kind = tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]]
_KINDS: tuple[_Kind, ...] = (
    (pa.types.is_timestamp, _moment),
    (pa.types.is_date, lambda scalar: f"day {scalar.value}"),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_struct, lambda s: {key: _plain(value) for key, value in s.items()}),
    (
        pa.types.is_map,
        lambda s: sorted((repr(_plain(e["key"])), _plain(e["value"])) for e in s.values),
    ),
    (
        lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind),
        lambda s: [_plain(item) for item in s.values],
    ),
)
