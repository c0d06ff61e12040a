"""One attempt at many slices of a model: one query, one staging, one commit.

Data tests are evaluated for each slice on the joint candidate. Slices that fail are left out of the
commit, and the others are published with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.inputs.pinned_tables import (
    Pins,
    Readable,
    Rows,
    candidate_of,
    pin,
    slice_as_table,
    table_name,
    types_of,
)
from penstock.engine.inputs.resolve import Resolved, Views, resolve
from penstock.engine.results import CheckResult
from penstock.engine.running.descriptions import describe
from penstock.engine.running.publication import MadeSlice, publication, tests_failed
from penstock.engine.running.redefinition import made_since
from penstock.engine.running.step_attempt import StepAttempt
from penstock.engine.state.records import SliceRecord
from penstock.engine.state.requirement import Requirement
from penstock.engine.state.store import publish
from penstock.lake.candidate.state import Staged
from penstock.lake.format.naming import fold
from penstock.model.joint.joint import Joint, are_monotone, joint_query
from penstock.model.joint.slice_condition import NotJoint, Told
from penstock.model.query.render import trial_names
from penstock.model.time.slice import Part

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.rows.slices import WrittenSlices
    from penstock.lake.staging import TransactionTable
    from penstock.lake.transaction import Transaction

_CALLED = "\0slice\0"  # stands for the slice in the text of a test's query


class JointAttempt(StepAttempt):
    """One attempt at all slices of one planned step, which are partitions."""

    __slots__ = ()

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(slice_.text for slice_ in self.planned.slices)

    def execute(self) -> list[MadeSlice]:
        """In the order of the slices. Raises NotJoint for what has to be made one by one, Cancelled
        and what the tree of errors has; then nothing was published.
        """
        made: list[MadeSlice] = []
        required = None
        if self.depends_on_records:
            target = self.model.target.qualified
            required = Requirement.of(target, self.values, self.state.slices(target))
        with self.transaction() as (tx, views):
            made = self._execute_in(tx, views)
            if all(each.failed for each in made):
                tx.rollback()
            else:
                self._commit(tx, made, required)
        failed = [each.publication for each in made if each.failed]
        if failed:
            self.state.fail_tests(*failed)
        return made

    def _execute_in(self, tx: Transaction, views: Views) -> list[MadeSlice]:
        table = tx.table(table_name(self.model.target))
        known = self._known(tx, table)
        pins = pin(self.world.lakes, self.model, tx.base, self.world.plan.makers)
        self.say("querying")
        resolved = self._resolve(pins, views)
        writer = self.writer
        writer.check_tests(resolved.df.drop(self.column), table)
        first = not table.exists
        tx.create_schema(self.model.target.schema)
        self.say("writing")
        written = writer.write_slices(table, resolved, len(self.values))
        staged = self._stage(table, written, self.values)
        self.say("testing")
        checks = self._test(table, pins, views)
        good = [value for value in self.values if not _failed(checks[value])]
        if 0 < len(good) < len(self.values):
            staged |= self._stage(table, written, good)
        self.say("publishing")
        return self._made(table, staged, checks, known, pins, first=first)

    def _known(self, tx: Transaction, table: TransactionTable) -> dict[str, SliceRecord]:
        """The records of the model's slices. Raises NotJoint for a table that others made."""
        if not table.exists:
            if tx.kind_of(table_name(self.model.target)) is not None:
                raise NotJoint("its name is a view's")
            return {}
        if not table.fits_slices(self.column):
            raise NotJoint("files of its table hold rows of several slices")
        records = self.state.slices(self.model.target.qualified)
        for record in records:
            if record.strategy != self.model.strategy.name or not record.is_slice_of(self.model):
                raise NotJoint(f"its slice {record.slice} was made in another way")
        since = made_since(table)
        if not any(each.snapshot_id >= since for each in records) and table.count_rows():
            raise NotJoint("its table has rows that no run has written")
        return {record.slice: record for record in records}

    def _resolve(self, pins: Pins, views: Views) -> Resolved:
        """The joint query; its last column is the slice."""
        spec = self.model.partition
        assert spec is not None, "it has slices"

        def asked(text: Callable[[Joint], str]) -> Resolved:
            return resolve(
                self.model.query,
                self.planned.bindings,
                self.reader(pins, views),
                shape=lambda rendered: text(joint_query(rendered)),
            )

        own = joint_query(self.model.query.render(trial_names(self.model.query.sources)))
        told: list[Told] = []
        for number, condition in enumerate(own.conditions):
            if condition.by_time:
                told.append(condition.by_bounds(self.values, spec))
                continue
            trial = asked(partial(_trial, number=number))
            told.append(condition.by_value(self.values, trial.df.dtypes[0][1]))
        resolved = asked(lambda joint: joint.query(self.column, told))
        if [fold(name) for name in resolved.df.columns].count(fold(self.column)) != 1:
            raise NotJoint(f"its SELECT has a column {self.column}")
        return resolved

    def _stage(
        self, table: TransactionTable, written: WrittenSlices, values: Sequence[str]
    ) -> dict[str, Staged]:
        staged = table.stage_slices(written, values, replaces=self.model.strategy.replaces)
        describe(table, self.model)
        return staged

    def _test(
        self, table: TransactionTable, pins: Pins, views: Views
    ) -> Mapping[str, tuple[CheckResult, ...]]:
        """The results of each slice's tests.

        Rows of many slices that pass a test together pass it slice by slice, unless it is one of
        `MONOTONE`; so slices are looked at together, and by halves where they fail.
        """
        if not self.model.data_tests:
            return dict.fromkeys(self.values, ())
        together = are_monotone(self.model)
        found: dict[str, tuple[CheckResult, ...]] = {}
        left = [self.values] if together else [(value,) for value in self.values]
        while left:
            values = left.pop()
            self.world.check_cancelled()
            results = self._tested(table, values, pins, views)
            if len(values) > 1 and not all(result.passed for result in results):
                half = len(values) // 2
                left += [values[half:], values[:half]]
                continue
            for value in values:
                found[value] = tuple(self._called(result, value) for result in results)
        self.say_tests(list(found.values()))
        return found

    def _tested(
        self, table: TransactionTable, values: Sequence[str], pins: Pins, views: Views
    ) -> tuple[CheckResult, ...]:
        step = self.planned
        if len(values) == 1:
            step = self.world.plan.narrowed(step, (Part(values[0]),))
            slice_ = candidate_of(table, (self.column, values[0]))
        else:
            slice_ = Readable(
                types_of(table.schema),
                lambda _: Rows(table.slices_df(values)),
                lambda _: None,
            )
        tester = self.tester(step.bindings, pins, candidate_of(table), views, _CALLED)
        return tester.run(slice_)

    def _called(self, result: CheckResult, value: str) -> CheckResult:
        called = slice_as_table(self.model.target, (self.column, value))
        return replace(result, query=result.query.replace(_CALLED, called))

    def _made(
        self,
        table: TransactionTable,
        staged: Mapping[str, Staged],
        checks: Mapping[str, tuple[CheckResult, ...]],
        known: Mapping[str, SliceRecord],
        pins: Pins,
        *,
        first: bool,
    ) -> list[MadeSlice]:
        made: list[MadeSlice] = []
        pending = first  # the first record of a new table voids those of an old one
        for slice_ in self.planned.slices:
            value = slice_.text
            step = replace(self.planned, slices=(slice_,))
            what = publication(self.world.run_id, step, staged[value], checks[value], table.schema)
            before = known.get(value)
            if _failed(checks[value]):
                error = tests_failed(checks[value], what.columns, self.model.target)
                failed = replace(
                    what, state="failed", rows=0, fingerprint=None, reason=error.message
                )
                made.append(MadeSlice(failed, None))
                continue
            if staged[value].unchanged:
                old = before.fingerprint if before else None
                same = before is not None or staged[value].slice_rows > 0
                what = replace(
                    what,
                    state="unchanged" if same else "done",
                    fingerprint=what.fingerprint or old,
                )
            later = any(not each.failed for each in made)
            new = None if later else self.lineage(before, pins)
            made.append(
                MadeSlice(
                    replace(what, first=pending, lineage=new),
                    before.last_made_in if before and staged[value].unchanged else None,
                )
            )
            pending = False
        return made

    def _commit(self, tx: Transaction, made: list[MadeSlice], required: Requirement | None) -> None:
        """Publish what passed; ``made`` gets the snapshots that made it."""
        good = [at for at, each in enumerate(made) if not each.failed]
        base = tx.base.id

        def record(connection: Connection, snapshot_id: int | None) -> None:
            if required is not None:
                required.check(connection)
            for at in good:
                each = made[at]
                same = each.publication.state == "unchanged" or snapshot_id is None
                made_in = each.made_in if same else snapshot_id
                as_of = base if snapshot_id is None else snapshot_id
                publish(connection, made_in, each.publication, as_of=as_of)
                made[at] = replace(each, made_in=made_in)

        tx.also(record)
        if tx.commit() is None:
            self.state.write(lambda connection: record(connection, None))


def _trial(joint: Joint, number: int) -> str:
    return joint.trials[number]


def _failed(checks: Iterable[CheckResult]) -> list[CheckResult]:
    return [check for check in checks if check.outcome == "failed"]
