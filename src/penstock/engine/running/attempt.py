"""One attempt at a batch: its transaction, the tables that it reads and what its phases share, and
what is recorded of its slices.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from penstock.destinations.capabilities import KINDS
from penstock.distribution import VERSION
from penstock.engine.answers import lineage
from penstock.engine.checks.run import Tester
from penstock.engine.inputs.pinned_tables import Beginning, Pins, Readable, pin, table_name
from penstock.engine.inputs.resolve import FilesRead, Reader, Resolved, Views, resolve
from penstock.engine.planning.files_read import files_of
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.results import CheckResult
from penstock.engine.running.manual import run_statements
from penstock.engine.running.writing import Writer
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.records import InputRead, ReadRecord, Requirement, SliceRecord
from penstock.engine.state.store import State
from penstock.events import CheckFinished, Notice, StepProgress, StepQuery
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import depends_on_slice
from penstock.model.script.sources import QuerySource
from penstock.model.time.interval import Interval
from penstock.model.time.slice import Part, Slice
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable, Transaction


@dataclass(frozen=True, slots=True)
class Attempt:
    """``tx`` is committed to by nothing else of the run; ``held`` is released when all is
    published. ``pins`` are the tables that it reads, ``reads`` what is recorded of that, by the
    texts of slices: one record for all that read the same. ``rejected`` counts the rows of each
    slice that quarantine tests set aside, by test.
    """

    context: RunContext
    planned: PlannedStep
    tx: Transaction
    views: Views
    held: ExitStack
    pins: Pins
    reads: Mapping[str, ReadRecord]
    rejected: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def begin(cls, context: RunContext, planned: PlannedStep) -> Iterator[Attempt]:
        model, lake = planned.model, context.lake_of(planned.model)
        note = _note(context, planned)
        message = " ".join(part for part in (model.name, planned.slice) if part)
        with (
            Views(context.session, context.later) as views,
            lake.transaction(author="penstock", message=message, extra=note) as tx,
            ExitStack() as held,
        ):
            pins = pin(context.lakes, model, tx.base, context.plan.makers)
            yield cls(context, planned, tx, views, held, pins, read_records(context, planned, pins))

    @property
    def model(self) -> Model:
        return self.planned.model

    def read_of(self, slice_: Slice) -> ReadRecord:
        """Return what is recorded of what a slice, or a part of the only one, was made from."""
        return self.reads.get(slice_.text) or self.reads[self.planned.slices[0].text]

    @property
    def target(self) -> str:
        return self.model.target.qualified

    @property
    def table(self) -> StagedTable:
        return self.tx.table(table_name(self.model.target))

    @property
    def state(self) -> State:
        return self.context.states[self.model.target.lake]

    @property
    def column(self) -> str:
        """The column of partitions: it holds the value of a row's slice."""
        return self.context.settings.lakes[self.model.target.lake].partition_column

    @property
    def note(self) -> str:
        """The note of its commit, by which others know who made it."""
        return _note(self.context, self.planned)

    @property
    def carries(self) -> bool:
        """Return whether a commit has its records in its note too, as it is published first."""
        settings = self.context.settings.lakes[self.model.target.lake]
        return KINDS[settings.kind].carries_records

    @property
    def place(self) -> tuple[str, str] | None:
        """The partition column and its value; None for a slice that is not a partition."""
        return self.place_of(self.planned.only)

    def place_of(self, slice_: Slice) -> tuple[str, str] | None:
        return (self.column, slice_.value) if isinstance(slice_, Part) else None

    @property
    def writer(self) -> Writer:
        return Writer(self.model, self.column, self.context.session, self.context.sink)

    def say(self, phase: str) -> None:
        """A phase begins: also the moment to stop when the run was cancelled."""
        self.context.check_cancelled()
        self.context.sink(StepProgress(self.model.name, phase))

    def notice(self, message: str | None) -> None:
        if message:
            self.context.sink(Notice(message, self.model.name))

    def say_tests(self, found: Sequence[Sequence[CheckResult]]) -> None:
        """One event a test, of all slices."""
        for results in zip(*found, strict=True):
            worst = max(results, key=lambda each: (not each.passed, each.severity == "error"))
            failures = sum(each.failures for each in results)
            self.context.sink(
                CheckFinished(self.model.name, worst.name, worst.passed, failures, worst.severity)
            )

    @property
    def reader(self) -> Reader:
        return Reader(self.pins, self.context.session, self.views, self.context.settings.root)

    def resolve(
        self,
        beginning: Beginning | None = None,
        given: Mapping[QuerySource, DataFrame] = MappingProxyType({}),
        own_files: FilesRead = MappingProxyType({}),
    ) -> Resolved:
        """The model's query, with the values of its slice."""
        query, bindings = self.model.query, self.planned.bindings
        resolved = resolve(
            query,
            bindings,
            self.reader,
            beginning=beginning,
            given=given,
            own_files=own_files,
        )
        for said in resolved.notices():
            self.notice(said)
        self.log(resolved)
        return resolved

    def log(self, resolved: Resolved) -> None:
        """Hand the query on as it runs, for the log of the run."""
        sql = resolved.rendered.sql
        for view, name in resolved.names.items():
            sql = sql.replace(f"`{view}`", name)
        values = resolved.rendered.args(self.planned.bindings)
        self.context.sink(StepQuery(self.model.name, self.planned.slice, sql, values))

    def tester(self, bindings: Bindings, whole: Readable, called: str) -> Tester:
        """Of slices of the table as it is to be published, which is ``whole``."""
        return Tester(
            model=self.model,
            bindings=bindings,
            session=self.context.session,
            pins=self.pins.showing(self.model.target, whole),
            views=self.views,
            root=self.context.settings.root,
            called=called,
            samples=self.context.settings.test_samples,
        )

    def run_statements(self, query: Query) -> None:
        run_statements(
            query,
            self.model.target.lake,
            self.planned.bindings,
            self.tx,
            self.pins,
            session=self.context.session,
            root=self.context.settings.root,
        )

    def lineage(self, known: SliceRecord | None) -> Mapping[str, list[str]] | None:
        """Return what the model's columns derive from, where that may be new."""
        if known is not None and known.definition_hash == self.model.definition_hash:
            return None
        return lineage.recorded(
            self.model, lambda table: self.pins.readable(table).types, self.column
        )


def _note(context: RunContext, planned: PlannedStep) -> str:
    note = {"run": context.run_id, "step": planned.model.name, "slice": planned.slice}
    return json.dumps(note)


Known = Mapping[str, SliceRecord]  # records of slices, by their texts


def known_of(context: RunContext, planned: PlannedStep) -> tuple[Known, Requirement | None]:
    """The records of a batch's slices, and what its commit requires of those that are there."""
    model, texts = planned.model, tuple(slice_.text for slice_ in planned.slices)
    state, target = context.states[model.target.lake], model.target.qualified
    # What the model makes follows from the records of its slices, and would be wrong on top of what
    # another run recorded meanwhile. Others find that out by the rows.
    depends = model.strategy.builds_on_slices or model.reads_changes or model.reads_files
    if planned.rebuilds:  # what another run makes of it until the commit would be dropped
        records: Sequence[SliceRecord] = state.slices(target)
        return {each.slice: each for each in records}, Requirement.of(target, None, records)
    if model.upsert.sequence is not None:  # a tombstone of any slice decides about the others
        records = state.slices(target)
        own = {each.slice: each for each in records if each.slice in texts}
        return own, Requirement.of(target, None, records)
    if len(texts) > 1 or (depends and isinstance(planned.only, Interval)):
        records = state.slices(target)
    else:
        known = state.slice(target, texts[0])
        records = [] if known is None else [known]
    required = Requirement.of(target, texts, records) if depends else None
    return {record.slice: record for record in records}, required


def read_records(context: RunContext, planned: PlannedStep, pins: Pins) -> Mapping[str, ReadRecord]:
    """Return the records of what slices read, by their texts: each its own where its files are, and
    where some lack something.
    """
    slices = planned.slices
    by_slice = any(depends_on_slice(each.path) for each in planned.model.query.files)
    if len(slices) == 1 or not (by_slice or planned.without):
        record = _read_record(context, planned, pins)
        return dict.fromkeys((slice_.text for slice_ in slices), record)
    narrowed = ((each, context.plan.narrowed(planned, (each,))) for each in slices)
    return {slice_.text: _read_record(context, own, pins) for slice_, own in narrowed}


def _read_record(context: RunContext, planned: PlannedStep, pins: Pins) -> ReadRecord:
    """Return the record of what one attempt reads, under an id of its own."""
    model, root = planned.model, context.settings.root
    lakes = {table.lake for table in model.inputs} | {model.target.lake}
    return ReadRecord(
        read_id=new_uuid7(),
        target=model.target.qualified,
        run_id=context.run_id,
        lakes={lake: at for lake, at in pins.versions.items() if lake in lakes},
        inputs=(
            *(InputRead("table", str(table)) for table in model.changing_inputs),
            *(files_of(model, planned.bindings, root) if model.query.files else ()),
        ),
        arguments=model.given(context.plan.args),
        tests=model.terms,
        version=VERSION,
        missing=planned.work(planned.slices[0]).lacks,
        settings=context.conf,
    )
