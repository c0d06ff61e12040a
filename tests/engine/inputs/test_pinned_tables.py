"""The tables of a step, each in one state and read once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.inputs.pinned_tables import Pins, candidate_of
from penstock.errors import QueryFailed
from penstock.lakes.lake import Lake
from penstock.model.values.asset import TableName
from penstock.project.project import Project
from penstock.sql.text import Compare, Constant, Predicate
from tests.engine.conftest import Make
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


pytestmark = pytest.mark.spark

T = TableName("main", "main", "t")


def number(value: int) -> Predicate:
    """Files that may hold this number; said by a query in these words."""
    condition = Compare(("id",), "=", Constant("integer", value))
    return Predicate(condition, used=(f"x.id = {value}",))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/data/", spark=spark) as lake:
        lake.table("main.t").append(spark.range(1, 2))
        lake.table("main.t").append(spark.range(2, 3))
        yield lake


def test_what_is_asked_alike_is_read_once(lake: Lake, spark: SparkSession) -> None:
    pins = Pins({"main": lake}, {"main": lake.catalog.latest().id})
    first = pins.read(T, number(1))
    lake.table("main.t").append(spark.range(3, 4))
    again = Predicate(number(1).condition, used=("id = 1",))
    assert pins.read(T, again) is first
    assert [len(pins.read(T, number(n)).df.inputFiles()) for n in (1, 2, 3)] == [1, 1, 0]
    assert sorted(row.id for row in pins.read(T).df.collect()) == [1, 2]


def test_a_candidate_is_read_as_it_is_then(lake: Lake, spark: SparkSession) -> None:
    pins = Pins({"main": lake}, {"main": lake.catalog.latest().id})
    with lake.transaction() as tx:
        table = tx.table("main.t")
        shown = pins.showing(T, candidate_of(table))
        assert shown.read(T).df.count() == pins.read(T).df.count() == 2
        table.append(spark.range(9, 10))
        assert shown.read(T).df.count() == 3
        assert pins.read(T).df.count() == 2
        tx.rollback()


def test_a_step_of_another_lake_runs_beside_those_of_main(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = '\n[lakes.{0}]\ncatalog = "sqlite:{0}.sqlite"\ndata_path = "{0}"\n'
    scripts = {
        "models/here": "MODEL (name here, kind FULL);\nSELECT 1 AS a",
        "models/there": "MODEL (name other.main.there, kind FULL);\nSELECT 2 AS a",
        "models/both": "MODEL (name other.main.both, kind FULL);\n"
        "SELECT a FROM here UNION ALL SELECT a FROM other.main.there",
    }
    root = write_project(tmp_path / "p", scripts, lake.format("main") + lake.format("other"))
    with Project.load(root, spark=spark) as project:
        assert {each.state for each in project.run().steps} == {"done"}
        assert rows(project, "SELECT a FROM other.main.both ORDER BY a") == [(1,), (2,)]


OWN = "-- materialize ducklake://main/t{}\n"
SOURCE = "VALUES (1, DATE '2026-01-01'), (2, DATE '2026-01-02') AS v(id, day)"


def test_a_counter_counts_from_its_first_run(make: Make) -> None:
    text = OWN.format(" append") + "SELECT coalesce(max(n), 0) + 1 AS n FROM t"
    project = make({"models/t": text})
    assert project.preview("t").collect() == [(1,)]
    for _ in range(3):
        assert project.run().state == "done"
    assert rows(project, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]
    assert project.preview("t").collect() == [(4,)]
    assert project.run(select=["t"], full_refresh=True).state == "done"
    assert rows(project, "SELECT n FROM t") == [(1,)]


@pytest.mark.parametrize(
    ("header", "query"),
    [
        ("", f"SELECT * FROM {SOURCE} WHERE id > (SELECT coalesce(max(id), 0) FROM t)"),
        ("", f"SELECT v.* FROM {SOURCE} LEFT ANTI JOIN t USING (id)"),
        ("", f"SELECT id, day FROM t UNION SELECT * FROM {SOURCE}"),
        ("", f"SELECT * FROM t UNION SELECT id, day FROM {SOURCE}"),
        ("", f"WITH old AS (FROM t) SELECT coalesce(v.id, o.id) AS id, v.day FROM {SOURCE}"
             " FULL JOIN old o ON o.id = v.id"),
        ("-- column id INTEGER\n-- column day DATE\n", f"TABLE t UNION SELECT * FROM {SOURCE}"),
    ],
)  # fmt: skip
def test_its_columns_are_those_of_the_query(make: Make, header: str, query: str) -> None:
    df = make({"models/t": OWN.format("") + header + query}).preview("t")
    assert df.dtypes == [("id", "int"), ("day", "date")]


def test_its_partition_is_a_column(make: Make) -> None:
    text = OWN.format("") + (
        "-- partitioned dynamic key=$.p\n"
        "SELECT count(*) AS n, '{partition}' AS p FROM t WHERE _wm_partition <> '{partition}'"
    )
    project = make({"models/t": text})
    for value in ("a", "b"):
        assert project.run(partition=value).state == "done"
    assert rows(project, "SELECT p, n FROM t ORDER BY p") == [("a", 0), ("b", 1)]


@pytest.mark.parametrize(
    ("header", "query", "message", "hint"),
    [
        ("", "SELECT * FROM t", "the type of its columns", "-- column name BIGINT"),
        ("", "SELECT max(n) AS n FROM t", "the type of n is not known", "-- column name BIGINT"),
        ("", "SELECT coalesce(max(n), 0.5) + 1.5 AS n FROM t", "the type of n", "-- column"),
        ("", f"SELECT * FROM t UNION SELECT * FROM {SOURCE}", "number of columns", "-- column"),
        ("-- column m INT\n", "SELECT 1 AS n FROM t", "declared, and the query", "it makes n"),
        ("-- column n DATE\n", "SELECT 1 AS n, max(n) FROM t", "makes it int", "or cast"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_asked_for(
    make: Make, header: str, query: str, message: str, hint: str
) -> None:
    with pytest.raises(QueryFailed) as raised:
        make({"models/t": OWN.format("") + header + query}).preview("t")
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    assert raised.value.location is not None
