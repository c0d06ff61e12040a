"""A run from plan to result: recorded at its start, executed, recorded at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.config import Settings
from penstock.engine.plan import Plan
from penstock.engine.results import RunResult
from penstock.engine.runner import Runner
from penstock.engine.state.records import RunRecord, this_process
from penstock.engine.state.store import State, now
from penstock.engine.step import run_step
from penstock.engine.world import World
from penstock.errors import PenstockError
from penstock.events import Event, EventSink, Notice, RunFinished, RunStarted
from penstock.lake.format.naming import new_uuid7

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lake.lake import Lake


def run_plan(
    plan: Plan,
    *,
    settings: Settings,
    session: SparkSession,
    lakes: Mapping[str, Lake],
    sink: EventSink,
    jobs: int | None,
) -> RunResult:
    """Execute ``plan``. ``lakes`` are all that its steps read or write, attached for writing.

    Failures of steps are in the result; what is raised concerns the run itself (a catalog that
    cannot be written, for one).
    """
    notices: list[Notice] = []

    def noting(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event)
        sink(event)

    targets = dict.fromkeys(step.model.target.lake for step in plan.steps)
    with ThreadPoolExecutor(1, thread_name_prefix="penstock-later") as later:
        world = World(
            run_id=new_uuid7(),
            plan=plan,
            settings=settings,
            session=session,
            lakes=lakes,
            states={name: State(lakes[name].catalog) for name in targets},
            sink=noting,
            later=later,
        )
        _begin(world)
        sink(RunStarted(world.run_id, tuple(step.name for step in plan.steps), plan.partition))
        for notice in plan.notices:
            noting(Notice(notice))
        result = Runner(plan, world, run_step, jobs or settings.jobs).execute()
        _end(world, result)
    sink(RunFinished(result.run_id, result.state, result.seconds))
    return replace(result, notices=tuple(notices))


def _begin(world: World) -> None:
    plan = world.plan
    record = RunRecord(
        run_id=world.run_id,
        state="running",
        partition=plan.partition,
        args=plan.args,
        started_at=now(),
        process=this_process(),
        trigger=plan.request.trigger,
    )
    for name, state in world.states.items():
        for dead in state.begin_run(record):
            world.sink(Notice(f"run {dead} on lake {name} was killed; marked abandoned"))


def _end(world: World, result: RunResult) -> None:
    for state in world.states.values():
        # What was published stands, whatever becomes of this last note: the next run reads a run
        # whose process is gone as abandoned.
        with contextlib.suppress(PenstockError):
            state.end_run(world.run_id, result.state)
