"""Joins that one task may do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import sqlglot

from penstock.engine.inputs.resolve import are_by_equality
from penstock.project.project import Project
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "joins",
    [
        "a JOIN b ON a.k = b.k",
        "a LEFT JOIN b ON (a.k = b.k AND a.n > b.n)",
        "a FULL OUTER JOIN (SELECT * FROM b) AS c ON c.k = a.k",
        "a JOIN b USING (k) RIGHT JOIN c ON lower(c.k) = a.k",
        "(SELECT k, count(*) AS n FROM a GROUP BY k) AS d JOIN b ON d.k = b.k AND b.n IN (1, 2)",
    ],
)
def test_joins_by_equality(joins: str) -> None:
    assert are_by_equality(sqlglot.parse_one(f"SELECT * FROM {joins}", read="spark"))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM a",
        "SELECT * FROM a JOIN b ON a.k < b.k",
        "SELECT * FROM a JOIN b ON a.k = b.k OR a.n = b.n",
        "SELECT * FROM a, b WHERE a.k = b.k",
        "SELECT * FROM a CROSS JOIN b",
        "SELECT * FROM a NATURAL JOIN b",
        "SELECT * FROM a LEFT SEMI JOIN b ON a.k = b.k",
        "SELECT * FROM a ANTI JOIN b ON a.k = b.k",
        "SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON a.n > c.n",
        "SELECT * FROM a JOIN b ON a.k = b.k WHERE a.n IN (SELECT n FROM c)",
        "SELECT * FROM a JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM c WHERE c.n = a.n)",
        "SELECT /*+ MERGE(b) */ * FROM a JOIN b ON a.k = b.k",
        "SELECT * FROM a JOIN range(1000000000) AS r ON r.id = a.k",
        "SELECT * FROM range(1000000000) AS r JOIN a ON r.id = a.k",
        "SELECT explode(a.l), b.k FROM a JOIN b ON a.k = b.k",
        "SELECT * FROM a JOIN b ON a.k = b.k LATERAL VIEW explode(a.l) AS x",
        "WITH RECURSIVE r AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM r) "
        "SELECT * FROM r JOIN a ON a.k = r.k",
    ],
)
def test_other_queries(text: str) -> None:
    assert not are_by_equality(sqlglot.parse_one(text, read="spark"))


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """``a`` is one file, ``b`` two."""
    root = tmp_path_factory.mktemp("joins") / "toy"
    with Project.load(write_project(root, {}), spark=spark) as made:
        a = [(1, "one"), (2, "two"), (None, "none"), (2, "two again")]
        made.lake("main").table("a").append(spark.createDataFrame(a, "k INT, t STRING").coalesce(1))
        for b in ([(2, 20), (3, 30), (None, 0)], [(11, 110)]):
            made.lake("main").table("b").append(
                spark.createDataFrame(b, "k INT, n INT").coalesce(1)
            )
        yield made


BOTH = [("two", 20), ("two again", 20)]
LEFT, RIGHT = [("one", None), ("none", None)], [(None, 30), (None, 0)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("JOIN", BOTH),
        ("LEFT JOIN", BOTH + LEFT),
        ("RIGHT JOIN", BOTH + RIGHT),
        ("FULL JOIN", BOTH + LEFT + RIGHT),
    ],
)
def test_one_task_joins_two_small_tables(
    filled: Project,
    kind: str,
    answer: list[tuple[object, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is read of each is one file, by the condition; there is nothing to send then."""
    small = "(SELECT * FROM b WHERE k IS NULL OR k < 10)"
    df = filled.sql(f"SELECT a.t, b.n FROM a {kind} {small} AS b ON b.k = a.k")
    assert sorted(map(tuple, df.collect()), key=str) == sorted(answer, key=str)
    df.explain()
    assert "Exchange" not in capsys.readouterr().out
    larger = filled.sql(f"SELECT a.t, b.n FROM a {kind} b ON b.k = a.k")
    assert larger.count() == len(answer) + (kind in {"RIGHT JOIN", "FULL JOIN"})
    larger.explain()
    assert "Exchange" in capsys.readouterr().out
