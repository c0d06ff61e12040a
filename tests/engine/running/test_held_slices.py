"""Who holds a slice is shown, a claim that was lost ends its step, and other catalogs do the same.

Tests ``engine/running/concurrent_runs.py`` with ``engine/state/claims.py`` and
``engine/answers/status.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Connection, update

from penstock.engine.results import RunResult
from penstock.engine.state.store import State
from penstock.engine.state.tables import CLAIM
from penstock.errors import ClaimLost
from penstock.events import Event, Notice, StepProgress
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.running.test_concurrent_runs import RANGE, RAW
from tests.engine.toy import CONFIG, rows, write_project
from tests.lakes.catalog.conftest import postgres_server, postgres_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["postgres_server", "postgres_uri"]
pytestmark = pytest.mark.spark

DAYS = "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/t\n"
DAYS += "SELECT n FROM raw WHERE day = '{partition}'"


def at_publishing(act: Callable[[], None], seen: list[str]) -> Callable[[Event], None]:
    """Do something once, before the first commit of a run; ``seen`` gets its phases."""

    def between(event: Event) -> None:
        if isinstance(event, StepProgress):
            seen.append(event.phase)
            if seen.count("publishing") == 1 and event.phase == "publishing":
                act()

    return between


def test_a_paused_run_whose_commit_conflicts_does_not_begin_again(make: Make) -> None:
    toy = make({"models/t": "-- materialize ducklake://main/t\nSELECT n FROM raw"})
    toy.lake("main").sql(RAW)
    toy.run()
    toy.lake("main").sql("INSERT INTO raw VALUES ('2026-01-04', 4)")

    def taken_over(connection: Connection) -> None:
        connection.execute(update(CLAIM).values(run_id="another", fence=CLAIM.c.fence + 1))

    def overtaken() -> None:
        State(toy.lake("main").catalog).write(taken_over)
        toy.lake("main").sql("DELETE FROM t WHERE n = 3")

    seen: list[str] = []
    (step,) = toy.run(on_event=at_publishing(overtaken, seen)).steps
    assert isinstance(step.error, ClaimLost)
    assert seen.count("querying") == 1, "it did not run the query again in vain"
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,)]


def test_status_and_a_restatement_that_does_not_wait_say_who_holds_a_slice(make: Make) -> None:
    toy = make({"models/t": DAYS})
    toy.lake("main").sql(RAW)
    toy.run("2026-01-02")
    said: list[str | None] = []

    def asked() -> None:
        with Project.load(toy.settings.root, spark=toy.context.session()) as other:
            said.extend(f"{s.slice} {s.state}: {s.reason}" for s in other.status("t")[0].slices)
            restated = other.restate("t", "2026-01-02", "2026-01-02", wait=False)
            said.extend((restated.state, restated.steps[0].reason))

    run = toy.run("2026-01-02", force=True, on_event=at_publishing(asked, []))
    who = f"run {run.run_id} ("
    assert str(said[0]).startswith(f"2026-01-02 running: {who}")
    assert said[1] == "waiting"
    assert who in str(said[2])
    assert toy.status("t")[0].slices[0].reason is None


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> Iterator[Project]:
    """A project whose catalog is in another database."""
    uri = "ducklake:lake/meta.ducklake"
    if request.param == "postgres":
        uri = str(request.getfixturevalue("postgres_uri"))
    config = CONFIG.replace("sqlite:lake/meta.sqlite", uri)
    root = write_project(
        tmp_path / "toy", {"models/t": DAYS.replace("/t\n", "/t append\n")}, config
    )
    with Project.load(root, spark=spark) as project:
        yield project


@pytest.mark.parametrize("wait", [True, False])
def test_two_runs_at_once_on_other_catalogs(
    elsewhere: Project, spark: SparkSession, wait: bool
) -> None:
    elsewhere.lake("main").sql(RAW)
    asked: dict[str, Any] = {**RANGE}
    waits, inner = Signal(), list[RunResult]()

    def hear(event: Event) -> None:
        if isinstance(event, Notice) and event.message.startswith("waits for"):
            waits.set()

    def second() -> None:
        with Project.load(elsewhere.settings.root, spark=spark) as other:
            inner.append(other.run(**asked, wait=wait, on_event=hear))
        waits.set()

    thread = Thread(target=second)

    def between() -> None:
        thread.start()
        assert waits.wait(60)

    outer = elsewhere.run(**asked, on_event=at_publishing(between, []))
    thread.join(60)
    assert outer.state == "done"
    assert inner[0].state == ("done" if wait else "waiting")
    expected = {"unchanged"} if wait else {"waiting"}
    assert {step.state for step in inner[0].steps} == expected
    assert rows(elsewhere, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]
