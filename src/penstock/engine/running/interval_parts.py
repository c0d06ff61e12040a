"""A range of time of which only some intervals pass their tests: the others are left out of its
commit, and are as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.planning.intervals import replaced
from penstock.engine.running.interval_tests import Verdict
from penstock.engine.running.publication import MadeSlice, tests_failed
from penstock.engine.running.step_attempt import StepAttempt
from penstock.engine.state.records import Publication, SliceRecord, StepRecord
from penstock.engine.state.store import divide_step, insert_checks, publish
from penstock.engine.strategies.slice import ByTime
from penstock.engine.strategies.time_range import rows_of
from penstock.errors import Location, PenstockError
from penstock.lake.candidate.state import Staged
from penstock.model.time.interval import Interval, interval_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlalchemy import Connection

    from penstock.engine.running.writing import Made
    from penstock.lake.staging import TransactionTable
    from penstock.lake.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of a query that are staged once more, without those of intervals that failed."""

    df: DataFrame
    made: Made

    @property
    def start(self) -> Location:
        return self.made.start

    def placed(self, error: PenstockError) -> PenstockError:
        return self.made.placed(error)


def with_replaced(
    made: Publication, records: Sequence[SliceRecord], table: TransactionTable, by: ByTime | None
) -> Publication:
    """With what becomes of the records of other intervals that it overlaps."""
    interval = interval_of(made.slice)
    if interval is None or made.first:
        return made
    found = replaced(records, interval)
    left = (replace(each, rows=_rows_left(table, each, by)) for each in found.left)
    return replace(made, gone=found.gone, left=tuple(left))


def _rows_left(table: TransactionTable, record: SliceRecord, by: ByTime | None) -> int | None:
    """How many rows a part of an interval has."""
    interval = interval_of(record.slice)
    if by is None or interval is None:
        return record.rows
    return rows_of(table, by, (interval,)).count()


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the range that ``attempt`` is for; ``staged`` are those that pass."""

    attempt: StepAttempt
    table: TransactionTable
    by_time: ByTime
    staged: Staged
    found: Sequence[Verdict]

    def publish(self, tx: Transaction, whole: Publication) -> list[MadeSlice]:
        """What became of each part; ``whole`` is the publication of a range that passes."""
        good, bad = self._good(whole), self._bad(whole)
        records = self.attempt.state.slices(whole.target)
        old = {what.slice: last_made_in(records, what.slice) for what in good}
        made: dict[str, int | None] = dict.fromkeys(each.slice for each in bad)

        def record(connection: Connection, snapshot_id: int | None) -> None:
            divide_step(connection, self._steps([*good, *bad]), whole.slice)
            for what in good:
                made_in = old[what.slice] if snapshot_id is None else snapshot_id
                publish(connection, made_in, what, as_of=snapshot_id or tx.base.id)
                made[what.slice] = made_in
            for what in bad:
                insert_checks(connection, what)

        if not good:
            tx.rollback()
            self.attempt.state.write(lambda connection: record(connection, None))
        else:
            tx.also(record)
            if tx.commit() is None:
                self.attempt.state.write(lambda connection: record(connection, None))
        both = sorted((*good, *bad), key=lambda what: what.slice)
        return [MadeSlice(what, made[what.slice]) for what in both]

    def _publication(self, whole: Publication, part: Verdict) -> Publication:
        return replace(whole, slice=part.slice.text, checks=part.checks, fingerprint=None)

    def _good(self, whole: Publication) -> list[Publication]:
        records = self.attempt.state.slices(whole.target)
        parts = [part for part in self.found if not part.failed]
        made: list[Publication] = []
        for part in parts:
            assert isinstance(part.slice, Interval), "a part of a range is one"
            rows = rows_of(self.table, self.by_time, (part.slice,)).count()
            what = replace(self._publication(whole, part), rows=rows)
            if len(parts) == 1:
                what = replace(what, fingerprint=self.staged.fingerprint)
            if made:  # the first has dropped what was there before
                what = replace(what, first=False, anew=False, lineage=None)
            elif what.first:
                records = []
            if self.staged.unchanged:
                what = replace(what, state="unchanged")
            what = with_replaced(what, records, self.table, self.by_time)
            records = [each for each in records if each.slice not in what.gone]
            records += what.left
            made.append(what)
        return made

    def _bad(self, whole: Publication) -> list[Publication]:
        made = []
        for part in self.found:
            if part.failed:
                error = tests_failed(part.checks, whole.columns, self.attempt.model.target)
                what = self._publication(whole, part)
                made.append(replace(what, state="failed", rows=0, reason=error.message))
        return made

    def _steps(self, parts: Sequence[Publication]) -> list[StepRecord]:
        return [
            StepRecord(
                *(what.run_id, what.step, what.target, what.slice, what.state, what.at, what.at),
                reason=what.reason,
            )
            for what in parts
        ]


def last_made_in(records: Sequence[SliceRecord], slice_: str) -> int | None:
    """The last snapshot that made any of an interval as it is."""
    interval = interval_of(slice_)
    assert interval is not None, "a part of a range is one"
    known = [
        made_in
        for record in records
        if (made_in := record.last_made_in) is not None
        and (own := interval_of(record.slice)) is not None
        and own.overlap(interval) is not None
    ]
    return max(known, default=None)
