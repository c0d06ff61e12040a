"""What analysts write every day has DuckDB's rows on Spark, or is refused with what to write.

Tests ``sql/duckdb/aggregates.py``, ``sql/duckdb/clauses.py``, ``sql/duckdb/forms.py``,
``sql/duckdb/functions.py``, ``sql/duckdb/lists.py``,
``sql/duckdb/results.py``, ``sql/duckdb/strings.py``, ``sql/duckdb/times.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock.errors import UnsupportedFeature
from penstock.sql.duckdb.translate import translate
from tests.lakes.answers import Answer, of_duckdb, of_spark
from tests.sql.duckdb.everyday import (
    AGGREGATES,
    COLUMNS,
    EDGE_FORMS,
    EDGES,
    EXPRESSIONS,
    FORMS,
    REFUSED,
    ROWS,
    WINDOWS,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlglot import exp

SPARKS = {
    "VARCHAR": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMPTZ": "TIMESTAMP",
    "VARCHAR[]": "ARRAY<STRING>", "INTEGER[]": "ARRAY<INT>",
    "MAP(VARCHAR, INTEGER)": "MAP<STRING, INT>",
    "STRUCT(city VARCHAR, zip INTEGER)": "STRUCT<city: STRING, zip: INT>",
}  # fmt: skip
NAMES = [column.split(" ", 1)[0] for column in COLUMNS]
PER_ROW = [each for each in (*EXPRESSIONS, *WINDOWS) if each not in REFUSED]
OF_ALL = [each for each in AGGREGATES if each not in REFUSED]


def _together(expressions: Sequence[str], first: str = "") -> str:
    """One query of them all."""
    items = ", ".join(f"{each} AS c{at}" for at, each in enumerate(expressions))
    return f"SELECT {first}{items} FROM orders"


TAKEN = tuple(form for form in FORMS if form not in REFUSED)
ASKED = {"rows": _together(PER_ROW, "id, "), "all": _together(OF_ALL)} | {
    form: form for form in TAKEN
}
ASKED_OF_EDGES = {"edges": _together(EDGES, "id, ")} | {form: form for form in EDGE_FORMS}


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute(f"CREATE TABLE orders ({', '.join(COLUMNS)})")
    con.execute(f"INSERT INTO orders VALUES {ROWS}")
    return con


@pytest.fixture(scope="module")
def expected(con: duckdb.DuckDBPyConnection) -> dict[str, Answer]:
    return {name: of_duckdb(con, query) for name, query in (ASKED | ASKED_OF_EDGES).items()}


@pytest.fixture(scope="module")
def orders(spark: SparkSession, con: duckdb.DuckDBPyConnection) -> Iterator[SparkSession]:
    kinds = (column.split(" ", 1) for column in COLUMNS)
    schema = ", ".join(f"{name} {SPARKS.get(kind, kind)}" for name, kind in kinds)
    df = spark.createDataFrame(con.table("orders").fetchall(), schema)
    df.coalesce(1).createOrReplaceTempView("orders")
    yield spark
    spark.catalog.dropTempView("orders")


def _read(spark: SparkSession, asked: Mapping[str, str]) -> dict[str, Answer]:
    """Spark's answers, in one job."""
    frames: dict[str, DataFrame] = {
        name: spark.sql(translate(query, columns=_known)) for name, query in asked.items()
    }
    return of_spark(spark, frames)


@pytest.fixture(scope="module")
def read(orders: SparkSession) -> dict[str, Answer]:
    return _read(orders, ASKED)


@pytest.fixture(scope="module")
def read_edges(orders: SparkSession) -> dict[str, Answer]:
    return _read(orders, ASKED_OF_EDGES)


def _known(table: exp.Table) -> list[str] | None:
    return NAMES if table.name == "orders" else None


def _column(answers: dict[str, Answer], name: str, at: int) -> tuple[Any, list[Any]]:
    answer = answers[name]
    return list(answer.kinds.values())[at], [json.loads(row)[at] for row in answer.rows]


@pytest.mark.spark
@pytest.mark.parametrize("expression", PER_ROW)
def test_values(expected: dict[str, Answer], read: dict[str, Answer], expression: str) -> None:
    at = PER_ROW.index(expression) + 1
    assert _column(read, "rows", at) == _column(expected, "rows", at)


@pytest.mark.spark
@pytest.mark.parametrize("expression", OF_ALL)
def test_aggregates(expected: dict[str, Answer], read: dict[str, Answer], expression: str) -> None:
    at = OF_ALL.index(expression)
    assert _column(read, "all", at) == _column(expected, "all", at)


@pytest.mark.spark
@pytest.mark.parametrize("form", TAKEN)
def test_forms(expected: dict[str, Answer], read: dict[str, Answer], form: str) -> None:
    assert read[form] == expected[form]


@pytest.mark.spark
@pytest.mark.parametrize("expression", EDGES)
def test_edges(expected: dict[str, Answer], read_edges: dict[str, Answer], expression: str) -> None:
    at = EDGES.index(expression) + 1
    assert _column(read_edges, "edges", at) == _column(expected, "edges", at)


@pytest.mark.spark
@pytest.mark.parametrize("form", EDGE_FORMS)
def test_more_forms(expected: dict[str, Answer], read_edges: dict[str, Answer], form: str) -> None:
    assert read_edges[form] == expected[form]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_says_what_to_write(text: str) -> None:
    query = text if text in FORMS else f"SELECT {text} AS v FROM orders"
    with pytest.raises(UnsupportedFeature) as caught:
        translate(query)
    assert REFUSED[text] in str(caught.value.hint)


def test_how_many_there_are() -> None:
    assert (len(set(EXPRESSIONS)), len(set(AGGREGATES + WINDOWS)), len(set(FORMS))) == (131, 23, 24)
    assert len([each for each in EXPRESSIONS if each in REFUSED]) <= 6
    assert len([each for each in FORMS if each in REFUSED]) <= 1
