"""``materialize manual``: the script's own statements, in one transaction with its record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import ArgumentError, NotFound
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

if TYPE_CHECKING:
    from penstock.project.project import Project

RAW = "-- materialize ducklake://main/raw\nSELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(id, name)"
BY_DAY = """
-- partitioned daily
-- materialize manual ducklake://main/by_day
-- $low (int) = 0
ATTACH 'ducklake://main' AS dl;
CREATE TABLE IF NOT EXISTS dl.by_day (id INT, name VARCHAR, day VARCHAR);
DELETE FROM dl.by_day WHERE day = '{partition}';
INSERT INTO dl.by_day
SELECT r.id, r.name || f.suffix, $partition FROM dl.raw AS r JOIN read_csv('suffix.csv') AS f
ON r.id = f.id WHERE r.id > $low;
UPDATE dl.by_day SET name = upper(name) WHERE day = '{partition}' AND id = 2
"""


def made(make: Make, **models: str) -> Project:
    project = make({"models/raw": RAW, **{f"models/{name}": text for name, text in models.items()}})
    Path(project.settings.root, "suffix.csv").write_text("id,suffix\n1,x\n2,y\n")
    return project


@pytest.mark.spark
def test_statements_run_in_one_transaction(make: Make) -> None:
    project = made(make, by_day=BY_DAY)
    first = step(project.run("2026-01-01"), "by_day")
    told = (first.state, first.rows, first.strategy)
    assert told == ("done", None, "manual"), "no column tells the rows of its slices apart"
    project.run("2026-01-02", args={"low": 1})
    again = step(project.run("2026-01-01"), "by_day")
    found = rows(project, "SELECT id, name, day FROM by_day ORDER BY day, id")
    assert found == [
        (1, "ax", "2026-01-01"),
        (2, "BY", "2026-01-01"),
        (2, "BY", "2026-01-02"),
    ]
    assert again.state == "done"
    snapshots = [s for s in project.snapshots() if (s.message or "").startswith("by_day")]
    assert len(snapshots) == 3  # one a run, though each has four statements
    (status,) = project.status("by_day")
    assert status.state == "materialized"
    with pytest.raises(ArgumentError, match="is manual: it has statements"):
        project.preview("by_day", "2026-01-01")
    assert [f.rule for f in project.check(spark=True)] == ["not-analysed"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("INSERT INTO t SELECT id FROM raw", 3, "table main.t does not exist"),
        ("CREATE TABLE t AS\n\nSELECT id FROM raw WHERE nosuch > 1;", 5, "nosuch"),
        ("CREATE TABLE other (id INT);", 1, "did not make its table"),
        (
            "CREATE TABLE t AS SELECT 1 AS a;\nALTER TABLE t\nADD COLUMN a INT",
            5,
            "a column 'a' already",
        ),
    ],
)
def test_what_fails_leaves_all_as_it_was(make: Make, text: str, line: int, message: str) -> None:
    project = made(make, t=f"-- materialize manual ducklake://main/t\n\n{text}")
    result = project.run(select=["raw", "t"])
    failed = step(result, "t")
    assert (failed.state, result.state) == ("failed", "failed")
    assert failed.error is not None
    assert message in str(failed.error)
    assert "at line" not in str(failed.error)
    assert failed.error.location is not None
    assert failed.error.location.line == line
    assert [s.message for s in project.snapshots() if s.message] == ["raw"]
    with pytest.raises(NotFound):
        project.sql("SELECT * FROM t")


@pytest.mark.spark
def test_duckdbs_dialect_and_a_full_refresh(make: Make) -> None:
    head = "-- materialize manual ducklake://main/t\n-- dialect duckdb\n"
    create = "CREATE TABLE IF NOT EXISTS t (id INT, d DATE);\n"
    insert = (
        "INSERT INTO t FROM range(2) r(i) SELECT i, strptime('2026-01-0' || (i + 1), '%Y-%m-%d')"
    )
    project = made(make, t=f"{head}{create}{insert}::DATE")
    for _ in range(2):
        assert step(project.run(select=["t"]), "t").state == "done"
    assert rows(project, "SELECT count(*), max(day(d)) FROM t") == [(4, 2)]
    project.run(select=["t"], full_refresh=True)
    assert rows(project, "SELECT count(*) FROM t") == [(2,)]
