"""The Python API: what a project answers, and when it needs Spark.

Tests ``engine/session/connections.py`` (lakes and sessions, opened when first needed), and
``project/reader.py``, ``project/querying.py`` and ``project/checking.py``.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import Project
from penstock.errors import ArgumentError, ConfigError, ModelError, NotFound, QueryFailed
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPTS = {
    "models/raw": """
        -- pipeline
        -- partitioned daily
        -- materialize ducklake://main/raw
        -- data_test unique id
        -- $n (int) = 2
        SELECT id, '{partition}' AS day FROM range($n)
    """,
    "models/marts/total": """
        -- pipeline
        -- materialize ducklake://main/total
        ATTACH 'ducklake://main' AS dl;
        SELECT day, count(*) AS n FROM dl.raw GROUP BY day
    """,
}
DAY = "2026-01-01"


def test_a_statement_on_another_lake_names_it(tmp_path: Path) -> None:
    config = '[lakes.main]\ncatalog = "sqlite:m"\ndata_path = "d"\n[delta.sales]\nroot = "delta"\n'
    write_project(tmp_path, {}, config)
    statement = "UPDATE sales.shop.e SET v = 1"
    with Project.load(tmp_path) as project:
        with pytest.raises(QueryFailed, match="names a catalog 'sales'") as caught:
            project.sql(statement)
        assert "penstock sql --lake sales" in (caught.value.hint or "")
        with pytest.raises(NotFound):  # there it is read, and has no such table
            project.sql(statement, lake="sales")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "toy", SCRIPTS)


def test_without_a_run_everything_is_missing(root: Path) -> None:
    with Project.load(root) as project:
        assert [(status.model, status.state) for status in project.status()] == [
            ("marts/total", "missing"),
            ("raw", "missing"),
        ]
        assert project.snapshots() == ()
        detail = project.show("raw")
    assert (detail.columns, detail.runs, detail.tests) == ((), (), ("unique id",))
    assert detail.query == "SELECT id, '{partition}' AS day FROM range($n)"
    assert not (root / "lake").exists()


def test_models_are_found_by_name_or_table(root: Path) -> None:
    project = Project.load(root)
    assert project.model("main.total").name == "marts/total"
    with pytest.raises(ArgumentError, match="did you mean 'marts/total'"):
        project.model("mart/total")
    with pytest.raises(ArgumentError, match="did you mean 'main'"):
        project.snapshots("mian")


def test_mistakes_in_scripts_and_settings_are_input_errors(root: Path, tmp_path: Path) -> None:
    (root / "models" / "bad.sql").write_text("-- pipeline\n-- materialize ducklake://main/x\n")
    with pytest.raises(ModelError):
        Project.load(root)
    with pytest.raises(ConfigError):
        Project.load(tmp_path)


def test_questions_load_neither_spark_nor_rich(root: Path) -> None:
    code = (
        "import sys; from penstock import Project; p = Project.load(sys.argv[1]); p.check();"
        "p.status(); p.show('raw'); p.snapshots(); p.plan('2026-01-01');"
        "print([m for m in ('pyspark', 'py4j', 'rich') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, root], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.spark
def test_a_run_and_what_is_known_afterwards(root: Path, spark: SparkSession) -> None:
    with Project.load(root, spark=spark) as project:
        result = project.run(partition=DAY)
        assert (result.state, result.exit_code, result.partition) == ("done", 0, DAY)
        assert [(step.name, step.slice, step.rows, step.snapshot_id) for step in result.steps] == [
            ("raw", DAY, 2, 1),
            ("marts/total", None, 1, 2),
        ]
        (raw,) = project.status("raw")
        assert (raw.state, raw.rows, raw.partitioned) == ("materialized", 2, "daily")
        assert (raw.slices[0].slice, raw.slices[0].tests) == (DAY, 1)
        names = [(column.name, column.type) for column in project.show("raw").columns]
        assert names == [("id", "int64"), ("day", "varchar"), ("_wm_partition", "varchar")]
        newest = project.snapshots("main", limit=1)[0]
        assert (newest.id, newest.author, newest.message) == (2, "penstock", "marts/total")


@pytest.mark.spark
def test_a_changed_definition_is_stale(root: Path, spark: SparkSession) -> None:
    with Project.load(root, spark=spark) as project:
        project.run(partition=DAY)
    script = root / "models" / "raw.sql"
    script.write_text(script.read_text().replace("SELECT id", "SELECT id + 1 AS id"))
    with Project.load(root) as project:
        assert [status.state for status in project.status()] == ["materialized", "stale"]


@pytest.mark.spark
def test_preview_writes_nothing(root: Path, spark: SparkSession) -> None:
    with Project.load(root, spark=spark) as project:
        df = project.preview("raw", DAY, limit=1, args={"n": 5})
        assert [tuple(row) for row in df.collect()] == [(0, DAY)]
        assert project.status("raw")[0].state == "missing"


@pytest.mark.spark
def test_sql_reads_any_snapshot_and_binds(root: Path, spark: SparkSession) -> None:
    with Project.load(root, spark=spark) as project:
        project.run(partition=DAY)
        project.run(partition="2026-01-02")
        assert rows(project, "SELECT count(*) FROM raw") == [(4,)]
        assert rows(project, "SELECT count(*) FROM main.raw AT (VERSION => 1)") == [(2,)]
        bound = project.sql("SELECT count(*) FROM raw WHERE day = :d", {"d": "x' OR '1'='1"})
        assert bound.collect()[0][0] == 0
        with pytest.raises(QueryFailed) as caught:
            project.sql("SELECT nope\nFROM raw")
        assert str(caught.value.location) == "query:1:8"


@pytest.mark.spark
def test_settings_of_a_script_are_its_own(tmp_path: Path, spark: SparkSession) -> None:
    lax = "-- pipeline\n-- materialize ducklake://main/{}\n{}SELECT CAST('x' AS INT) AS a\n"
    scripts = {
        "models/lax": lax.format("lax", "SET spark.sql.ansi.enabled = false;\n"),
        "models/strict": lax.format("strict", ""),
    }
    with Project.load(write_project(tmp_path / "set", scripts), spark=spark) as project:
        states = {step.name: step.state for step in project.run().steps}
        assert states == {"lax": "done", "strict": "failed"}
        assert rows(project, "SELECT * FROM lax") == [(None,)]


@pytest.mark.spark
def test_notices_are_in_the_result_and_are_printed(
    root: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with Project.load(root, spark=spark) as project:
        project.run(partition=DAY)
        script = root / "models" / "raw.sql"
        script.write_text(script.read_text().replace("AS day FROM", "AS day, 1 AS more FROM"))
        capsys.readouterr()
        changed = Project.load(root, spark=spark)
        result = changed.run(partition=date(2026, 1, 1), select="raw")
        changed.close()
    (notice,) = result.notices
    assert notice.step == "raw"
    assert "more" in notice.message
    printed = capsys.readouterr().err
    assert f"raw: notice: {notice.message}" in printed
    assert "run done in" in printed


def test_no_jobs_is_refused(root: Path) -> None:
    with (
        Project.load(root) as project,
        pytest.raises(ArgumentError, match="jobs is 0, and a run needs one or more"),
    ):
        project.run(DAY, jobs=0)
