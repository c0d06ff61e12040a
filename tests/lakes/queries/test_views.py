"""Views that DuckDB wrote give DuckDB's rows on Spark, or are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import PenstockError, QueryFailed, TableNotFound, UnsupportedFeature
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.answers import Answer, of_duckdb, of_spark
from tests.lakes.view_bodies import QUERIES, REFUSED, SETUP, VIEWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Made:
    """A lake with views by DuckDB, and what DuckDB reads from each, by its text."""

    uri: str
    views: dict[str, Answer]
    queries: dict[str, Answer]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    duck.required()
    folder = tmp_path_factory.mktemp("views")
    uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
    with duck.attach(uri, folder / "data") as con:
        for statement in SETUP:
            con.execute(statement)
        con.execute("BEGIN")
        for body in BODIES:
            con.execute(f"CREATE VIEW {name(body)} AS {body}")
        con.execute("COMMIT")
    # Attached again: names of columns are those of the text that is stored.
    with duck.attach(uri, folder / "data") as con:
        views = {body: of_duckdb(con, f"FROM {name(body)}") for body in VIEWS}
        return Made(uri, views, {query: of_duckdb(con, query) for query in QUERIES})


BODIES = (*VIEWS, *REFUSED)


def name(body: str) -> str:
    return f"b{BODIES.index(body)}"


@pytest.fixture(scope="module")
def lake(made: Made, spark: SparkSession) -> Iterator[Lake]:
    with Lake.attach(made.uri, spark=spark, read_only=True) as attached:
        yield attached


@pytest.fixture(scope="module")
def read(lake: Lake, spark: SparkSession) -> dict[str, Answer | Exception]:
    """All views and queries in one job; the error of one that cannot be read."""
    frames: dict[str, DataFrame] = {}
    answers: dict[str, Answer | Exception] = {}
    for text in (*VIEWS, *QUERIES):
        try:
            frames[text] = lake.sql(text if text in QUERIES else f"SELECT * FROM {name(text)}")
        except PenstockError as error:
            answers[text] = error
    return answers | of_spark(spark, frames)


@pytest.mark.parametrize("body", VIEWS)
def test_the_same_rows_and_names(made: Made, read: dict[str, Any], body: str) -> None:
    assert read[body] == made.views[body]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_over_views(made: Made, read: dict[str, Any], query: str) -> None:
    assert read[query] == made.queries[query]


@pytest.mark.parametrize("body", REFUSED)
def test_what_would_not_be_the_same_is_refused(lake: Lake, body: str) -> None:
    with pytest.raises(UnsupportedFeature, match=REFUSED[body]) as caught:
        lake.sql(f"SELECT * FROM {name(body)}")
    assert f"the view main.{name(body)} cannot be read" in caught.value.message


def test_a_view_that_reads_itself(lake: Lake) -> None:
    with pytest.raises(
        QueryFailed, match=r"reads itself: main\.loop_a → main\.loop_b → main\.loop_a"
    ):
        lake.sql("SELECT * FROM loop_a")


def test_views_are_not_there_before_they_were_made(lake: Lake) -> None:
    with pytest.raises(TableNotFound):
        lake.sql("SELECT * FROM plain AT (VERSION => 2)")
    assert "plain" not in [view.name for view in lake.views(version=2)]
