"""Sequences of runs by chance of one model, compared with the plain reference after each.

A run may be of a moment or of a range, may make everything again, restate, or be killed: then what
listens to it raises at one of its events, and its process is recorded as another that is gone.
Between runs the source changes, and the table is rolled back.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from penstock.engine.state.store import State as Records
from penstock.events import Event, RunFinished, RunStarted, StepStarted
from penstock.model.time.interval import Interval, interval_of
from penstock.model.time.slice import shown
from penstock.project.project import Project
from tests import duck
from tests.engine.strategies.range_forms import form_of
from tests.engine.strategies.range_names import differing
from tests.engine.strategies.range_reference import (
    BOOM,
    DAY,
    HOUR,
    TOO_MUCH,
    Record,
    Request,
    Row,
    Run,
    Slice,
    State,
    candidate,
    counted,
    rows_read,
    slices_to_make,
    states_of_run,
    text_of,
    tried,
    units_of,
)
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACTIONS = 5
ROLLBACKS = 0.12  # how often in place of a run
_COLUMNS = "n INT, id INT, at TIMESTAMPTZ, got TIMESTAMPTZ, d STRING, h STRING, v INT, g STRING"
_NOBODY = 2**22 + 1  # no process has this number


class Killed(BaseException):
    """The end of a process."""


@dataclass
class Death:
    """Listens to a run, and ends it at the event of this number."""

    at: int | None
    heard: list[Event] = field(default_factory=list)
    killed: bool = False

    def __call__(self, event: Event) -> None:
        self.heard.append(event)
        if self.killed or (self.at is not None and len(self.heard) > self.at):
            self.killed = True
            raise Killed

    @property
    def begun(self) -> int:
        """How many batches were recorded as begun: an event comes just before that."""
        last = isinstance(self.heard[-1], StepStarted)
        return sum(isinstance(event, StepStarted) for event in self.heard) - last

    @property
    def joint(self) -> bool:
        """Whether one job was to make several slices."""
        starts = [event for event in self.heard if isinstance(event, StepStarted)]
        return any(str(event.slice).endswith(" slices)") for event in starts)


@dataclass(frozen=True)
class Seen:
    """The rows, what is recorded of slices, and the units that a run of all days would make."""

    rows: list[tuple[Any, ...]]
    records: dict[Slice, int | None]  # None where others changed it
    to_make: list[Slice] | None

    def __str__(self) -> str:
        listed = sorted(self.records.items(), key=repr)
        records = ", ".join(f"{_shown([key])}: {rows}" for key, rows in listed)
        to_make = None if self.to_make is None else _shown(self.to_make)
        rows = "".join(f"\n     {row}" for row in self.rows)
        return f"records {records}; to make {to_make}; rows{rows}"


class Play:
    """One project, its model and its source."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, name: str) -> None:
        self.chance = random.Random(f"{name} {seed}")
        self.form = form_of(self.chance, name)
        self.spark, self.root = spark, folder / "p"
        write_project(self.root, {"models/t": self.form.script})
        self.source: dict[int, Row] = {}
        self.state, self.now = State(), self.form.window[0] + self.form.unit
        self.log: list[str] = [self.form.script]
        self.kept: list[tuple[int, State]] = []
        self.made = 0
        self.in_parts: set[Slice] = set()  # recorded slices that status shows in parts
        self.undone: set[Slice] = set()  # units that a rollback took, until they are tried again
        self.project = self._open()
        lake = self.project.lake("main")
        if self.chance.random() < 0.5:
            lake.set_option("data_inlining_row_limit", 0)
        lake.sql(f"CREATE TABLE raw ({_COLUMNS})")

    def _open(self) -> Project:
        return Project.load(self.root, spark=self.spark)

    def play(self, actions: int) -> str | None:
        """What is wrong, and None. How slices are named is asked after the last action, and in
        sequences of full length after each.
        """
        try:
            for number in range(actions):
                self._change_source()
                wrong = self._act()
                if wrong is None and (actions >= ACTIONS or number == actions - 1):
                    wrong = self._names_differ()
                if wrong is not None:
                    return "\n".join((*self.log, wrong))
        finally:
            self.project.close()
        return None

    # --- the source

    def _change_source(self) -> None:
        lake, chance = self.project.lake("main"), self.chance
        for _ in range(chance.choice((0, 1, 1, 2, 3)) + (3 if not self.source else 0)):
            known = list(self.source.values())
            if known and chance.random() < 0.3:
                gone = chance.choice(known)
                lake.sql(f"DELETE FROM raw WHERE n = {gone.n}")
                del self.source[gone.n]
                self.log.append(f"- {gone}")
            elif known and chance.random() < 0.4:
                row = replace(chance.choice(known), v=self._value(), g=self._group())
                sets = f"v = {_sql(row.v)}, g = {_sql(row.g)}"
                lake.sql(f"UPDATE raw SET {sets} WHERE n = {row.n}")
                self.source[row.n] = row
                self.log.append(f"= {row}")
            else:
                row = self._row()
                self.source[row.n] = row
                lake.sql(f"INSERT INTO raw VALUES ({_values(row, self.form.zone)})")
                self.log.append(f"+ {row}")

    def _row(self) -> Row:
        self.made += 1
        chance, at = self.chance, self._moment()
        late = at + chance.choice((0, 0, 1, 2)) * self.form.unit
        double = chance.random() < 0.15
        key = chance.randrange(1, 5) if double else self.made + 10
        if self.form.strategy == "merge" and not double:
            free = set(range(1, 9)) - {row.id for row in self.source.values()}
            key = chance.choice(sorted(free)) if free else key
        none = chance.random() < 0.03
        at_or_none = None if none and self.form.slices == "interval" else at
        id_ = None if chance.random() < 0.02 else key
        return Row(self.made, id_, at_or_none, late, self._value(), self._group())

    def _value(self) -> int | None:
        bad = {0: BOOM, 1: TOO_MUCH, 2: TOO_MUCH}.get(self.chance.randrange(25))
        if bad == BOOM and self.form.slices == "interval" and self.form.reads != "own":
            bad = TOO_MUCH  # whether a row that is not stored is computed is up to Spark
        return bad or self.chance.choice((None, 1, 2, 3))

    def _group(self) -> str | None:
        return self.chance.choice((None, "a", "b"))

    def _moment(self) -> datetime:
        """In or around the window; often where a day begins or ends somewhere."""
        first, count = self.form.window
        moment = first + self.chance.randrange(count) * self.form.unit
        if self.form.unit == HOUR:
            return moment + self.chance.choice((0, 30, 59)) * timedelta(minutes=1)
        hour = self.chance.choice((0, 0.5, 1, 1.5, 12, 21.5, 22, 22.5, 23))
        end = timedelta(days=1) - timedelta(microseconds=1)
        return moment + self.chance.choice((hour * HOUR, hour * HOUR, end))

    # --- what is done

    def _act(self) -> str | None:
        first, count = self.form.window
        self.now += self.chance.choice((0, 1, 1, 2)) * self.form.unit
        self.now = min(self.now, first + (count + 1) * self.form.unit)
        if self.kept and self.chance.random() < ROLLBACKS:
            return self._roll_back()
        request = self._request()
        kill = self.chance.randrange(16) if self.chance.random() < 0.25 else None
        return self._run(request, kill)

    def _request(self) -> Request:
        since = self.chance.choice((0, 30, 12 * 60, 23 * 60 + 30)) * timedelta(minutes=1)
        now = self.now + since % self.form.unit
        if self.form.slices == "whole":
            return Request(now)
        way = self.chance.choice(("tick", "tick", "tick", "range", "range", "all", "restate"))
        cannot = self.form.strategy == "append" or self.form.name == "intervals, merge"
        if way == "restate" and (cannot or not self.state.exists):
            way = "range"
        if way == "tick":
            early = now - self.chance.choice((0, 0, 1, 2)) * self.form.unit
            if self.form.slices == "interval" or early < (self.form.start or self.form.window[0]):
                return Request(now)
            return Request(now, partition=text_of(self.form, early))
        first, count = self.form.window
        days = sorted((first + self.chance.randrange(-1, count) * DAY).date() for _ in range(2))
        if self.form.unit == HOUR:
            days = [first.date(), first.date()]
        return Request(now, (days[0], days[1]), way != "range", way == "restate")

    def _run(self, request: Request, kill: int | None) -> str | None:
        slices = slices_to_make(self.form, self.state, request)
        asked = (request.days, request.every, request.days is None and tuple(slices))
        run = Run(asked, restates=request.restates)
        source = list(self.source.values())
        pieces, states = states_of_run(self.form, self.state, source, slices, run)
        death = Death(kill)
        self.log.append(f"{request} kill={kill}: {_shown(slices)}")
        try:
            self._ask(request, death)
        except Killed:
            self._die()
        tried = {unit for piece in pieces for unit in units_of(self.form, piece)}
        self.undone -= tried
        if death.killed:
            run.interrupted = not isinstance(death.heard[-1], RunFinished)
            self.log.append(f"  killed at {death.heard[-1]}")
            states = list(self._half_done(states, pieces, death))
        else:
            states = states[-1:]
        seen = self._seen(request)
        fitting = [state for state in states if self._fits(state, seen, request)]
        if not fitting:
            expected = "\nor  ".join(str(self._expected(each, request)) for each in states)
            return f"made {seen}\nnot  {expected}"
        # A batch that added no rows leaves what was there: what is recorded tells.
        self.state = fitting[0 if death.killed and not self._has_recorded(death) else -1]
        if self.state.exists:
            self.kept.append((self.project.lake("main").catalog.latest().id, self.state))
        return self._spark_differs(seen) if self.chance.random() < 0.3 else None

    def _has_recorded(self, death: Death) -> bool:
        ids = {each.run_id for each in death.heard if isinstance(each, RunStarted)}
        records = Records(self.project.lake("main").catalog).slices("main.t")
        return any(record.run_id in ids for record in records)

    def _names_differ(self) -> str | None:
        days = self._all_days(Request(self.now))
        return differing(self.project, self.form, self.now, days)

    def _ask(self, request: Request, death: Death) -> None:
        asked: dict[str, Any] = {"fire_time": request.now, "on_event": death}
        if request.restates:
            assert request.days is not None
            result = self.project.restate("t", *request.days, **asked)
        elif request.days is not None:
            first, last = request.days
            result = self.project.run(from_=first, to=last, all_=request.every, **asked)
        else:
            result = self.project.run(request.partition, force=True, **asked)
        for step in result.steps:
            self.log.append(f"  {step.slice}: {step.state} {(step.reason or '').splitlines()[:1]}")

    def _die(self) -> None:
        """Everything of the run is gone with its process."""
        self.project.close()
        tables = "SELECT 1 FROM sqlite_master WHERE name = 'penstock_run'"
        with sqlite3.connect(self.root / "lake/meta.sqlite") as connection:
            if connection.execute(tables).fetchone():  # a run that has nothing to do makes none
                gone = f"UPDATE penstock_run SET pid = {_NOBODY} WHERE state = 'running'"
                connection.execute(gone)
        connection.close()
        self.project = self._open()

    def _half_done(
        self, states: Sequence[State], slices: Sequence[Slice], death: Death
    ) -> Iterator[State]:
        """After any number of batches, with those that had begun as failed."""
        begun = len(slices) if death.joint and death.begun else death.begun
        for number, state in enumerate(states[: begun + 1]):
            rest = slices[number:begun]
            yield tried(self.form, state, rest, good=False) if rest else state

    def _roll_back(self) -> str | None:
        """Slices that were not there then are missing again; what is recorded of others may be of
        later rows, which status says."""
        snapshot, then = self.chance.choice(self.kept)
        before, request, forgotten = self.state, Request(self.now), Record(Run(object()), 0)
        self.log.append(f"rolled back to {snapshot}")
        self.project.lake("main").table("t").rollback(snapshot)
        records = {
            key: replace(each if _same(then.records.get(key), each) else forgotten, sure=False)
            for key, each in before.records.items()
        }
        self.state = counted(self.form, State(True, then.rows, records, before.marks))
        seen = self._seen(request)
        to_make = self._to_make(Request(self.now + 2 * DAY))  # also what has not begun yet
        if to_make is not None:
            self.state = replace(self.state, marks=self._marks_after(before, then, to_make))
        if self._fits(self.state, seen, request):
            return None
        return f"made {seen}\nnot  {self._expected(self.state, request)}"

    def _marks_after(
        self, before: State, then: State, to_make: Sequence[Slice]
    ) -> dict[Slice, bool]:
        """A unit that had no rows then, or was made again with the same, may count as made or not:
        what has no rows needs no snapshot that would tell when it was made.
        """
        marks: dict[Slice, bool] = {}
        for unit, good in before.marks.items():
            old, new = (_of_unit(state, unit) for state in (then, before))
            same = _same(old, new)
            rows = self._rows_of(then, unit)
            free = good and not same and rows in ([], self._rows_of(before, unit))
            free |= unit in self.undone and then.marks.get(unit, False)  # which brings it back
            marks[unit] = unit not in to_make if free else good and then.marks.get(unit, False)
        self.undone |= {unit for unit, good in before.marks.items() if good and not marks[unit]}
        return marks

    def _rows_of(self, state: State, unit: Slice) -> list[str]:
        return sorted(str(row) for row in rows_read(self.form, state.rows, unit))

    # --- what is there

    def _seen(self, request: Request) -> Seen:
        lake = self.project.lake("main")
        latest = lake.catalog.latest()
        if lake.catalog.known_table("main", "t", latest) is None:
            return Seen([], {}, self._to_make(request))
        tag = "_wm_partition" if self.form.slices == "partition" else "NULL"
        query = f'SELECT n, id, "at", v, g, {tag} FROM t'
        rows = duck.rows(lake.catalog.uri, query)
        return Seen(_plain(rows), self._recorded(), self._to_make(request))

    def _recorded(self) -> dict[Slice, int | None]:
        found: dict[Slice, int | None] = {}
        self.in_parts.clear()
        (status,) = self.project.status("t")
        counts = {each.slice: each.rows for each in status.slices}
        for record in Records(self.project.lake("main").catalog).slices("main.t"):
            interval = interval_of(record.slice)
            key: Slice = (interval.start, interval.end) if interval else record.slice or None
            name = shown(record.slice)
            is_uncounted = name in counts and counts[name] is None
            found[key] = None if is_uncounted or record.rolled_back is not None else record.rows
            if name not in counts:  # status shows parts of it
                self.in_parts.add(key)
        return found

    @property
    def _counts(self) -> bool:
        return self.form.slices != "interval" or self.form.strategy == "time_range"

    def _to_make(self, request: Request) -> list[Slice] | None:
        if self.form.slices == "whole":
            return None
        days = self._all_days(request)
        (step,) = self.project.plan(from_=days[0], to=days[1], fire_time=request.now).steps
        slices: list[Slice] = [
            (each.start, each.end) if isinstance(each, Interval) else each.text
            for each in step.slices
        ]
        return [unit for each in slices for unit in units_of(self.form, each)]

    def _all_days(self, request: Request) -> tuple[date, date]:
        first, count = self.form.window
        return first.date(), (first + count * self.form.unit).date()

    def _expected(self, state: State, request: Request) -> Seen:
        rows = [
            (row.n, row.id, None if row.at is None else self.form.value(row.at), row.v, row.g, tag)
            for tag, row in state.rows
        ]
        to_make = None
        if self.form.slices != "whole":
            every = Request(request.now, self._all_days(request))
            made = slices_to_make(self.form, state, every)
            to_make = [unit for each in made for unit in units_of(self.form, each)]
        records: dict[Slice, int | None] = {k: each.rows for k, each in state.records.items()}
        return Seen(sorted(rows, key=repr), records, to_make)

    def _fits(self, state: State, seen: Seen, request: Request) -> bool:
        """Which intervals were recorded together makes no difference."""
        wanted = self._expected(state, request)
        if (seen.rows, seen.to_make) != (wanted.rows, wanted.to_make):
            return False
        units = [unit for key in seen.records for unit in units_of(self.form, key)]
        known = [unit for key in wanted.records for unit in units_of(self.form, key)]
        return sorted(units, key=repr) == sorted(known, key=repr) and all(
            self._is_sound(state, key, rows) for key, rows in seen.records.items()
        )

    def _is_sound(self, state: State, key: Slice, rows: int | None) -> bool:
        """Whether a record has as many rows as there are, or its table was rolled back. Rows that
        are merged or added by intervals are of no interval alone.
        """
        if not self._counts:
            return rows is None
        records = [_of_unit(state, unit) for unit in units_of(self.form, key)]
        is_unsure = any(each is not None and not each.sure for each in records)
        if rows is None or (is_unsure and key in self.in_parts):
            return is_unsure
        return rows == len(candidate(self.form, state.rows, key))

    def _spark_differs(self, seen: Seen) -> str | None:
        if not self.state.exists:
            return None
        tag = "_wm_partition" if self.form.slices == "partition" else "NULL"
        found = self.project.sql(f"SELECT n, id, v, g, {tag} AS tag FROM t").collect()
        rows = sorted((tuple(row) for row in found), key=repr)
        wanted = sorted(((n, id_, v, g, own) for n, id_, _, v, g, own in seen.rows), key=repr)
        return None if rows == wanted else f"Spark reads {rows}\nDuckDB {wanted}"


def _same(old: Record | None, new: Record | None) -> bool:
    return old is not None and new is not None and old.run is new.run


def _of_unit(state: State, unit: Slice) -> Record | None:
    """The record that a unit of time is in, or that of the slice."""
    if not isinstance(unit, tuple):
        return state.records.get(unit)
    spans = ((key, each) for key, each in state.records.items() if isinstance(key, tuple))
    return next((each for key, each in spans if key[0] <= unit[0] and unit[1] <= key[1]), None)


def _plain(rows: Any) -> list[tuple[Any, ...]]:
    """Moments with the zone of the reference."""
    return sorted((tuple(map(_moment, row)) for row in rows), key=repr)


def _moment(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


def _values(row: Row, zone: str) -> str:
    local = None if row.at is None else row.at.astimezone(ZoneInfo(zone))
    day, hour = (None, None) if local is None else (f"{local:%Y-%m-%d}", f"{local:%Y-%m-%dT%H}")
    return ", ".join(map(_sql, (row.n, row.id, row.at, row.got, day, hour, row.v, row.g)))


def _sql(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _shown(slices: Sequence[Slice]) -> str:
    return ", ".join(
        f"{each[0]:%m-%dT%H}..{each[1]:%m-%dT%H}" if isinstance(each, tuple) else str(each)
        for each in slices
    )


def wrong(
    spark: SparkSession, folder: Path, seed: int, name: str, actions: int = ACTIONS
) -> str | None:
    """What came out other than by the reference, with all that was done; None for nothing."""
    folder.mkdir(exist_ok=True)
    return Play(spark, folder, seed, name).play(actions)
