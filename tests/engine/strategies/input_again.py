"""Sequences of `input_sequences` with retries and rollbacks among their actions.

A retry makes what runs of the sequence were to make and did not: what it makes is right by the same
reference, and of what it was to make only that is left afterwards which failed, was skipped or
waits. After a rollback a table has the rows of then, and the slices that it names as missing are.
Runs that are retried may have been killed, or be retries themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.planning.plan import Plan
from penstock.engine.results import RunResult
from penstock.errors import ArgumentError
from penstock.project.maintaining import RolledBackTable
from tests.engine.strategies.input_checks import row_of
from tests.engine.strategies.input_sequences import ACTIONS, Play
from tests.engine.strategies.input_sources import Wrong
from tests.engine.strategies.range_sequences import Death

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OFTEN = 0.4  # of the actions are those of this file
_WELL = ("done", "unchanged")
Asked = Mapping[str, Any]


class PlayAgain(Play):
    """A `Play` that also retries runs and rolls models back, as users do."""

    def __init__(self, spark: SparkSession | None, folder: Path, seed: int) -> None:
        self.asked: dict[str, Asked] = {}  # what each recorded run was asked for
        super().__init__(spark, folder, seed)

    def _act(self) -> None:
        if self.chance.random() >= _OFTEN:
            super()._act()
        elif self.chance.random() < 0.6:
            self._retry()
        else:
            self._roll_a_model_back()

    def _note_made(self, ids: Any, statuses: Any, asked: Asked) -> None:
        for run_id in ids:
            self.asked[run_id] = asked
        super()._note_made(ids, statuses, asked)

    # --- once more

    def _retry(self) -> None:
        past = sorted(self._run_ids() & self.asked.keys())
        if not past:
            return
        if self.chance.random() < 0.3:
            plan: Callable[[], Plan] = partial(self.project.retry_failed_plan, since="1d")
            self._again("retry --failed", plan, [self.asked[each] for each in past])
            return
        run_id = self.chance.choice(past[-4:])
        number = past.index(run_id) + 1
        plan = partial(self.project.retry_plan, run_id)
        self._again(f"retry run {number}", plan, [self.asked[run_id]])

    def _again(self, what: str, planned: Callable[[], Plan], asked: list[Asked]) -> None:
        try:
            plan = planned()
        except ArgumentError as error:
            self.log.append(f"{what}: refused: {error.message}")
            return
        said = [f"{step.name} {step.slice or ''}" for step in plan.steps if not step.skipped]
        self.log.append(f"{what}: {', '.join(said) or plan.notices}")
        # A slice that several runs were to make is made as the last of them was.
        allowed = any(each.get("allow_missing") for each in asked)
        of = {
            "fire_time": min(each["fire_time"] for each in asked),
            "allow_missing": allowed,
        }
        self._plan = plan
        result = self._run([], of, self._kill())
        if result is not None:
            self._has_left(what, planned(), result)

    def _perform(self, select: Any, asked: Asked, death: Death) -> RunResult:
        plan, self._plan = self._plan, None
        if plan is None:
            return super()._perform(select, asked, death)
        if self.spark is not None:
            return self.project.run_retry(plan, on_event=death, jobs=1)
        return self._duckling().execute(plan, death)

    _plan: Plan | None = None

    def _has_left(self, what: str, plan: Plan, result: RunResult) -> None:
        """What is left after a retry is what it has not made."""
        ended = Counter(step.state for step in result.steps)
        done = {(s.name, s.slice) for s in result.steps if s.state in _WELL and s.slice}
        left = {(step.name, each.text) for step in plan.steps for each in step.slices}
        if wrong := done & left:
            raise Wrong(f"{what} has made {sorted(wrong)}, which is left")
        if plan.steps and not ended.keys() - _WELL:
            names = [step.name for step in plan.steps]
            raise Wrong(f"{what} has made all, and {names} are left")

    # --- back

    def _roll_a_model_back(self) -> None:
        stored = [m.name for m in self.world.models.values() if m.is_stored]
        stored = [name for name in stored if self.seen.content(name)]
        if not stored or not self.snapshots:
            return
        self.seen.action += 1
        name = self.chance.choice(stored)
        to = self.chance.choice(self.snapshots[-6:])
        downstream = self.chance.random() < 0.5
        catalog = self.project.lake("main").catalog
        if catalog.find_table("main", name, to) is None:
            return
        said = " --downstream" if downstream else ""
        try:
            done = self.project.rollback(name, to=to, downstream=downstream)
        except ArgumentError as error:
            self.log.append(f"rollback {name} --to {to}{said}: refused: {error.message}")
            return
        told = [f"{each.table}: {each.slices_missing}" for each in done.tables]
        self.log.append(f"rollback {name} --to {to}{said}: {', '.join(told)}")
        for each in done.tables:
            table = each.table.rpartition(".")[2]
            self.seen.back[table] = self.seen.action
            self.seen.foreign[table].append(self.seen.action)
        self._observe()
        for each in done.tables:
            self._is_back(each)
        self._check()

    def _is_back(self, table: RolledBackTable) -> None:
        name = table.table.rpartition(".")[2]
        tag = "_wm_partition" if self._is_tagged(name) else "NULL"
        query = f"SELECT ts, g, v, {tag} FROM {name} AT (VERSION => {table.to})"
        then = sorted(row_of(*row) for row in self.duck.execute(query).fetchall())
        if then != sorted(self.seen.content(name)):
            raise Wrong(f"{name} is not as it was at {table.to}")
        states = self._statuses()[name]
        for slice_ in table.slices_missing:
            own = "" if slice_ == "whole table" else slice_
            for unit in self.names[name].get(own, [own]):
                state, _ = states.get(unit, ("missing", ""))
                if state == "materialized":
                    raise Wrong(f"{name} {slice_} is {state} after the rollback")


def wrong(
    spark: SparkSession | None, folder: Path, seed: int, actions: int = ACTIONS
) -> str | None:
    """What came out otherwise, with all that was done; None for nothing."""
    folder.mkdir(exist_ok=True)
    return PlayAgain(spark, folder, seed).play(actions)
