"""One attempt at a batch: its transaction, the tables that it reads, what its phases share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from penstock.engine.answers import lineage
from penstock.engine.checks.run import Tester
from penstock.engine.inputs.pinned_tables import Pins, Readable, pin, table_name
from penstock.engine.inputs.resolve import Reader, Resolved, Views, resolve
from penstock.engine.inputs.self_reference import Beginning
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.results import CheckResult
from penstock.engine.running.manual import run_statements
from penstock.engine.running.writing import Writer
from penstock.engine.session.world import World
from penstock.engine.state.records import SliceRecord
from penstock.engine.state.store import State
from penstock.events import CheckFinished, Notice, StepProgress
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.script.constants import Bindings
from penstock.model.script.sources import QuerySource
from penstock.model.time.slice import Part, Slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.staging import TransactionTable
    from penstock.lake.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Attempt:
    """``tx`` is committed to by nothing else of the run; ``held`` is released when all is
    published. ``pins`` are the tables that it reads.
    """

    world: World
    planned: PlannedStep
    tx: Transaction
    views: Views
    held: ExitStack
    pins: Pins

    @classmethod
    @contextmanager
    def begin(cls, world: World, planned: PlannedStep) -> Iterator[Attempt]:
        model, lake = planned.model, world.lake_of(planned.model)
        note = {"run": world.run_id, "step": model.name, "slice": planned.slice}
        message = " ".join(part for part in (model.name, planned.slice) if part)
        with (
            Views(world.session, world.later) as views,
            lake.transaction(author="penstock", message=message, extra=json.dumps(note)) as tx,
            ExitStack() as held,
        ):
            pins = pin(world.lakes, model, tx.base, world.plan.makers)
            yield cls(world, planned, tx, views, held, pins)

    @property
    def model(self) -> Model:
        return self.planned.model

    @property
    def target(self) -> str:
        return self.model.target.qualified

    @property
    def table(self) -> TransactionTable:
        return self.tx.table(table_name(self.model.target))

    @property
    def state(self) -> State:
        return self.world.states[self.model.target.lake]

    @property
    def column(self) -> str:
        """The column of partitions: it holds the value of a row's slice."""
        return self.world.settings.lakes[self.model.target.lake].partition_column

    @property
    def place(self) -> tuple[str, str] | None:
        """The partition column and its value; None for a slice that is not a partition."""
        return self.place_of(self.planned.only)

    def place_of(self, slice_: Slice) -> tuple[str, str] | None:
        return (self.column, slice_.value) if isinstance(slice_, Part) else None

    @property
    def rebuilds(self) -> bool:
        """Tell whether the table is made from nothing, which the first batch of its slices does."""
        return self.planned.anew and not self.planned.goes_on

    @property
    def writer(self) -> Writer:
        return Writer(self.model, self.column, self.world.session, self.world.sink)

    def say(self, phase: str) -> None:
        """A phase begins: also the moment to stop when the run was cancelled."""
        self.world.check_cancelled()
        self.world.sink(StepProgress(self.model.name, phase))

    def notice(self, message: str | None) -> None:
        if message:
            self.world.sink(Notice(message, self.model.name))

    def say_tests(self, found: Sequence[Sequence[CheckResult]]) -> None:
        """One event a test, of all slices."""
        for results in zip(*found, strict=True):
            worst = max(results, key=lambda each: (not each.passed, each.severity == "error"))
            failures = sum(each.failures for each in results)
            self.world.sink(
                CheckFinished(self.model.name, worst.name, worst.passed, failures, worst.severity)
            )

    @property
    def reader(self) -> Reader:
        return Reader(self.pins, self.world.session, self.views, self.world.settings.root)

    def resolve(
        self,
        beginning: Beginning | None = None,
        given: Mapping[QuerySource, DataFrame] = MappingProxyType({}),
    ) -> Resolved:
        """The model's query, with the values of its slice."""
        resolved = resolve(
            self.model.query, self.planned.bindings, self.reader, beginning=beginning, given=given
        )
        for said in resolved.notices():
            self.notice(said)
        return resolved

    def tester(self, bindings: Bindings, whole: Readable, called: str) -> Tester:
        """Of slices of the table as it is to be published, which is ``whole``."""
        return Tester(
            model=self.model,
            bindings=bindings,
            session=self.world.session,
            pins=self.pins.showing(self.model.target, whole),
            views=self.views,
            root=self.world.settings.root,
            called=called,
            samples=self.world.settings.test_samples,
        )

    def run_statements(self, query: Query) -> None:
        run_statements(
            query,
            self.model.target.lake,
            self.planned.bindings,
            self.tx,
            self.pins,
            session=self.world.session,
            root=self.world.settings.root,
        )

    def lineage(self, known: SliceRecord | None) -> Mapping[str, list[str]] | None:
        """What the model's columns derive from, where that may be new."""
        if known is not None and known.definition_hash == self.model.definition_hash:
            return None
        return lineage.recorded(
            self.model, lambda table: self.pins.readable(table).types, self.column
        )
