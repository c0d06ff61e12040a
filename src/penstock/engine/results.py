"""Answers of a project: frozen values, with the ``columns`` of their tables where they have one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from penstock.errors import PenstockError, StepError
from penstock.events import Notice
from penstock.model.values.strategy import strategy_named
from penstock.rendering.columns import Answers, html, html_table, read_columns
from penstock.rendering.text import count, line, listed, past_freshness, seconds
from penstock.rendering.wire import plain, plain_error
from penstock.states import SliceState


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One data test of one slice.

    ``samples``: some failing rows, as many as the setting ``test_samples`` allows. A failed test
    of ``severity`` ``warn`` did not keep the slice from being published; the rows that failed
    one of ``quarantine`` are in ``<table>_rejected``. ``query`` returns what
    fails, over the published table; it is empty in results of earlier versions.
    """

    name: str
    passed: bool
    failures: int
    samples: tuple[Mapping[str, Any], ...] = ()
    severity: str = "error"
    query: str = ""

    @property
    def outcome(self) -> str:
        """``passed``, ``warned`` or ``failed``."""
        if self.passed:
            return "passed"
        return "failed" if self.severity == "error" else "warned"

    def __repr__(self) -> str:
        failures = "" if self.passed else count(self.failures, "failure")
        return line(self, f"{self.name}: {self.outcome}", failures)


@dataclass(frozen=True, slots=True)
class RecordedCheck:
    """The latest result of a data test on a slice; ``slice`` is None for a whole table."""

    slice: str | None
    run_id: str
    time: datetime
    result: CheckResult

    def __repr__(self) -> str:
        of = f"{self.result.name} of {self.slice}" if self.slice else self.result.name
        failures = "" if self.result.passed else count(self.result.failures, "failure")
        return line(self, f"{of}: {self.result.outcome}", failures, f"{self.time:%Y-%m-%d %H:%M}")


class RecordedChecks(Answers[RecordedCheck]):
    """The result of `Project.tests`."""

    __slots__ = ()
    columns = read_columns(
        "slice=slice_name test=result.name outcome=result.outcome failures=result.failures "
        "tested=time run=run_id"
    )


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of a run.

    ``slice`` is the partition value, None for a whole table. ``state`` is ``done``,
    ``unchanged``, ``failed``, ``skipped`` or ``cancelled``. ``rows`` are the rows of the slice
    afterwards, of an interval that was merged, added or versioned those that the step wrote;
    ``snapshot_id`` is the snapshot that made it, None for a slice that never had rows.
    """

    name: str
    target: str
    strategy: str
    slice: str | None
    state: str
    seconds: float = 0.0
    rows: int | None = None
    snapshot_id: int | None = None
    checks: tuple[CheckResult, ...] = ()
    reason: str | None = None
    error: PenstockError | None = None
    columns: ClassVar = read_columns(
        "step=name slice state rows snapshot=snapshot_id seconds=duration reason"
    )

    def __repr__(self) -> str:
        named = f"{self.name} {self.slice}" if self.slice else self.name
        why = self.reason or (self.error and self.error.message)
        rows = count(self.rows, "row")
        return line(self, f"{named}: {self.state}", rows, seconds(self.seconds), why)


@dataclass(frozen=True, slots=True)
class StaleSlices:
    """Slices of a model that a run leaves as they are, and the command that rebuilds them."""

    model: str
    slices: int
    rebuild: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """``state`` is ``done``, ``waiting`` (all is done but what waits for an input), ``failed`` or
    ``cancelled``. Steps are in the order of the graph.

    ``notices`` are what is worth knowing and stopped nothing, in the order it was said. ``stale``
    are slices of other definitions that the run left, ``untested`` those of other data tests.
    """

    run_id: str
    state: str
    partition: str | None
    steps: tuple[StepResult, ...]
    seconds: float
    notices: tuple[Notice, ...] = ()
    stale: tuple[StaleSlices, ...] = ()
    untested: tuple[StaleSlices, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: all is done, 1: something failed, whatever else was done, 3: nothing failed, but
        something waits, 130: it was stopped. docs/cli.md has all codes.
        """
        return {"done": 0, "waiting": 3, "cancelled": 130}.get(self.state, 1)

    @property
    def document(self) -> dict[str, Any]:
        """The result as JSON has it: with the exit code, and errors as objects."""
        document = plain(self)
        for step, plain_step in zip(self.steps, document["steps"], strict=True):
            plain_step["error"] = step.error and plain_error(step.error)
        return {**document, "exit_code": self.exit_code}

    def raise_for_status(self) -> RunResult:
        """Raise the error of the first step that failed; else return the result::

            project.run().raise_for_status()

        Raises StepError where the run was cancelled, or no step says why it failed.
        """
        for step in self.steps:
            if step.state == "failed" and step.error is not None:
                raise step.error
        if self.state != "done":
            why = next((f": {step.name}: {step.reason}" for step in self.steps if step.reason), "")
            raise StepError(f"run {self.run_id} is {self.state}{why}")
        return self

    def __repr__(self) -> str:
        states = Counter(step.state for step in self.steps)
        steps = ", ".join(f"{number} {state}" for state, number in states.items())
        return line(self, f"{self.run_id}: {self.state}", steps, seconds(self.seconds))

    def _repr_html_(self) -> str:
        return html(StepResult.columns, self.steps, f"run {self.run_id}: {self.state}")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A table that was dropped, or ``slices`` of it. ``rows`` are those that went.

    ``snapshot_id`` is None where the table was gone already, and only its records went. ``files``:
    the records were of files, which stay.
    """

    table: str
    slices: tuple[str, ...]
    rows: int
    snapshot_id: int | None
    files: bool = False

    def __repr__(self) -> str:
        at = "" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        return line(self, self.table, listed(self.slices), count(self.rows, "row"), at)


@dataclass(frozen=True, slots=True)
class AdoptedSlice:
    """Rows that are recorded as those of a slice; ``slice`` is None for a whole table."""

    slice: str | None
    rows: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """Say what was recorded of a table that others had filled, as it was at ``snapshot_id``."""

    model: str
    table: str
    slices: tuple[AdoptedSlice, ...]
    snapshot_id: int
    notices: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.slices)


@dataclass(frozen=True, slots=True)
class SliceStatus:
    """``state`` is ``missing``, ``running``, ``failed``, ``skipped`` (something that it depends on
    failed), ``waiting`` (for an input that is not there, which ``reason`` names), ``materialized``,
    ``unfinished`` (made before its time was over), ``stale`` (the script has changed since),
    ``changed outside`` (its rows have, by ``outside_snapshot``: None where that has expired),
    ``behind`` (what it was made from has other rows since; ``reason`` says which), ``other kind``
    (of a `partitioned` line that has changed) or ``no model``.

    ``rows`` is None where none are recorded, and where others have changed them since. ``tests``,
    ``tests_failed`` and ``tests_warned`` count the latest results recorded for it.
    ``time`` is when its current content was last published or confirmed, or when the attempt in
    ``state`` was. ``intervals``: of a model by time, how many it stands for. ``is_overdue``: it is
    older than the freshness of its model, and could be newer.
    """

    slice: str | None
    state: SliceState
    rows: int | None = None
    snapshot_id: int | None = None
    time: datetime | None = None
    tests: int = 0
    tests_failed: int = 0
    tests_warned: int = 0
    run_id: str | None = None
    reason: str | None = None
    outside_snapshot: int | None = None
    intervals: int = 1
    is_overdue: bool = False
    columns: ClassVar = read_columns(
        "slice=slice_name state=slice_state rows snapshot=snapshot_id tests=tests_text time reason"
    )

    @property
    def tests_text(self) -> str | None:
        """``2/3``: how many of its tests passed."""
        passed = self.tests - self.tests_failed - self.tests_warned
        return f"{passed}/{self.tests}" if self.tests else None

    def __repr__(self) -> str:
        named = f"{self.slice}: {self.state}" if self.slice else self.state
        late = "past its freshness" if self.is_overdue else ""
        return line(self, named, late, count(self.rows, "row"), self.reason)


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """``partitioned`` is the partition kind, None for a whole-table model.

    ``model`` is None for a table that a model made once and none makes any more. ``freshness`` is
    how old its slices may be, as the model says it.
    """

    model: str | None
    target: str
    strategy: str
    partitioned: str | None
    slices: tuple[SliceStatus, ...]
    freshness: str | None = None

    @property
    def state(self) -> str:
        """The most pressing state of its slices; `embedded` of what makes none."""
        if not strategy_named(self.strategy).runs:
            return self.strategy
        states = (slice_.state for slice_ in self.slices)
        return min(states, key=lambda state: state.urgency, default=SliceState.MISSING)

    @property
    def lateness(self) -> str:
        """Its slices past the freshness: ``2 past their freshness (1h)``, or an empty text."""
        late = sum(part.is_overdue for part in self.slices)
        return past_freshness(late, self.freshness, has_many=self.partitioned is not None)

    @property
    def makes(self) -> str:
        """Its table; of an EMBEDDED model, where its query is."""
        if not strategy_named(self.strategy).runs:
            return f"nothing: its query stands in the models that read {self.target}"
        return self.target

    @property
    def rows(self) -> int | None:
        if any(each.rows is None and each.state.is_as_recorded for each in self.slices):
            return None  # a part of a batch, of which no count is recorded
        known = [slice_.rows for slice_ in self.slices if slice_.rows is not None]
        return sum(known) if known else None

    def __repr__(self) -> str:
        slices = count(len(self.slices), "slice") if self.partitioned else ""
        rows = count(self.rows, "row")
        return line(self, f"{self.model}: {self.state}", self.lateness, slices, rows)

    def _repr_html_(self) -> str:
        return html(SliceStatus.columns, self.slices, f"{self.model} makes {self.makes}")


class Statuses(Answers[ModelStatus]):
    """The result of `Project.status`: one status a model."""

    __slots__ = ()
    columns = read_columns("model table=target strategy state=model_state rows")


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """``type`` is the format's text: ``int32``, ``decimal(10,2)``, ``list(varchar)``."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    columns: ClassVar = read_columns("name type nullable description=comment")


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The columns of a table from ``snapshot_id`` on. Versions count from 1.

    ``lineage`` says what each column derives from by the last definition that made this version.
    """

    version: int
    snapshot_id: int | None
    time: datetime
    columns: tuple[ColumnInfo, ...]
    lineage: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepRun:
    """A past attempt of a step."""

    run_id: str
    step: str
    slice: str | None
    state: str
    started_at: datetime
    seconds: float | None
    rows: int | None
    snapshot_id: int | None
    reason: str | None
    columns: ClassVar = read_columns(
        "started=started_at slice=slice_name state rows snapshot=snapshot_id time=duration reason"
    )


@dataclass(frozen=True, slots=True)
class ModelDetail:
    """Everything about one model. ``columns`` is empty while there is no table yet; ``about`` has
    what its script says for people, by the names of the properties. ``libraries`` are those whose
    macros its query calls; ``unit`` says what a slice of its table is.
    """

    status: ModelStatus
    path: str
    keys: tuple[str, ...]
    inputs: tuple[str, ...]
    tests: tuple[str, ...]
    columns: tuple[ColumnInfo, ...]
    schema_versions: tuple[SchemaVersion, ...]
    query: str
    runs: tuple[StepRun, ...]
    about: Mapping[str, str] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    unit: str = "whole table"

    def __repr__(self) -> str:
        tests, columns = count(len(self.tests), "test"), count(len(self.columns), "column")
        return line(self, f"{self.status.model}: {self.status.state}", columns, tests)

    def _repr_html_(self) -> str:
        columns = html(ColumnInfo.columns, self.columns) if self.columns else ""
        return self.status._repr_html_() + columns


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A snapshot of one lake."""

    lake: str
    id: int
    time: datetime
    changes: str
    author: str | None
    message: str | None
    extra: str | None

    def __repr__(self) -> str:
        said = self.message and repr(self.message)
        return line(
            self, f"{self.lake} {self.id}", f"{self.time:%Y-%m-%d %H:%M:%S}", self.changes, said
        )


class Snapshots(Answers[SnapshotInfo]):
    """The result of `Project.snapshots`: the newest first."""

    __slots__ = ()
    columns = read_columns("lake snapshot=id time changes author message")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Rows of a query, as Python values. ``columns`` are names with their types in Spark's SQL.

    ``more``: there are more rows than were asked for. A statement without rows has no columns.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False

    def __repr__(self) -> str:
        number = f"{'the first ' if self.more else ''}{count(len(self.rows), 'row')}"
        return line(self, number, "columns " + listed([name for name, _ in self.columns]))

    def _repr_html_(self) -> str:
        note = f"the first {count(len(self.rows), 'row')}" if self.more else ""
        return html_table([name for name, _ in self.columns], self.rows, note)
