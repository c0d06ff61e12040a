"""The rows of the state tables as values, and the process that a run belongs to.

A run whose process has ended was killed. The number of the process alone does not show that: the
system reuses numbers.

A commit requires that records are still those that were read: rows of an append, and how far a step
has read its input, follow from them. That is checked in the catalog transaction of the data, under
the lock that all writers of records take; no conflict of data files would say so.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.results import CheckResult, ColumnInfo
from penstock.errors import CommitConflict, PartitionError
from penstock.lakes.format.schema import type_text
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, interval_of
from penstock.model.time.partition import validate
from penstock.model.time.slice import shown
from penstock.model.values.strategy import strategy_named
from penstock.settings.environment_tables import Environment
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lakes.format.schema import TableSchema


WHOLE = ""  # the slice value of a table that is not partitioned


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, distinct from a later one with the same number."""

    host: str
    pid: int
    started: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """``state``: ``running``, ``done``, ``waiting``, ``failed``, ``cancelled`` or ``abandoned``.

    ``plan`` is the text of its `RecordedPlan`, ``retry_of`` the run that it carries on with. In old
    records these, the environment, the user and the exit code are not known.
    """

    run_id: str
    state: str
    partition: str | None
    args: Mapping[str, str | None]
    started_at: datetime
    process: ProcessId
    trigger: str = "manual"
    finished_at: datetime | None = None
    user: str | None = None
    exit_code: int | None = None
    plan: str | None = None
    retry_of: str | None = None
    environment: Environment | None = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """An attempt of a step in a run; ``slice`` is WHOLE for a whole table."""

    run_id: str
    step: str
    target: str
    slice: str
    state: str
    started_at: datetime
    finished_at: datetime | None = None
    rows: int | None = None
    snapshot_id: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """The record of a slice. Written only in the transaction of its data, or to confirm it.

    ``snapshot_id`` is the last at which the slice is known to have been as recorded; ``made_in``
    made it, None where it needed none (it never had a row). ``slicing`` and ``keys`` are the
    definition that it was made by (`PartitionSpec.slicing`, ``""`` for a whole table); None in old
    records. ``rows`` is None where those of the slice are not counted. ``inputs``: up to which
    snapshot the changes of each table are in it, for a model that reads changes. ``read_id`` is
    that of its `ReadRecord`; None in records of a time that had none. ``rolled_back`` is not
    stored: the rollback of the table that has undone it; ``lacked`` neither: what its read was made
    without, where that was looked up; nor ``other_settings``: which settings of Spark it was made
    under that are others now.
    """

    target: str
    slice: str
    run_id: str
    step: str
    strategy: str
    snapshot_id: int
    rows: int | None
    fingerprint: str | None
    definition_hash: str
    published_at: datetime
    slicing: str | None = None
    keys: tuple[str, ...] | None = None
    made_in: int | None = None
    inputs: Mapping[str, int] | None = None
    read_id: str | None = None
    rolled_back: int | None = None
    lacked: str | None = None
    other_settings: str | None = None

    @property
    def last_made_in(self) -> int | None:
        """The snapshot that made it what it is now."""
        return self.made_in if self.rolled_back is None else self.rolled_back

    def is_slice_of(self, model: Model) -> bool:
        """Return whether the model has such slices.

        An old record does not say; then the form of its value decides.
        """
        if self.slicing is not None:
            return self.slicing == model.slicing
        return may_be_slice(self.slice, model)


def may_be_slice(text: str, model: Model) -> bool:
    """Return whether a text has the form of a slice of a model that is not by time."""
    spec = model.partition
    if spec is None or text == WHOLE:
        return spec is None and text == WHOLE
    try:
        validate(spec, text)
    except PartitionError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class InputRead:
    """An input of a slice: a table by its full name, or a file by its path or URI.

    ``kind`` is ``table`` or ``file``. A table that was read at an earlier snapshot than its lake
    has ``snapshot``, a file of this machine its ``size`` in bytes and ``time`` of change, in
    nanoseconds since 1970; a small one also the ``hash`` of its content.
    """

    kind: str
    name: str
    snapshot: int | None = None
    size: int | None = None
    time: int | None = None
    hash: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Only what is set."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """Record what the slices of one commit were made from. ``lakes`` has the snapshot of each lake
    that was read, ``arguments`` the texts that the run gave, ``tests`` a hash of the terms
    that decided, ``version`` is Penstock's. ``missing`` is what they were made without, where the
    run was to (``--allow-missing``). ``settings`` are `SparkSettings.meaning`, None where they are
    not recorded.
    """

    read_id: str
    target: str
    run_id: str
    lakes: Mapping[str, int]
    inputs: tuple[InputRead, ...] = ()
    arguments: Mapping[str, str | None] = field(default_factory=dict)
    tests: str = ""
    version: str = ""
    missing: str | None = None
    settings: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """The result of a data test, with its run."""

    run_id: str
    target: str
    slice: str
    result: CheckResult
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A part of an interval that was made again and stays as it was, and the snapshot that made it:
    what reads another part is not behind that. ``rows`` is None where they are not counted.
    """

    slice: str
    made_in: int | None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    """Everything recorded with a slice: in its data's own transaction.

    ``first``: there was no table, so records of its slices are void; ``anew``: the table is dropped
    and rebuilt, so records of attempts are void too; ``built`` is the moment that the run is for,
    where it makes the table from nothing. ``read_id`` is that of its `ReadRecord`. ``gone`` are
    other slices whose records it takes the place of, but for what is ``left`` of them. ``requires``
    is what must hold of the records that are there. Where nothing of its data changes, in the whole
    commit or (``same``) in this slice, its state is ``kept_as``, and ``made_before`` the snapshot
    that made it; of an interval that several made, ``parts`` has each. ``written`` are the rows
    that a merge, an append or a history wrote for an interval, whose ``rows`` lie among others.
    """

    run_id: str
    step: str
    state: str  # done or unchanged
    target: str
    slice: str
    strategy: str
    rows: int | None
    fingerprint: str | None
    definition_hash: str
    columns: tuple[ColumnInfo, ...]
    checks: tuple[CheckResult, ...]
    at: datetime
    reason: str | None = None
    slicing: str | None = None
    keys: tuple[str, ...] | None = None
    inputs: Mapping[str, int] | None = None
    read_id: str | None = None
    first: bool = False
    anew: bool = False
    built: datetime | None = None
    lineage: Mapping[str, list[str]] | None = None
    gone: tuple[str, ...] = ()
    left: tuple[SliceRecord, ...] = ()
    requires: Requirement | None = None
    same: bool = False
    kept_as: str | None = None
    made_before: int | None = None
    parts: tuple[KeptPart, ...] = ()
    written: int | None = None

    @classmethod
    def of(cls, model: Model, run_id: str, slice_: str) -> Publication:
        """One of the model as it is defined, with nothing in it yet."""
        return cls(
            run_id=run_id,
            step=model.name,
            state="done",
            target=model.target.qualified,
            slice=slice_,
            strategy=model.strategy.name,
            rows=None,
            fingerprint=None,
            definition_hash=model.definition_hash,
            columns=(),
            checks=(),
            at=datetime.now(UTC),
            slicing=model.slicing,
            keys=model.keys,
        )

    @property
    def reported(self) -> int | None:
        """The number of rows that the result of its step has."""
        if not strategy_named(self.strategy).counts_rows:
            return None
        return self.written if self.rows is None else self.rows

    def records(self, as_of: int, made_in: int | None) -> Iterator[SliceRecord]:
        """Yield the record of its slice, or of its parts."""
        if not self.parts:
            yield self.record(as_of, made_in)
        for part in self.parts:
            of = self.record(as_of, part.made_in)
            yield replace(of, slice=part.slice, rows=part.rows, fingerprint=None)

    def record(self, as_of: int, made_in: int | None) -> SliceRecord:
        """The record of its slice, which was so at ``as_of``."""
        return SliceRecord(
            target=self.target,
            slice=self.slice,
            run_id=self.run_id,
            step=self.step,
            strategy=self.strategy,
            snapshot_id=as_of,
            rows=self.rows,
            fingerprint=self.fingerprint,
            definition_hash=self.definition_hash,
            published_at=self.at,
            slicing=self.slicing,
            keys=self.keys,
            made_in=made_in,
            inputs=self.inputs,
            read_id=self.read_id,
        )

    def made_by(self, snapshot_id: int | None) -> tuple[Publication, int | None]:
        """Return it as a commit of this snapshot records it, and the slice's own snapshot."""
        if snapshot_id is not None and not self.same:
            return replace(self, parts=()), snapshot_id
        return replace(self, state=self.kept_as or self.state), self.made_before


def lies_among_others(strategy: str, slice_: str) -> bool:
    """Whether the rows of a slice are not known apart from those of others: an interval whose rows
    were merged, added or versioned.
    """
    return not strategy_named(strategy).time_column and interval_of(slice_) is not None


def plain_sample(row: Mapping[str, Any]) -> dict[str, Any]:
    """A sample row as JSON takes it: what JSON has no type for becomes text."""
    return {
        key: value if value is None or isinstance(value, bool | int | str) else str(value)
        for key, value in row.items()
    }


def this_process() -> ProcessId:
    pid = os.getpid()
    return ProcessId(platform.node(), pid, _start_of(pid) or "")


def is_gone(process: ProcessId) -> bool:
    """True only when that is certain: a process of another host may well be alive."""
    if process.host != platform.node():
        return False
    return _start_of(process.pid) != process.started


def _start_of(pid: int) -> str | None:
    """When the process began, in whatever unit the system counts; None when it is gone."""
    if not Path("/proc/self/stat").exists():
        return _start_by_ps(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the command in parentheses and may hold anything: count from its end.
    rest = fields.rpartition(")")[2].split()
    return None if rest[0] in "ZX" else rest[19]


def _start_by_ps(pid: int) -> str | None:
    """On systems without /proc."""
    answer = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or None


def column_infos(
    schema: TableSchema, comments: Mapping[str, str] | None = None
) -> tuple[ColumnInfo, ...]:
    """``comments`` are by the folded names of columns."""
    known = comments or {}
    return tuple(
        ColumnInfo(column.name, type_text(column), column.nullable, known.get(fold(column.name)))
        for column in schema.columns
    )


_Identity = tuple[str, str]  # the run that recorded a slice, and when


@dataclass(frozen=True, slots=True)
class Requirement:
    """``records`` of slices of a target, by their texts, as they were read: all that overlap those
    to be published, ``slices``; all of the target where that is None.
    """

    target: str
    slices: tuple[str, ...] | None
    records: Mapping[str, _Identity]

    @classmethod
    def of(
        cls, target: str, slices: Iterable[str] | None, records: Sequence[SliceRecord]
    ) -> Requirement:
        from penstock.engine.state.tables import to_text

        texts = None if slices is None else tuple(slices)
        known = {each.slice: (each.run_id, to_text(each.published_at)) for each in records}
        return cls(target, texts, dict(_overlapping(known, texts)))

    def check(self, connection: Connection) -> None:
        """Raise CommitConflict where another run has recorded any of the slices since."""
        from sqlalchemy import select  # plans read records, and need no catalog

        from penstock.engine.state.tables import SLICE

        query = select(SLICE.c.slice, SLICE.c.run_id, SLICE.c.published_at)
        query = query.where(SLICE.c.target == self.target)
        if self.slices is not None and not any(interval_of(text) for text in self.slices):
            query = query.where(SLICE.c.slice.in_(self.slices))
        rows = {value: (run_id, at) for value, run_id, at in connection.execute(query)}
        now = dict(_overlapping(rows, self.slices))
        if now == self.records:
            return
        differ = [value for value, own in now.items() if self.records.get(value) != own]
        if differ:
            what = f"run {now[differ[0]][0]} has published {_said(differ)} of {self.target}"
        else:
            what = f"{_said(list(self.records))} of {self.target} was dropped"
        raise CommitConflict(
            f"{what} since it was read",
            hint="nothing was changed; run it again on the tables as they are now",
            data={"table": self.target, "slices": tuple(differ), "what": what},
        )


def _said(texts: Sequence[str]) -> str:
    first = shown(texts[0]) or "all"
    return first if len(texts) == 1 else f"{first} and {len(texts) - 1} more"


def _overlapping(
    records: Mapping[str, _Identity], slices: Sequence[str] | None
) -> Iterator[tuple[str, _Identity]]:
    if slices is None:
        yield from records.items()
        return
    wanted = frozenset(slices)
    spans = [each for text in slices if (each := interval_of(text)) is not None]
    for text, own in records.items():
        if text in wanted or (spans and _meets(interval_of(text), spans)):
            yield text, own


def _meets(interval: Interval | None, spans: Sequence[Interval]) -> bool:
    return interval is not None and any(interval.overlap(each) for each in spans)
