"""No file that holds a row which satisfies a condition is left out, whatever the data.

DuckDB says which rows satisfy it: NaN is above everything and equal to itself there as in Spark.
``PENSTOCK_TEST_EXAMPLES=2000`` tries that many for each catalog instead of a few.

Tests ``lakes/catalog/statistics/exclusion.py``.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database import metadata as t
from tests.lakes.catalog import pruned

# Few values, close together, so that bounds and constants meet.
_WORDS = ["", "a", "ab", "b", "B", "é", "z" * 15, "z" * 16, "z" * 17, "𐍈", "\uffff", "10", "9"]
_FLOATS = [0.0, -0.0, 0.1, 0.2, 1.0, 1.5, -1e30, 1e30, math.nan, math.inf, -math.inf]
_DAYS = [dt.date(1, 1, 1), dt.date(999, 1, 1), *(dt.date(2020, m, 28) for m in (1, 2, 3))]
_TIMES = [
    *(
        dt.datetime.fromisoformat(f"2020-01-01 00:00:00.{us}")
        for us in ("000", "001", "510", "500")
    ),
    *(dt.datetime.fromisoformat(f"{y}-02-28 23:00") for y in ("0001", "2019", "2020", "2021")),
]
_INTS = [-(2**63), -11, -9, 0, 1, 9, 10, 11, 2**53, 2**53 + 1, 2**63 - 1]

VALUES: dict[str, Sequence[Any]] = {
    "int64": _INTS,
    "int8": [-10, -9, 0, 5, 9, 10, 100],
    "float64": _FLOATS,
    "float32": [pow(2.0, -3), 0.0, 1.5, 2.0**24, math.nan, math.inf],
    "decimal(18,3)": [Decimal(x) for x in ("0.001", "9", "10", "-9.5", "123456789012345.678")],
    "varchar": _WORDS,
    "date": _DAYS,
    "timestamp": _TIMES,
    "boolean": [True, False],
}
_DUCK = {"int64": "BIGINT", "int8": "TINYINT", "float64": "DOUBLE", "float32": "FLOAT"}
_OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM"]


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, float):
        return f"{value!r}" if "e" in repr(value) else f"{Decimal(value):f}"
    return f"'{value}'" if isinstance(value, dt.date) else str(value)


def constants(kind: str) -> st.SearchStrategy[str]:
    finite = [v for v in VALUES[kind] if not isinstance(v, float) or math.isfinite(v)]
    finite = [v for v in finite if v != -(2**63)]
    return st.sampled_from(finite).map(literal)


@st.composite
def conditions(draw: st.DrawFn, kinds: dict[str, str], depth: int = 2) -> str:
    choice = draw(st.sampled_from(["leaf", "leaf", "and", "or", "not"] if depth else ["leaf"]))
    if choice == "not":
        return f"NOT ({draw(conditions(kinds, depth - 1))})"
    if choice != "leaf":
        sides = [draw(conditions(kinds, depth - 1)) for _ in range(2)]
        return f"({sides[0]} {choice} {sides[1]})"
    column = draw(st.sampled_from(sorted(kinds)))
    a, b = (draw(constants(kinds[column])) for _ in range(2))
    operator = draw(st.sampled_from(_OPERATORS))
    forms = [f"{column} {operator} {a}", f"{a} {operator} {column}"] * 2
    forms += [f"{column} IN ({a}, {b})", f"{column} BETWEEN {a} AND {b}"]
    forms += [f"{column} NOT IN ({a}, {b})", f"{column} IS NULL", f"{column} IS NOT NULL"]
    if kinds[column] == "varchar":
        forms += [f"{column} LIKE '{a[1:-1]}%'", f"{column} NOT LIKE '{a[1:-1]}%'"]
    return draw(st.sampled_from(forms))


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, str], list[list[list[Any]]], str]:
    kinds = {"a": draw(st.sampled_from(sorted(VALUES))), "b": draw(st.sampled_from(sorted(VALUES)))}
    row = st.tuples(*(st.none() | st.sampled_from(VALUES[kind]) for kind in kinds.values()))
    files = draw(st.lists(st.lists(row.map(list), min_size=1, max_size=3), min_size=1, max_size=4))
    return kinds, files, draw(conditions(kinds))


def matching(
    duck: duckdb.DuckDBPyConnection, kinds: dict[str, str], files: Any, where: str
) -> set[int]:
    """The numbers of the files that hold a row which satisfies the condition."""
    columns = ", ".join(f"{name} {_DUCK.get(kind, kind)}" for name, kind in kinds.items())
    duck.execute(f"CREATE OR REPLACE TABLE t (file INTEGER, {columns})")
    rows = [(number, *row) for number, file in enumerate(files) for row in file]
    duck.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    return {row[0] for row in duck.execute(f"SELECT DISTINCT file FROM t WHERE {where}").fetchall()}


@pytest.fixture
def catalog(lake: Catalog) -> Iterator[Connection]:
    with lake.writing() as connection:
        yield connection


@settings(
    max_examples=int(os.environ.get("PENSTOCK_TEST_EXAMPLES") or 50),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(case=cases(), partitioned=st.sampled_from(["", "identity", "bucket(3)", "year", "month"]))
def check(catalog: Connection, duck: Any, case: Any, partitioned: str) -> None:
    kinds, files, where = case
    table = pruned.table_of(kinds)
    pruned.clear(catalog)
    files = pruned.split(table, files, partitioned)
    pruned.fill(catalog, table, files)
    _partition(catalog, table, files, partitioned)
    spark = where.replace("IS NOT DISTINCT FROM", "<=>")
    chosen = set(pruned.chosen(catalog, table, spark))
    assert matching(duck, kinds, files, where) <= chosen


def _partition(catalog: Connection, table: Any, files: Any, transform: str) -> None:
    column = table.schema.columns[0]
    if transform and pruned.can(column, transform):
        values = [pruned.partition_value(column, transform, file[0][0]) for file in files]
        pruned.partition(catalog, column, transform, values)
        catalog.execute(t.file_column_stats.delete())  # only the partition decides


def test_never(catalog: Connection) -> None:
    with closing(duckdb.connect(config={"threads": 1})) as duck:
        check(catalog, duck)
