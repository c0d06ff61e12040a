"""What need not run does not: second runs, and what each change makes again.

Tests ``engine/planning/up_to_date.py`` and ``engine/planning/made_from.py`` as runs use them.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.planning.no_op import is_idle
from penstock.project.project import Project
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HEAD = "-- pipeline\n-- materialize ducklake://main/"
DAILY = "-- partitioned daily start=2026-01-02\n"
NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
RAW = (
    f"{HEAD}raw\n{DAILY}SELECT n, '{{partition}}' AS day "
    "FROM read_csv('data/' || '{partition}' || '.csv')"
)
DAY = f"{HEAD}day\n{DAILY}SELECT n + 1 AS n, day FROM raw WHERE day = '{{partition}}'"
DIM = f"{HEAD}dim key=n\nSELECT * FROM read_csv('dim.csv')"
NAMED = f"{HEAD}named\n{DAILY}SELECT raw.n FROM raw JOIN dim USING (n) WHERE day = '{{partition}}'"
TOTAL = f"{HEAD}total\n-- $least (int) = 0\nSELECT count(*) AS n FROM day WHERE n >= $least"
SCRIPTS = {
    "models/raw": RAW,
    "models/day": DAY,
    "models/dim": DIM,
    "models/named": NAMED,
    "models/total": TOTAL,
    "models/v": "MODEL (name main.v, kind VIEW);\nSELECT n FROM day",
    "models/of_view": f"{HEAD}of_view\nSELECT max(n) AS n FROM v",
    "models/of_ext": f"{HEAD}of_ext\n{DAILY}SELECT n FROM ext",
}
LOG = f"{HEAD}log append\n{DAILY}SELECT n FROM day WHERE day = '{{partition}}'"
ALL = {name.removeprefix("models/") for name in SCRIPTS}


class Toy:
    """A project in a directory, loaded anew for each run."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def sql(self, text: str) -> None:
        with Project.load(self.root, spark=self.spark) as project:
            project.lake("main").sql(text)

    def run(self, **request: object) -> dict[str, str]:
        """The states of the steps that are not up to date."""
        with Project.load(self.root, spark=self.spark) as project:
            result = project.run(fire_time=NOW, **request)  # type: ignore[arg-type] # of any
        assert result.state == "done", result.steps
        return {s.name: s.state for s in result.steps if s.reason != "up to date"}

    def plan(self, **request: object) -> bool:
        with Project.load(self.root) as project:
            return is_idle(project.plan(fire_time=NOW, **request))  # type: ignore[arg-type] # any


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Toy:
    toy = Toy(write_project(tmp_path_factory.mktemp("up") / "p", SCRIPTS), spark)
    toy.write("data/2026-01-02.csv", "n\n1\n2\n")
    toy.write("dim.csv", "n\n1\n2\n")
    toy.sql("CREATE TABLE ext (n INT)")
    toy.sql("INSERT INTO ext VALUES (1)")
    assert set(toy.run()) == ALL
    return toy


def test_a_second_run_has_nothing_to_do(toy: Toy) -> None:
    assert toy.plan()
    assert toy.run() == {}
    with Project.load(toy.root) as project:  # no Spark
        before = project.lake("main").catalog.latest().id
        result = project.run(fire_time=NOW)
        assert (result.state, result.exit_code) == ("done", 0)
        assert {(each.state, each.reason) for each in result.steps} == {("unchanged", "up to date")}
        assert project.lake("main").catalog.latest().id == before
    assert toy.plan(partition="2026-01-02", select="day")
    assert not toy.plan(force=True)


def test_what_means_the_same_is_no_change(toy: Toy) -> None:
    os.utime(toy.root / "dim.csv", ns=(1, 1))
    toy.write("models/day.sql", DAY.replace("SELECT", "-- a comment\nselect  ") + "\n")
    toy.write("models/dim.sql", DIM.replace("-- pipeline", "-- pipeline\n-- tag a"))
    toy.sql("CALL ducklake_merge_adjacent_files('main')")
    assert toy.run() == {}


def test_a_corrected_file_makes_what_reads_it(toy: Toy) -> None:
    toy.write("data/2026-01-02.csv", "n\n1\n2\n3\n")
    assert not toy.plan()
    assert toy.run() == {
        **dict.fromkeys(("raw", "day", "named", "total", "of_view"), "done"),
    } | {"named": "unchanged"}
    toy.write("data/2026-01-02.csv", "n\n3\n2\n1\n")  # the same rows
    assert toy.run() == {"raw": "unchanged"}
    assert toy.run() == {}


def test_a_whole_table_that_changed_makes_the_slice_that_is_asked_for(toy: Toy) -> None:
    toy.write("dim.csv", "n\n1\n2\n3\n")
    assert toy.run() == {"dim": "done", "named": "done"}
    toy.sql("INSERT INTO ext VALUES (2)")
    assert toy.run(select="+of_ext") == {"of_ext": "done"}
    toy.sql("ALTER TABLE ext ADD COLUMN m INT")
    assert toy.run() == {"of_ext": "unchanged"}
    assert toy.run() == {}


def test_other_definitions_tests_and_arguments(toy: Toy) -> None:
    toy.write("models/day.sql", DAY.replace("n + 1", "n + 2"))
    assert toy.run() == dict.fromkeys(("day", "of_view"), "done") | {"total": "unchanged"}
    toy.write("models/dim.sql", DIM.replace("\nSELECT", "\n-- data_test unique n\nSELECT"))
    assert toy.run() == {"dim": "unchanged"}
    assert toy.run(args={"least": 4}) == {"total": "done"}
    assert toy.run(args={"least": 4}) == {}
    assert toy.run() == {"total": "done"}
    toy.write("models/v.sql", "MODEL (name main.v, kind VIEW);\nSELECT n + 1 AS n FROM day")
    assert toy.run() == {"v": "done", "of_view": "done"}
    assert toy.run() == {}


def test_what_others_did_is_undone(toy: Toy) -> None:
    toy.sql("DELETE FROM day")
    assert toy.run() == {"day": "done", "total": "unchanged", "of_view": "unchanged"}
    toy.sql("DROP TABLE total")
    assert toy.run() == {"total": "done"}
    toy.sql("DROP VIEW v")
    assert set(toy.run()) == {"v", "of_view"}
    assert toy.run() == {}
    assert set(toy.run(force=True)) == ALL


def test_a_failure_is_tried_again(toy: Toy) -> None:
    toy.write(
        "models/dim.sql", DIM.replace("\nSELECT", "\n-- data_test accepted_range n max=1\nSELECT")
    )
    with Project.load(toy.root, spark=toy.spark) as project:
        for _ in range(2):
            result = project.run("dim", fire_time=NOW)
            assert [each.state for each in result.steps] == ["failed"]
    toy.write("models/dim.sql", DIM)
    assert toy.run() == {"dim": "unchanged"}
    assert toy.run() == {}


def test_a_slice_is_appended_once_unless_its_input_changes(toy: Toy) -> None:
    toy.write("models/log.sql", LOG)
    assert toy.run() == {"log": "done"}
    assert toy.run() == {}
    with Project.load(toy.root) as project:
        before = project.status("log")[0].rows
    assert toy.run(select="log", force=True) == {"log": "done"}
    with Project.load(toy.root) as project:
        assert project.status("log")[0].rows == 2 * (before or 0) > 0
