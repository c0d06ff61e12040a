"""The runner on its own: order, side by side, skipping, cancelling. Steps are functions.

Tests ``engine/running/run.py`` and ``engine/session/run_context.py``.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.engine.planning.no_op import all_waits, ended
from penstock.engine.planning.plan import Plan, PlannedStep, Work
from penstock.engine.planning.slice_reason import UP_TO_DATE, RunInputs, Skip, SkipKind
from penstock.engine.planning.slices import RunRequest
from penstock.engine.results import RunResult, StepResult
from penstock.engine.running.run import Pace, Runner
from penstock.engine.session.run_context import RunContext
from penstock.events import Event, EventSink, Notice, RunProgress, StepFinished
from penstock.model.time.interval import Interval
from penstock.model.time.slice import WHOLE, Slice
from penstock.model.values.strategy import REPLACE
from penstock.project.project import Project
from penstock.project.running import RunSettings, execute_plan
from tests.engine.planning.test_reasons import LATER, Shop
from tests.engine.toy import write_project


def planned(name: str, *after: str) -> PlannedStep:
    model = SimpleNamespace(
        name=name,
        target=f"main.{name}",
        strategy=REPLACE,
        partition=None,
        by_time=None,
        changing_inputs=(),
        only_warned=(),
    )
    return PlannedStep(cast(Any, model), (WHOLE,), after)


@dataclass
class Session:
    """What the runner asks of a session."""

    interrupted: int = 0

    def interruptAll(self) -> None:  # noqa: N802 - Spark's spelling
        self.interrupted += 1


def run(
    steps: tuple[PlannedStep, ...],
    do: Any,
    jobs: int = 2,
    sink: EventSink = lambda event: None,
    cancelled: threading.Event | None = None,
) -> tuple[RunResult, Session]:
    session = Session()
    plan = Plan(steps, RunRequest())
    context = RunContext(
        *("r", plan, cast(Any, None), cast(Any, session), {}, {}),
        sink=sink,
        cancelled=cancelled or threading.Event(),
        has_shared_session=cancelled is not None,
    )
    runner = Runner(plan, context, do, jobs, skip=lambda context, step, state, reason: None)
    return runner.execute(), session


Results = dict[Slice, StepResult]


def result(step: PlannedStep, state: str = "done") -> Results:
    return dict(zip(step.slices, ended(step, state, "boom\nmore"), strict=True))


def test_a_step_runs_after_those_it_needs() -> None:
    order: list[str] = []

    def do(context: RunContext, step: PlannedStep) -> Results:
        order.append(step.name)
        return result(step)

    steps = (planned("a"), planned("b", "a"), planned("c", "a", "b"))
    assert run(steps, do)[0].state == "done"
    assert order == ["a", "b", "c"]


def test_a_step_that_is_up_to_date_beside_others_has_rows_and_snapshot() -> None:
    """As in a run that has nothing else to do."""
    events: list[Event] = []
    work = Work(built_from=cast(Any, SimpleNamespace(rows=3, made_in=7)))
    skip = Skip(SkipKind.CURRENT, UP_TO_DATE)
    current = replace(planned("a"), skipped=skip, works={WHOLE: work})

    def do(context: RunContext, step: PlannedStep) -> Results:
        return result(step)

    made, _ = run((current, planned("b")), do, sink=events.append)
    (event,) = (e for e in events if isinstance(e, StepFinished) and e.step == "a")
    (step,) = (step for step in made.steps if step.name == "a")
    assert (event.state, event.rows, event.snapshot_id) == ("unchanged", 3, 7)
    assert (step.state, step.rows, step.snapshot_id) == ("unchanged", 3, 7)


def test_independent_steps_run_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=10)

    def do(context: RunContext, step: PlannedStep) -> Results:
        meeting.wait()
        return result(step)

    assert run((planned("a"), planned("b")), do)[0].state == "done"


def test_never_more_than_jobs() -> None:
    busy, most = 0, 0
    lock = threading.Lock()

    def do(context: RunContext, step: PlannedStep) -> Results:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.02)
        with lock:
            busy -= 1
        return result(step)

    run(tuple(planned(f"s{n}") for n in range(6)), do, jobs=2)
    assert most == 2


def test_what_depends_on_a_failure_is_skipped_with_the_reason() -> None:
    def do(context: RunContext, step: PlannedStep) -> Results:
        return result(step, "failed" if step.name == "a" else "done")

    steps = (planned("a"), planned("b", "a"), planned("c", "a", "b"), planned("d"))
    outcome, _ = run(steps, do)
    assert [step.state for step in outcome.steps] == ["failed", "skipped", "skipped", "done"]
    assert outcome.steps[2].reason == "upstream a failed: boom"
    assert outcome.state == "failed"


def test_ctrl_c_interrupts_what_runs_and_launches_nothing_more() -> None:
    started = threading.Event()

    def do(context: RunContext, step: PlannedStep) -> Results:
        started.set()
        assert context.cancelled.wait(10)
        return result(step, "cancelled")

    steps = (planned("a"), planned("b", "a"))
    timer = threading.Thread(target=_interrupt_main, args=(started,))
    timer.start()
    outcome, session = run(steps, do)
    timer.join()
    assert [step.state for step in outcome.steps] == ["cancelled", "cancelled"]
    assert (outcome.state, outcome.exit_code) == ("cancelled", 130)
    assert session.interrupted


def test_a_job_that_starts_after_ctrl_c_is_interrupted_too() -> None:
    started = threading.Event()

    def do(context: RunContext, step: PlannedStep) -> Results:
        started.set()
        assert context.cancelled.wait(10)
        session = cast(Session, context.session)
        enough, deadline = session.interrupted + 2, time.monotonic() + 10
        while session.interrupted < enough and time.monotonic() < deadline:
            time.sleep(0.01)
        assert session.interrupted >= enough
        return result(step, "cancelled")

    timer = threading.Thread(target=_interrupt_main, args=(started,))
    timer.start()
    assert run((planned("a"),), do)[0].state == "cancelled"
    timer.join()


def test_a_run_that_is_cancelled_leaves_the_jobs_of_others_alone() -> None:
    cancelled = threading.Event()

    def do(context: RunContext, step: PlannedStep) -> Results:
        cancelled.set()
        time.sleep(0.5)  # longer than the runner waits between two looks
        return result(step, "cancelled")

    outcome, session = run((planned("a"), planned("b", "a")), do, cancelled=cancelled)
    assert outcome.state == "cancelled"
    assert session.interrupted == 0


def _interrupt_main(started: threading.Event) -> None:
    started.wait(10)
    import _thread

    _thread.interrupt_main()


@pytest.mark.parametrize("state", ["done", "unchanged"])
def test_good_states(state: str) -> None:
    assert run((planned("a"),), lambda context, step: result(step, state))[0].state == "done"


def test_nothing_to_do_is_done() -> None:
    assert run((), None)[0].state == "done"


def test_remaining_time_goes_by_the_slices_so_far() -> None:
    moments = iter([0.0, 1.0, 10.0, 30.0, 30.5, 40.0])
    pace = Pace(100, clock=lambda: next(moments))
    assert pace.at(1) is None
    assert pace.at(2) == RunProgress(2, 100, None)  # the first slices say too little
    assert pace.at(25) == RunProgress(25, 100, 90.0)
    assert pace.at(26) is None


WARNED = """\
-- partitioned daily start=2026-01-01
-- data_test relationships id -> ducklake://main/other.id{}
-- materialize ducklake://main/reader
SELECT 1 AS id, '{{partition}}' AS day"""


@pytest.mark.parametrize(("severity", "state"), [("", "skipped"), (" severity=warn", "done")])
def test_a_test_that_only_warns_blocks_no_slice(tmp_path: Path, severity: str, state: str) -> None:
    other = "-- materialize ducklake://main/{}\nSELECT id FROM {}"
    scripts = {
        "models/top": "-- materialize ducklake://main/top\nSELECT 1 AS id",
        "models/other": other.format("other", "top"),
        "models/reader": WARNED.format(severity),
    }
    project = Project.load(write_project(tmp_path / "p", scripts))
    plan = project.plan(partition="2026-01-02")
    assert [step.name for step in plan.steps] == ["top", "other", "reader"]

    def do(context: RunContext, step: PlannedStep) -> Results:
        return result(step, "done" if step.name == "reader" else "failed")

    ran, _ = run(plan.steps, do)
    assert {step.name: step.state for step in ran.steps}["reader"] == state


def test_a_slice_that_reads_one_of_its_own_table_that_failed_is_not_made(tmp_path: Path) -> None:
    before = "WHERE _wm_partition = CAST(date_sub('{partition}', 1) AS STRING)"
    script = (
        "-- pipeline\n-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/t\n"
        f"-- column n BIGINT\nSELECT count(*) AS n FROM t {before}"
    )
    project = Project.load(write_project(tmp_path / "p", {"models/t": script}))
    plan = project.plan(from_="2026-01-01", to="2026-01-03", fire_time="2026-01-04T12:00:00Z")
    context = RunContext(
        "r", plan, cast(Any, None), cast(Any, Session()), {}, {}, sink=lambda event: None
    )

    def do(_: RunContext, step: PlannedStep) -> Results:
        return result(step, "failed")

    found = Runner(plan, context, do, 1, skip=lambda context, step, state, reason: None).execute()
    assert [each.state for each in found.steps] == ["failed", "skipped", "skipped"]


RAW = """
    MODEL (name main.raw, kind INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 1),
      start '2026-01-01');
    SELECT @start_date AS ds, 1 AS id
"""
READER = """
    MODEL (name main.t, kind {kind}, start '2026-01-01');
    SELECT ds, id FROM raw WHERE ds BETWEEN @start_date AND @end_date
"""
IN_ORDER = """SCD_TYPE_2_BY_COLUMN (unique_key id, columns *, invalidate_hard_deletes true,
    disable_restatement false)"""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            "INCREMENTAL_BY_TIME_RANGE (time_column ds)",
            {"01 to 2026-01-02": "done", "03": "skipped", "04": "done", "05": "failed"},
        ),
        (IN_ORDER, {"01 to 2026-01-02": "done", "03 to 2026-01-05": "skipped"}),
    ],
)
def test_a_batch_is_made_without_the_days_whose_input_failed(
    tmp_path: Path, kind: str, expected: dict[str, str]
) -> None:
    scripts = {"models/raw": RAW, "models/t": READER.format(kind=kind)}
    project = Project.load(write_project(tmp_path / "p", scripts))
    plan = project.plan(from_="2026-01-01", to="2026-01-05", fire_time="2026-01-07T12:00:00Z")
    inputs = RunInputs({}, datetime(2026, 1, 6, tzinfo=UTC), {"n": 1})  # by a run that is retried
    reader = plan.steps[1].decide([plan.steps[1].only], inputs=inputs)
    plan = replace(plan, steps=(plan.steps[0], reader))
    context = RunContext(
        "r", plan, cast(Any, None), cast(Any, Session()), {}, {}, sink=lambda event: None
    )

    def do(_: RunContext, step: PlannedStep) -> Results:
        assert step.name == "raw" or step.work(step.only).inputs == inputs
        if step.name == "raw":
            return result(step, "failed" if step.only.text.startswith("2026-01-03") else "done")
        assert isinstance(step.only, Interval)
        if step.only.text.startswith("2026-01-04"):  # a test failed of one of its days
            day = Interval(step.only.start, step.only.start + timedelta(days=1))
            other = replace(step, slices=(Interval(day.end, step.only.end),))
            return result(replace(step, slices=(day,))) | result(other, "failed")
        return result(step)

    found = Runner(plan, context, do, 1, skip=lambda context, step, state, reason: None).execute()
    made = {str(each.slice)[8:]: each.state for each in found.steps if each.name == "t"}
    assert made == expected


def test_a_notice_is_given_once_in_a_run(tmp_path: Path) -> None:
    """Each batch of a step may have the same."""
    shop, events = Shop(tmp_path), list[Event]()
    plan = shop.project.plan("reader", from_="2026-01-01", to="2026-01-02", fire_time=LATER)
    assert all_waits(plan)
    plan = replace(plan, notices=("one", "one", "two"))
    result = execute_plan(shop.project.context, plan, RunSettings(on_event=events.append))
    assert result.notices == (Notice("one"), Notice("two"))
    assert [each for each in events if isinstance(each, Notice)] == list(result.notices)
