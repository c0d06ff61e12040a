"""What every attempt at a planned step has: its model, its state, its phases, its tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.answers import lineage
from penstock.engine.checks.run import Tester
from penstock.engine.inputs.pinned_tables import Pins, Readable
from penstock.engine.inputs.resolve import Reader, Views
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.results import CheckResult
from penstock.engine.running.writing import Writer
from penstock.engine.session.world import World
from penstock.engine.state.records import SliceRecord
from penstock.engine.state.requirement import Requirement
from penstock.engine.state.store import State
from penstock.events import CheckFinished, Notice, StepProgress
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.model.time.interval import Interval

if TYPE_CHECKING:
    from penstock.lake.transaction import Transaction


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """One attempt at one planned step of a run."""

    world: World
    planned: PlannedStep

    @property
    def model(self) -> Model:
        return self.planned.model

    @property
    def state(self) -> State:
        return self.world.states[self.model.target.lake]

    @property
    def column(self) -> str:
        """The column of partitions: it holds the value of a row's slice."""
        return self.world.settings.lakes[self.model.target.lake].partition_column

    @property
    def depends_on_records(self) -> bool:
        """Whether what it makes follows from the records of its slices, so that it would be wrong
        on top of what another run recorded meanwhile. Others find that out by the rows.
        """
        return self.model.strategy.builds_on_slices or self.model.reads_changes

    def known(self) -> tuple[SliceRecord | None, Requirement | None]:
        """The record of the slice, and what its commit requires of the records that are there."""
        target, text = self.model.target.qualified, self.planned.only.text
        if isinstance(self.planned.only, Interval) and self.depends_on_records:
            records = self.state.slices(target)
            known = next((each for each in records if each.slice == text), None)
        else:
            known = self.state.slice(target, text)
            records = [] if known is None else [known]
        if not self.depends_on_records:
            return known, None
        return known, Requirement.of(target, (text,), records)

    @property
    def writer(self) -> Writer:
        return Writer(self.model, self.column, self.world.session, self.world.sink)

    def say(self, phase: str) -> None:
        """A phase begins: also the moment to stop when the run was cancelled."""
        self.world.check_cancelled()
        self.world.sink(StepProgress(self.model.name, phase))

    def notice(self, message: str) -> None:
        self.world.sink(Notice(message, self.model.name))

    def say_tests(self, found: Sequence[Sequence[CheckResult]]) -> None:
        """One event a test, of all slices."""
        for results in zip(*found, strict=True):
            worst = max(results, key=lambda each: (not each.passed, each.severity == "error"))
            failures = sum(each.failures for each in results)
            self.world.sink(
                CheckFinished(self.model.name, worst.name, worst.passed, failures, worst.severity)
            )

    @contextmanager
    def transaction(self) -> Iterator[tuple[Transaction, Views]]:
        """That of the attempt, which nothing else of the run commits to."""
        name, lake = self.model.name, self.world.lake_of(self.model)
        note = {"run": self.world.run_id, "step": name, "slice": self.planned.slice}
        message = " ".join(part for part in (name, self.planned.slice) if part)
        with (
            Views(self.world.session, self.world.later) as views,
            lake.transaction(author="penstock", message=message, extra=json.dumps(note)) as tx,
        ):
            yield tx, views

    def reader(self, pins: Pins, views: Views) -> Reader:
        return Reader(pins, self.world.session, views, self.world.settings.root)

    def tester(
        self, bindings: Bindings, pins: Pins, whole: Readable, views: Views, called: str
    ) -> Tester:
        """Of slices of the table as it is to be published, which is ``whole``."""
        return Tester(
            model=self.model,
            bindings=bindings,
            session=self.world.session,
            pins=pins.showing(self.model.target, whole),
            views=views,
            root=self.world.settings.root,
            called=called,
            samples=self.world.settings.test_samples,
        )

    def lineage(self, known: SliceRecord | None, pins: Pins) -> Mapping[str, list[str]] | None:
        """What the model's columns derive from, where that may be new."""
        if known is not None and known.definition_hash == self.model.definition_hash:
            return None
        return lineage.recorded(self.model, lambda table: pins.readable(table).types, self.column)
