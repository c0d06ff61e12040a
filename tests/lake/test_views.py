"""Views that DuckDB wrote give DuckDB's rows on Spark, or are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import QueryFailed, TableNotFound, UnsupportedFeature
from penstock.lake.lake import Lake
from penstock.lake.snapshot import At
from tests import duck
from tests.lake.view_bodies import LATE, QUERIES, REFUSED, SETUP, VIEWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Answers:
    """A lake with views by DuckDB, and what DuckDB reads from each."""

    def __init__(self, folder: Path) -> None:
        self.uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
        self.views: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {}
        self.queries: dict[str, list[tuple[Any, ...]]] = {}
        con = duck.attach(self.uri, folder / "data")
        for statement in SETUP:
            con.execute(statement)
        for number, body in enumerate((*VIEWS, *REFUSED, *LATE)):
            con.execute(f"CREATE VIEW b{number} AS {body}")
        con.close()  # names of columns are those of the text that is stored
        con = duck.attach(self.uri, folder / "data")
        for number, body in enumerate(VIEWS):
            cursor = con.execute(f"FROM b{number}")
            self.views[body] = ([d[0] for d in cursor.description or ()], cursor.fetchall())
        for query in QUERIES:
            self.queries[query] = con.execute(query).fetchall()
        con.close()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    duck.required()
    return Answers(tmp_path_factory.mktemp("views"))


@pytest.fixture(scope="module")
def lake(answers: Answers, spark: SparkSession) -> Iterator[Lake]:
    with Lake.attach(answers.uri, spark=spark, read_only=True) as found:
        yield found


@pytest.mark.parametrize("number", range(len(VIEWS)), ids=VIEWS)
def test_the_same_rows_and_names(answers: Answers, lake: Lake, number: int) -> None:
    names, rows = answers.views[VIEWS[number]]
    df = lake.table(f"b{number}").to_df()
    assert df.columns == names
    assert canonical(df.collect()) == canonical(rows)


@pytest.mark.parametrize("body", REFUSED)
def test_what_would_not_be_the_same_is_refused(lake: Lake, body: str) -> None:
    number = len(VIEWS) + list(REFUSED).index(body)
    with pytest.raises((UnsupportedFeature, QueryFailed), match=REFUSED[body]):
        lake.sql(f"SELECT * FROM b{number}").collect()


@pytest.mark.parametrize("body", LATE)
def test_what_hangs_on_a_type_is_refused_when_read(lake: Lake, body: str) -> None:
    number = len(VIEWS) + len(REFUSED) + list(LATE).index(body)
    df = lake.sql(f"SELECT * FROM b{number}")
    with pytest.raises(Exception, match=LATE[body]):  # PySpark's own: it is lazy
        df.collect()


@pytest.mark.parametrize("query", QUERIES)
def test_queries_over_views(answers: Answers, lake: Lake, query: str) -> None:
    assert canonical(lake.sql(query).collect()) == canonical(answers.queries[query])


def test_a_view_that_reads_itself(lake: Lake) -> None:
    with pytest.raises(
        QueryFailed, match=r"reads itself: main\.loop_a → main\.loop_b → main\.loop_a"
    ):
        lake.sql("SELECT * FROM loop_a")


def test_views_are_not_there_before_they_were_made(lake: Lake) -> None:
    with pytest.raises(TableNotFound):
        lake.sql("SELECT * FROM plain AT (VERSION => 2)")
    assert "plain" not in [view.name for view in lake.views(at=At(2))]


def canonical(rows: Any) -> list[str]:
    return sorted(repr(_value(tuple(row))) for row in rows)


def _value(value: Any) -> Any:
    """Rows of Spark and dicts of DuckDB as dicts; numbers of any type by value."""
    if hasattr(value, "asDict"):
        return {k: _value(v) for k, v in value.asDict().items()}
    if isinstance(value, dict):
        return {k: _value(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return value
    return float(f"{number:.12g}")
