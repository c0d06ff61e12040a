"""Macros and table functions of a lake in models, custom tests and queries, as in `Lake.sql`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import ModelError, PenstockError, QueryFailed
from penstock.project.project import Project
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MADE = """-- pipeline
-- materialize ducklake://main/made
-- data_test tests/no_ten
SELECT twice(c.id) AS id, main.twice(1) AS two, c.change_type, s.snapshots, b.n
FROM table_changes('main.orders', 2, (3)) c
CROSS JOIN (SELECT count(*) AS snapshots FROM snapshots() WHERE snapshot_id < 4) s
CROSS JOIN above(1) b
"""


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Iterator[Project]:
    scripts = {"models/made": MADE, "tests/no_ten": "SELECT * FROM tens()"}
    with Project.load(write_project(tmp_path / "p", scripts), spark=spark) as found:
        lake = found.lake("main")
        lake.sql("CREATE TABLE orders (id INT)")
        lake.sql("INSERT INTO orders VALUES (1), (2)")
        lake.sql("DELETE FROM orders WHERE id = 1")
        lake.sql("CREATE MACRO twice(x) AS x * 2")
        lake.sql("CREATE MACRO above(y) AS TABLE SELECT count(*) AS n FROM orders WHERE id > y")
        yield found


def test_in_a_model(project: Project) -> None:
    project.lake("main").sql("CREATE TABLE made (id INT)")
    project.lake("main").sql("CREATE MACRO tens() AS TABLE SELECT * FROM made WHERE id = 10")
    (step,) = project.run().steps
    assert step.error is None
    rows = project.sql(
        "SELECT id, two, change_type, snapshots, n FROM made ORDER BY 1, 3"
    ).collect()
    assert [tuple(row) for row in rows] == [
        (2, 2, "delete", 4, 1),
        (2, 2, "insert", 4, 1),
        (4, 2, "insert", 4, 1),
    ]


def test_a_custom_test_sees_what_is_to_be_published(project: Project) -> None:
    project.lake("main").sql("CREATE TABLE made (id INT)")
    project.lake("main").sql("CREATE MACRO tens() AS TABLE SELECT * FROM made WHERE id = 4")
    (step,) = project.run().steps
    assert step.state == "failed"
    assert "no_ten" in str(step.error)


def test_in_queries(project: Project) -> None:
    texts = [
        "SELECT twice(21) AS a",
        "SELECT main.twice(21) AS a",
        "SELECT n + 41 AS a FROM above(1)",
        "SELECT count(*) + 40 AS a FROM dl.table_insertions('orders', 2, 3)",
        "SELECT id + 40 AS a FROM main.main.table_changes('orders', 3, 3) AS c JOIN (SELECT 1)",
        "SELECT count(*) + 41 AS a FROM ducklake_list_files('main', 'main.orders')",
    ]
    attach = "ATTACH 'ducklake://main' AS dl; "
    answers = [project.sql(attach + text).collect()[0].a for text in texts]
    assert answers == [42, 42, 42, 42, 41, 41]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT * FROM other.snapshots()", QueryFailed, "other is not this lake"),
        ("SELECT * FROM other.main.snapshots()", ModelError, "lake `other` does not exist"),
        ("SELECT * FROM ducklake_snapshots('other')", ModelError, "lake `other` does not exist"),
        ("SELECT other.twice(1)", QueryFailed, "other"),
        ("SELECT * FROM table_changes('none', 1, 2)", PenstockError, "none"),
        ("SELECT * FROM table_changes(id, 1, 2)", ModelError, "constant"),
    ],
)
def test_refused(project: Project, text: str, error: type[PenstockError], message: str) -> None:
    with pytest.raises(error, match=message):
        project.sql(text)


IN_DUCKDB = """-- pipeline
-- dialect duckdb
-- materialize ducklake://main/duck
-- data_test tests/no_hundred
ATTACH 'ducklake://main' AS dl;
SELECT id, twice(id) // 2 AS same, dl.main.twice(len([1, 2])) AS four, b.n
FROM orders, above(1) b
"""


def test_in_duckdbs_dialect(project: Project, spark: SparkSession) -> None:
    lake = project.lake("main")
    lake.sql("CREATE TABLE duck (id INT)")
    lake.sql("CREATE MACRO size(x) AS x * 100")  # what len becomes in Spark's SQL
    lake.sql("CREATE MACRO hundred() AS TABLE SELECT * FROM duck WHERE id = 100")
    root = project.settings.root
    check = "-- dialect duckdb\nSELECT * FROM hundred() WHERE [id][1] > 0"
    write_project(root, {"models/duck": IN_DUCKDB, "tests/no_hundred": check})
    with Project.load(root, spark=spark) as again:
        assert again.run(select="duck").steps[0].error is None
        texts = ["SELECT * FROM duck", "SELECT id, same, size(n) // 25, n FROM duck"]
        rows = [again.sql(text, dialect="duckdb").collect() for text in texts]
        rows.append(lake.sql(texts[0] + " WHERE len([id]) = 1", dialect="duckdb").collect())
        assert [[tuple(row) for row in answer] for answer in rows] == [[(2, 2, 4, 1)]] * 3
        with pytest.raises(ModelError) as caught:
            again.sql("SELECT\n  twice(1, 2)", dialect="duckdb")
        assert "query:2:3: error: the arguments do not fit the macro main.twice" in str(
            caught.value
        )
