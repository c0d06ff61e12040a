"""A rollback takes the slices along that were made after the snapshot it goes back to."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.planning.test_intervals import MODEL, at, made, put
from tests.engine.toy import rows

pytestmark = pytest.mark.spark


def latest(project: Project) -> int:
    return project.lake("main").catalog.latest().id


def roll_back(project: Project, snapshot: int) -> None:
    project.lake("main").table("t").rollback(snapshot)


def test_intervals_made_since_are_missing_again(make: Make) -> None:
    toy = make({"models/t": MODEL.format(options="", properties="")})
    toy.lake("main").sql("CREATE TABLE raw (ds DATE, n INT)")
    put(toy, 1, 2, 3)
    made(toy, at(3))
    good = latest(toy)
    made(toy, at(4))
    made(toy, at(4), from_="2026-01-02", to="2026-01-02", all_=True)
    roll_back(toy, good)
    assert made(toy, at(4)) == [("2026-01-03", "done")]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("strategy", ["", " append", " key=day"])
def test_partitions_made_since_are_missing_again(make: Make, strategy: str) -> None:
    toy = make(
        {
            "models/t": "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/t"
            f"{strategy}\nSELECT '{{partition}}' AS day"
        }
    )
    asked: dict[str, Any] = {"fire_time": at(9), "from_": "2026-01-01", "to": "2026-01-03"}
    toy.run("2026-01-01", fire_time=at(9))
    good = latest(toy)
    toy.run(**asked)
    roll_back(toy, good)
    assert made(toy, at(9), from_="2026-01-01", to="2026-01-03") == [
        ("2026-01-02", "done"), ("2026-01-03", "done"),
    ]  # fmt: skip
    assert rows(toy, "SELECT day FROM t ORDER BY day")[1:] == [("2026-01-02",), ("2026-01-03",)]


def test_changes_read_before_are_read_again(make: Make) -> None:
    toy = make(
        {
            "models/t": "-- pipeline\n-- materialize ducklake://main/t key=n\n"
            "-- incremental changes\nSELECT n, 2 * n AS two FROM raw"
        }
    )
    toy.lake("main").sql("CREATE TABLE raw AS SELECT 1 AS n")
    toy.run()
    good = latest(toy)
    toy.lake("main").sql("INSERT INTO raw VALUES (2)")
    toy.run()
    roll_back(toy, good)
    toy.lake("main").sql("INSERT INTO raw VALUES (3)")
    toy.run()
    assert rows(toy, "SELECT * FROM t ORDER BY n") == [(1, 2), (2, 4), (3, 6)]


def test_a_slice_that_ends_empty_after_a_rollback_is_made(make: Make) -> None:
    toy = make(
        {
            "models/t": "-- pipeline\n-- partitioned daily\n"
            "-- materialize ducklake://main/t key=n\n"
            "SELECT n FROM raw WHERE day = '{partition}'"
        }
    )
    toy.lake("main").sql("CREATE TABLE raw AS SELECT '2026-01-02' AS day, 1 AS n")
    toy.run("2026-01-01", fire_time=at(9))
    good = latest(toy)
    toy.run("2026-01-02", fire_time=at(9))
    roll_back(toy, good)
    toy.lake("main").sql("DELETE FROM raw")
    asked = {"from_": "2026-01-01", "to": "2026-01-02"}
    assert made(toy, at(9), **asked) == [("2026-01-02", "unchanged")]
    assert made(toy, at(9), **asked) == [(None, "skipped")]
