"""Which files scripts and queries of a project are given, and that they have the same rows.

Which files Spark is given shows in `DataFrame.inputFiles`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import ModelError, NotFound
from penstock.project.project import Project
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCRIPTS = {
    "models/daily": """
        -- pipeline
        -- partitioned daily
        -- materialize ducklake://main/daily
        -- $least (bigint) = 0
        ATTACH 'ducklake://main' AS dl;
        CREATE TEMP VIEW own AS SELECT * FROM dl.t WHERE day = DATE '{partition}';
        SELECT own.id, u.name FROM own LEFT JOIN dl.u ON u.id = own.id AND u.id >= $least
    """,
    "models/foreign": """
        -- pipeline
        -- partitioned daily
        -- dialect duckdb
        -- materialize ducklake://main/elsewhere
        ATTACH 'ducklake://main' AS dl;
        FROM dl.t SELECT id WHERE day::DATE = '2026-01-02'::DATE AND dl.t.day = '{partition}'
    """,
}


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    root: Path = write_project(tmp_path_factory.mktemp("choosing") / "toy", SCRIPTS)
    with Project.load(root, spark=spark) as project:
        lake = project.lake("main")
        for day in (1, 2, 3):
            rows = [(10 * day, date(2026, 1, day)), (10 * day + 1, date(2026, 1, day))]
            df = spark.createDataFrame(rows, "id BIGINT, day DATE").coalesce(1)
            lake.table("t").append(df)
        for pair in ([(10, "ten"), (20, "twenty")], [(21, "more"), (31, None)]):
            lake.table("u").append(
                spark.createDataFrame(pair, "id BIGINT, name STRING").coalesce(1)
            )
        yield project


@pytest.mark.parametrize(
    ("query", "count", "answer"),
    [
        ("SELECT id FROM t WHERE id = 21", 1, [(21,)]),
        ("SELECT x.id FROM dl.main.t x WHERE day IN (DATE '2026-01-01', :day)", 2, None),
        ("SELECT id FROM t AT (VERSION => 2) WHERE day >= '2026-01-02'", 1, [(20,), (21,)]),
        ("SELECT id FROM t WHERE id < 12 UNION SELECT id FROM main.t WHERE id > 30", 2, None),
        ("SELECT id FROM t WHERE id < 12 UNION SELECT id FROM t", 3, None),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE u.id > 20)", 4, [(21,), (31,)]),
        ("SELECT count(*) FROM t LEFT JOIN u ON t.id = u.id WHERE u.id IS NULL", 5, [(2,)]),
        ("FROM t WHERE t.day = DATE '2026-01-03' AND id > 3", 1, None),
    ],
)
def test_queries(
    filled: Project, query: str, count: int, answer: list[tuple[object, ...]] | None
) -> None:
    args = {"day": date(2026, 1, 2)} if ":day" in query else None
    df = filled.sql(query.replace("dl.", ""), args)
    assert len(df.inputFiles()) == count
    if answer is not None:
        assert sorted(tuple(row) for row in df.collect()) == answer


def test_a_model_reads_the_files_of_its_slice(filled: Project) -> None:
    df = filled.preview("daily", "2026-01-01")
    assert len(df.inputFiles()) == 1 + 2
    assert sorted(map(tuple, df.collect())) == [(10, "ten"), (11, None)]
    df = filled.preview("daily", "2026-01-03", args={"least": 21})
    assert len(df.inputFiles()) == 1 + 1
    assert sorted(map(tuple, df.collect())) == [(30, None), (31, None)]


def test_another_dialect(filled: Project) -> None:
    df = filled.preview("foreign", "2026-01-02")
    assert len(df.inputFiles()) == 1
    assert sorted(map(tuple, df.collect())) == [(20,), (21,)]


def test_explain(filled: Project, tmp_path: Path) -> None:
    csv = tmp_path / "a.csv"
    csv.write_text("id\n1\n")
    query = f"SELECT t.id FROM t JOIN read_csv('{csv}') c ON t.id = c.id AND t.id < :n"
    table, file = filled.explain(query, {"n": 12}).tables
    assert (table.name, table.kind, table.files, table.of_files) == ("main.t", "table", 1, 3)
    assert (table.used, file.kind) == (("t.id < :n",), "file")
    (old,) = filled.explain("SELECT * FROM t AT (VERSION => 1)").tables
    assert (old.snapshot, old.files, old.of_files) == (1, 1, 1)
    (twice,) = filled.explain("SELECT * FROM t WHERE id < 12 UNION FROM t WHERE id > 30").tables
    assert (twice.files, twice.used) == (2, ("(id < 12) OR (id > 30)",))


def test_explain_of_what_is_wrong(filled: Project) -> None:
    with pytest.raises(NotFound) as caught:
        filled.explain("SELECT *\nFROM nobody")
    assert str(caught.value.location) == "query:2:6"
    with pytest.raises(ModelError):
        filled.explain("DROP TABLE t")
