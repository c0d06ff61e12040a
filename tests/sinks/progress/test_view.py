"""Events folded into what there is to draw.

Tests ``events.py`` (what a run's events add up to).
"""

from __future__ import annotations

from penstock.events import Event, RunProgress, RunStarted, StepFinished, StepStarted
from penstock.sinks.progress.view import Progress, Row, View
from tests.sinks.progress.events import DAY, RUN


def fold(events: tuple[Event, ...]) -> View:
    progress = Progress(clock=lambda: 100.0)
    for event in events:
        progress.apply(event)
    return progress.view


def test_announced_steps_wait() -> None:
    assert fold(RUN[:2]).rows == (Row("raw"), Row("clean"), Row("mart"))


def test_a_running_step_has_phase_slice_and_start() -> None:
    view = fold(RUN[:4])
    assert view.rows[0] == Row("raw", DAY, "writing", started=100.0)


def test_spark_starts_before_the_run_does() -> None:
    assert fold(RUN[:1]).starting_spark is not None
    assert fold(RUN[:2]).starting_spark is None


def test_finished_run() -> None:
    view = fold(RUN)
    raw, clean, mart = view.rows
    assert (raw.state, raw.rows, raw.snapshot_id, raw.checks) == ("done", 1842, 3, 1)
    assert (clean.state, clean.failed_checks) == ("failed", 1)
    assert (mart.state, mart.reason) == ("skipped", "clean failed")
    assert (view.state, view.seconds) == ("failed", 2.0)
    assert view.notices == ("clean: no key in 2 rows",)


def test_a_step_nobody_announced_gets_a_row() -> None:
    assert [row.step for row in fold((StepStarted("late", None),)).rows] == ["late"]


def test_a_step_of_many_slices_counts_them() -> None:
    begun = (RunStarted("r", ("a",), "x to y", (3,)), StepStarted("a", "x"))
    two = StepFinished("a", "done", 1.0, rows=5, snapshot_id=1, slice="x", slices=2)
    (row,) = fold((*begun, two)).rows
    assert (row.ended, row.slices, row.rows, row.state) == (2, 3, 5, "starting")
    last = StepFinished("a", "failed", 1.0, reason="no", slice="y", failed=1)
    (row,) = fold((*begun, two, last, RunProgress(3, 3))).rows
    assert (row.state, row.failed, row.rows, row.reason) == ("failed", 1, 5, "no")
