"""Sequences by chance of edits and runs of some models that read each other.

After each action `status` must name every slice that is not what its query makes of its inputs as
they are, and no slice whose inputs have not changed since it was made. What a run has made must be
what its query makes of what is there. In the end everything is made, and each table must be what it
is from scratch; then a run has nothing to do.

A whole table that a sliced model reads without the bounds of its slice is held as it was when the
slice was made.
"""

from __future__ import annotations

import random
import sqlite3
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from penstock.engine.results import RunResult
from penstock.engine.state.store import State as Records
from penstock.errors import ArgumentError, PartitionError
from penstock.model.time.interval import Interval, interval_of
from penstock.project import Project
from tests import duck
from tests.engine.strategies.input_models import (
    BOOM,
    EVENTS,
    FILES,
    GROUPS,
    NAMES,
    TOO_MUCH,
    WHOLE,
    Cadence,
    Model,
    Read,
    Row,
    Unit,
    World,
    script,
    sql_moment,
    world_of,
)
from tests.engine.strategies.input_runs import Duckling
from tests.engine.strategies.range_reference import DAY, HOUR
from tests.engine.strategies.range_sequences import Death, Killed
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACTIONS = 7
_COLUMNS = "ts TIMESTAMPTZ, d VARCHAR, g VARCHAR, v BIGINT"
_NOBODY = 2**22 + 1  # no process has this number
_BAD = ("failed", "missing", "skipped", "waiting", "running")
Tables = Mapping[str, Sequence[Row]]
Named = Mapping[str, tuple[str, str]]  # the state and the reason of slices, by their names


class Wrong(Exception):
    """Something came out otherwise than the reference says."""


@dataclass(frozen=True)
class Change:
    """Rows of a table that came or went by one action; ``anew``: nobody can say which."""

    action: int
    rows: frozenset[Row]
    anew: bool = False


@dataclass(frozen=True)
class Made:
    """When a slice was made, of which definition, and what there was then, in its ``file`` too."""

    action: int
    meaning: tuple[object, ...]
    tables: Tables
    rows: Sequence[Row]
    file: Sequence[tuple[str, int]] | None = None


@dataclass
class Seen:
    """What is there after each action, what changed in it, and which slices were made by when."""

    action: int = 0
    tables: Tables = field(default_factory=dict)
    changes: dict[str, list[Change]] = field(default_factory=lambda: defaultdict(list))
    made: dict[tuple[str, str], Made] = field(default_factory=dict)
    back: dict[str, int] = field(default_factory=dict)  # the last rollback of a table
    expired: int = -1  # when the lake let go of its snapshots
    foreign: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def now(self, tables: Tables, anew: Collection[str] = ()) -> None:
        for name in {*tables, *self.tables}:
            before, after = (Counter(of.get(name, ())) for of in (self.tables, tables))
            rows = frozenset((before - after) | (after - before))
            if rows or name in anew:
                self.changes[name].append(Change(self.action, rows, name in anew))
        self.tables = tables

    def content(self, name: str) -> Sequence[Row]:
        return self.tables.get(name, ())

    def is_forgotten(self, name: str, made: Made) -> bool:
        """Whether others changed a table after a slice was made, by snapshots that expired."""
        return any(made.action <= at <= self.expired for at in self.foreign[name])

    def since(self, name: str, action: int) -> Iterator[Change]:
        return (each for each in self.changes.get(name, ()) if each.action > action)


class Play:
    """One project, its sources and what is done with them."""

    def __init__(self, spark: SparkSession | None, folder: Path, seed: int) -> None:
        self.chance = random.Random(f"inputs {seed}")
        self.world: World = world_of(self.chance)
        self.spark, self.root, self.seen = spark, folder / "p", Seen()
        self.log: list[str] = []
        for model in self.world.models.values():
            self.log += [f"-- models/{model.name}.sql", script(model)]
        self.values: dict[str, list[tuple[str, int]]] = {}  # of files
        self.snapshots: list[int] = []
        self.views: set[str] = set()
        self.now = self.world.begin + 12 * HOUR
        self._write()
        (self.root / "lake").mkdir()
        (self.root / "data").mkdir()
        self.duck = self._duck()
        self._sql(f"CREATE TABLE {EVENTS} ({_COLUMNS})", f"CREATE TABLE {NAMES} ({_COLUMNS})")
        names = [f"({_at(self.world.begin)}, '{g}', {n})" for n, g in enumerate(GROUPS, 1)]
        self._sql(f"INSERT INTO {NAMES} VALUES {', '.join(names)}")
        for _ in range(4):
            self._insert()
        for day in self._file_days():
            self._write_file(day)
        self.project = self._open()
        self.names = {
            name: dict(self._names(model.cadence)) if model.kind == "time" and model.cadence else {}
            for name, model in self.world.models.items()
        }
        self._observe()

    def _open(self) -> Project:
        return Project.load(self.root, spark=self.spark)

    def _write(self) -> None:
        scripts = {f"models/{m.name}": script(m) for m in self.world.models.values()}
        write_project(self.root, scripts)

    def _names(self, cadence: Cadence) -> Iterator[tuple[str, list[str]]]:
        """The units of intervals, by the names that status gives these."""
        units = list(cadence.units(self.world.begin - DAY, self.world.end + 2 * DAY))
        for first, last in combinations(range(len(units) + 1), 2):
            span = Interval(units[first].start, units[last - 1].end)
            yield str(span), [unit.name for unit in units[first:last]]

    def play(self, actions: int) -> str | None:
        try:
            for _ in range(actions):
                self.seen.action += 1
                self._act()
            self._finish()
        except Wrong as wrong:
            return "\n".join((*self.log, f"WRONG: {wrong}"))
        except Exception:
            return "\n".join((*self.log, traceback.format_exc()))
        finally:
            self.project.close()
            self.duck.close()
        return None

    # --- what is done

    def _act(self) -> None:
        if self.chance.random() < 0.5:
            self._run_some()
            return
        edits: list[Callable[[], None]] = [self._insert, self._insert, self._update, self._delete]
        edits += [self._write_file, self._write_names, self._foreign, self._roll_back]
        edits += [self._maintain, self._redefine]
        for _ in range(self.chance.choice((1, 1, 2))):
            self.chance.choice(edits)()
        self._observe()
        self._check()

    def _duck(self) -> duckdb.DuckDBPyConnection:
        """DuckDB with the lake attached as ``lk`` throughout; Penstock and it take turns."""
        connection = duck.connect()
        connection.execute(
            f"ATTACH 'ducklake:sqlite:{self.root}/lake/meta.sqlite' AS lk (DATA_PATH "
            f"'{self.root}/lake/data/', DATA_INLINING_ROW_LIMIT {self.chance.choice((0, 0, 20))})"
        )
        connection.execute("USE lk")
        return connection

    def _sql(self, *statements: str) -> None:
        for statement in statements:
            self.log.append(statement)
            self.duck.execute(statement)

    def _moment(self) -> datetime:
        """Often where a day begins or ends somewhere."""
        day = self.world.begin + self.chance.randrange(-1, self.world.days + 1) * DAY
        hour = self.chance.choice((0, 0.5, 1, 1.5, 2.5, 12, 21.5, 22, 22.5, 23, 23.5))
        return day + hour * HOUR

    def _number(self) -> int:
        return self.chance.choice((1, 2, 3, 4, 5, 6, 7, 8) * 5 + (BOOM, TOO_MUCH))

    def _insert(self) -> None:
        rows = [
            f"({_at(self._moment())}, '{self.chance.choice(GROUPS)}', {self._number()})"
            for _ in range(self.chance.choice((1, 1, 2, 4)))
        ]
        self._sql(f"INSERT INTO {EVENTS} VALUES {', '.join(rows)}")

    def _some_event(self) -> str:
        rows = self.seen.content(EVENTS)
        at, g, v, _ = self.chance.choice(rows) if rows else (self.world.begin, "a", 1, None)
        return f"ts = {sql_moment(at)} AND g = '{g}' AND v = {v}"

    def _update(self) -> None:
        value = self._number()  # another one: rows written again by others count as changed
        where = f"{self._some_event()} AND v <> {value}"
        self._sql(f"UPDATE {EVENTS} SET v = {value} WHERE {where}")

    def _delete(self) -> None:
        self._sql(f"DELETE FROM {EVENTS} WHERE {self._some_event()}")

    def _write_names(self) -> None:
        group, value = self.chance.choice(GROUPS), self.chance.randrange(1, 9)
        self._sql(f"UPDATE {NAMES} SET v = {value} WHERE g = '{group}' AND v <> {value}")

    def _days(self) -> list[date]:
        return [self.world.first + n * DAY for n in range(self.world.days)]

    def _file_days(self) -> list[date]:
        """One more than those of ranges: a plain run makes the day of its moment."""
        return [*self._days(), self.world.last + DAY]

    def _write_file(self, day: date | None = None, *, good: bool = False) -> None:
        """A file that is there, corrected, empty or gone."""
        if FILES not in self.world.models:
            return
        name = str(day or self.chance.choice(self._file_days()))
        path, way = self.root / "data" / f"{name}.csv", self.chance.random()
        if way < 0.2 and not good:
            path.unlink(missing_ok=True)
            self.values.pop(name, None)
            self.log.append(f"rm data/{name}.csv")
            return
        count = self.chance.choice((0, 1, 2, 3))
        values = [(self.chance.choice(GROUPS), self.chance.randrange(1, 9)) for _ in range(count)]
        path.write_text("".join(f"{g},{v}\n" for g, v in [("g", "v"), *values]))
        self.values[name] = values
        self.log.append(f"echo {values} > data/{name}.csv")

    def _foreign(self) -> None:
        """Another writer changes rows of a slice."""
        stored = [m for m in self.world.models.values() if self.seen.content(m.name)]
        stored = [m for m in stored if m.is_stored]
        if not stored:
            return
        model = self.chance.choice(stored)
        self.seen.foreign[model.name].append(self.seen.action)
        row = self.chance.choice(self.seen.content(model.name))
        where = f"g = '{row[1]}' AND ts = {sql_moment(row[0])}"
        tag = "" if model.kind != "part" else f" AND _wm_partition = '{row[3]}'"
        way = self.chance.choice(("update", "delete", "insert"))
        if way == "update":
            self._sql(f"UPDATE {model.name} SET v = v + 1 WHERE {where}{tag}")
        elif way == "delete":
            self._sql(f"DELETE FROM {model.name} WHERE {where}{tag}")
        else:
            part = "" if model.kind != "part" else f", '{row[3]}'"
            values = f"{_at(row[0])}, '{row[1]}', 3{part}"
            columns = "ts, d, g, v" + (", _wm_partition" if part else "")
            self._sql(f"INSERT INTO {model.name} ({columns}) VALUES ({values})")

    def _roll_back(self) -> None:
        tables = [m.name for m in self.world.models.values() if m.is_stored]
        table = self.chance.choice([EVENTS, *(name for name in tables if self.seen.content(name))])
        if not self.snapshots:
            return
        snapshot = self.chance.choice(self.snapshots[-6:])
        lake = self.project.lake("main")
        if lake.catalog.find_table("main", table, snapshot) is None:
            return
        self.log.append(f"roll back {table} to {snapshot}")
        lake.table(table).rollback(snapshot)
        self.seen.back[table] = self.seen.action
        self.seen.foreign[table].append(self.seen.action)

    def _maintain(self) -> None:
        call = self.chance.choice(
            (
                "CALL ducklake_merge_adjacent_files('lk')",
                "CALL ducklake_rewrite_data_files('lk')",
                "CALL ducklake_flush_inlined_data('lk')",
                f"COMMENT ON TABLE {EVENTS} IS '{self.seen.action}'",
                "CALL ducklake_expire_snapshots('lk', older_than => now())",
            )
        )
        self._sql(call)
        if "expire" in call:
            self.seen.expired = self.seen.action
            self.snapshots.clear()

    def _redefine(self) -> None:
        """Another constant, or only another remark."""
        models = [m for m in self.world.models.values() if m.kind != "view" and m.op != "file"]
        if not models:
            return
        model = self.chance.choice(models)
        if self.chance.random() < 0.3 or model.appends:
            self.world = self.world.changed(model.name, remark=f"-- {self.seen.action}\n")
            self.log.append(f"a remark in {model.name}")
        else:
            self.world = self.world.changed(model.name, add=model.add + 10)
            self.log.append(f"{model.name} adds {model.add + 10}")
        self.project.close()
        self._write()
        self.project = self._open()

    # --- runs

    def _run_some(self) -> None:
        chance, world = self.chance, self.world
        names = [m.name for m in world.models.values() if m.kind != "embedded"]
        select: list[str] = []
        if chance.random() < 0.5:
            select = sorted(chance.sample(names, chance.randrange(1, len(names) + 1)))
        self.now = min(self.now + chance.choice((0, 1, 1, 2)) * DAY, world.end + 12 * HOUR)
        asked: dict[str, Any] = {"fire_time": self.now + chance.choice((0, 5)) * HOUR}
        way = chance.choice(("range", "range", "range", "range", "all", "plain", "partition"))
        if way in ("range", "all"):
            days = sorted(chance.choice(self._days()) for _ in range(2))
            asked |= {"from_": str(days[0]), "to": str(days[1])}
        if way == "all":
            asked["all_"] = True
        if way == "partition":
            asked["partition"] = str(chance.choice(self._days()))
        if chance.random() < 0.15:
            asked["allow_missing"] = True
        elif chance.random() < 0.3:
            asked["upstream"] = True
        if chance.random() < 0.4:
            asked["behind"] = chance.choice((True, True, False))
        self._run(select, asked, self._kill())

    def _kill(self) -> int | None:
        """After how many events the process of a run ends; None: at its end."""
        return self.chance.randrange(20) if self.chance.random() < 0.2 else None

    def _run(
        self, select: Sequence[str], asked: Mapping[str, Any], kill: int | None = None
    ) -> RunResult | None:
        shown = ", ".join(f"{key}={value}" for key, value in asked.items())
        self.log.append(f"run {' '.join(select)} {shown} {'' if kill is None else f'kill={kill}'}")
        death, result, before = Death(kill), None, self._run_ids()
        try:
            result = self._perform(select, asked, death)
        except Killed:
            self._die()
        except (ArgumentError, PartitionError) as error:
            self.log.append(f"  refused: {error.message}")
        for step in () if result is None else result.steps:
            why = (step.reason or (step.error and step.error.message) or "").splitlines()[:1]
            self.log.append(f"  {step.name} {step.slice or ''}: {step.state} {' '.join(why)}")
        ids = self._run_ids() - before
        self._observe()
        statuses = self._statuses()
        self._note_made(ids, statuses, asked)
        self._check(statuses)
        return result

    def _perform(self, select: Sequence[str], asked: Mapping[str, Any], death: Death) -> RunResult:
        if self.spark is not None:
            return self.project.run(*select, on_event=death, jobs=1, **asked)
        return self._duckling().run(select, death, asked)

    def _duckling(self) -> Duckling:
        content = {name: list(rows) for name, rows in self.seen.tables.items()}
        return Duckling(self.project, self.world, self.duck, content, set(self.views), self.values)

    def _die(self) -> None:
        """Everything of the run is gone with its process."""
        self.project.close()
        self.log.append("  killed")
        with self._catalog() as connection:
            names = "('penstock_run', 'penstock_claim')"
            known = f"SELECT name FROM sqlite_master WHERE name IN {names}"
            for (table,) in connection.execute(known).fetchall():
                where = " WHERE state = 'running'" if table == "penstock_run" else ""
                connection.execute(f"UPDATE {table} SET pid = {_NOBODY}{where}")
        self.project = self._open()

    @contextmanager
    def _catalog(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.root / "lake/meta.sqlite")
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    def _run_ids(self) -> set[str]:
        with self._catalog() as connection:
            known = "SELECT name FROM sqlite_master WHERE name = 'penstock_run'"
            if not connection.execute(known).fetchall():
                return set()
            return {id_ for (id_,) in connection.execute("SELECT run_id FROM penstock_run")}

    def _note_made(
        self, ids: Collection[str], statuses: Mapping[str, Named], asked: Mapping[str, Any]
    ) -> None:
        """What a run has made is what its query makes of what is there now."""
        now = asked["fire_time"]
        for model in self._stored():
            for unit in self._recorded(model, ids):
                rows = self._rows(model, unit)
                meaning, file = self.world.meaning(model), self.values.get(unit.name)
                made = Made(self.seen.action, meaning, dict(self.seen.tables), rows, file)
                self.seen.made[model.name, unit.name] = made
                if not model.appends:
                    self._require(model, unit, rows, self._expected(model, unit), "has made")
                if not asked.get("allow_missing"):
                    self._was_not_to_wait(model, unit, statuses, now)

    def _was_not_to_wait(
        self, model: Model, unit: Unit, statuses: Mapping[str, Named], now: datetime
    ) -> None:
        """All that it needs was there: what is over, and has begun."""
        if model.op == "running" and model.begins and unit.start > model.begins:
            name = f"{unit.start - DAY:%Y-%m-%d}"
            state, _ = statuses[model.name].get(name, ("missing", ""))
            if state in _BAD:
                raise Wrong(f"{model.name} {unit.name} was made, {name} of it is {state}")
        for read in self.world.leaves(model):
            above = self.world.models.get(read.table)
            if above is None or above.cadence is None or read.how == "tag" or above is model:
                continue
            first, end = model.window(read, unit)
            if model.cadence is None or read.how == "all":
                continue
            first = max(first, above.begins or first)
            for each in above.cadence.units(first, end):
                if each.end <= now and above.begins and each.start >= above.begins:
                    state, _ = statuses[above.name].get(each.name, ("missing", ""))
                    if state in _BAD:
                        lacks = f"{above.name} {each.name} is {state}"
                        raise Wrong(f"{model.name} {unit.name} was made, {lacks}")

    def _stored(self) -> list[Model]:
        return [each for each in self.world.models.values() if each.is_stored]

    def _recorded(self, model: Model, ids: Collection[str] | None = None) -> list[Unit]:
        found: list[Unit] = []
        for record in Records(self.project.lake("main").catalog).slices(f"main.{model.name}"):
            if ids is not None and record.run_id not in ids:
                continue
            interval = interval_of(record.slice)
            if model.cadence is None:
                found.append(WHOLE)
            elif interval is not None:
                found += model.cadence.units(interval.start, interval.end)
            else:
                found.append(self.world.unit(model, record.slice))
        return found

    # --- what is there

    def _observe(self) -> None:
        tables: dict[str, Sequence[Row]] = {}
        there = {name for (name,) in self.duck.execute("SHOW TABLES").fetchall()}
        stored = [model.name for model in self._stored()]
        self.views = (there & self.world.models.keys()) - {*stored}
        for name in (EVENTS, NAMES, *stored):
            if name in there:
                tag = "_wm_partition" if self._is_tagged(name) else "NULL"
                query = f"SELECT ts, g, v, {tag} FROM {name}"
                tables[name] = [_row(*row) for row in self.duck.execute(query).fetchall()]
        self.snapshots.append(self.project.lake("main").catalog.latest().id)
        rolled = [name for name, at in self.seen.back.items() if at == self.seen.action]
        self.seen.now(tables, rolled)

    def _is_tagged(self, name: str) -> bool:
        model = self.world.models.get(name)
        return model is not None and model.kind == "part"

    def _rows(self, model: Model, unit: Unit) -> list[Row]:
        """The rows that are there of a slice."""
        rows = self.seen.content(model.name)
        if model.kind == "part":
            return sorted(row for row in rows if row[3] == unit.name)
        return sorted(row for row in rows if unit.has(row[0])) if model.cadence else sorted(rows)

    def _content(self, name: str, tables: Tables, held: Tables) -> Sequence[Row]:
        """The rows of a table, or of a view; ``held`` are tables as they were."""
        model = self.world.models.get(name)
        if model is None or model.is_stored:
            return held.get(name, tables.get(name, ()))
        return model.rows(WHOLE, lambda each: self._content(each, tables, held))

    def _expected(self, model: Model, unit: Unit, tables: Tables | None = None) -> list[Row]:
        """What a slice is made of by what there is; whole tables are held as they were."""
        if model.op == "file":
            at, values = unit.start, self.values.get(unit.name, ())
            return sorted((at, g, v + model.add, unit.name) for g, v in values)
        known = self.seen.tables if tables is None else tables
        made = self.seen.made.get((model.name, unit.name))
        held: dict[str, Sequence[Row]] = {}
        if made is not None:
            held = {name: made.tables.get(name, ()) for name in self._held(model, made)}
        return sorted(model.rows(unit, lambda name: self._content(name, known, held)))

    def _held(self, model: Model, made: Made) -> Iterator[str]:
        """The tables that a slice means as they were: whole ones, read without its bounds, and
        those of which nobody can tell what has changed.
        """
        expired = self.seen.expired > made.action
        for read in self.world.leaves(model):
            if self.world.cadence(read.table) is not None:
                continue
            is_ours = read.table in self.world.models
            if model.cadence is None:
                if expired and not is_ours:
                    yield read.table
            elif read.how == "all" or expired or self.seen.back.get(read.table, -1) > made.action:
                yield read.table

    def _require(
        self, model: Model, unit: Unit, there: Sequence[Row], wanted: Sequence[Row], what: str
    ) -> None:
        if sorted(there) != sorted(wanted):
            raise Wrong(f"{what} {model.name} {unit.name}: {_shown(there)}\n  not {_shown(wanted)}")

    # --- what status names

    def _statuses(self) -> Mapping[str, Named]:
        found: dict[str, Named] = {}
        for status in self.project.status():
            model = self.world.models.get(status.model or "")
            if model is None or not model.is_stored:
                continue
            own: dict[str, tuple[str, str]] = {}
            for each in status.slices:
                for name in self.names[model.name].get(each.slice or "", [each.slice or ""]):
                    own[name] = each.state, each.reason or ""
            found[model.name] = own
        return found

    def _check(self, statuses: Mapping[str, Named] | None = None) -> None:
        statuses = self._statuses() if statuses is None else statuses
        for model in self._stored():
            for unit in self._recorded(model):
                state, reason = statuses[model.name].get(unit.name, ("missing", ""))
                made = self.seen.made.get((model.name, unit.name))
                if made is not None and not self.seen.is_forgotten(model.name, made):
                    self._check_slice(model, unit, state, reason, made)

    def _check_slice(self, model: Model, unit: Unit, state: str, reason: str, made: Made) -> None:
        back = self.seen.back.get(model.name, -1) >= made.action
        other = made.meaning != self.world.meaning(model)
        there = self._rows(model, unit)
        what = f"{model.name} {unit.name} is {state} ({reason})"
        if state == "materialized" and other:
            raise Wrong(f"{what}, of another definition")
        if state == "materialized":
            self._check_current(model, unit, what, made)
        elif state == "stale" and not other and not back:
            raise Wrong(f"{what}, of the same definition")
        elif (
            state == "behind"
            and "perhaps" not in reason
            and not self._has_changed(model, unit, made)
        ):
            raise Wrong(f"{what}, and nothing of its input has changed")
        elif state == "changed outside" and not back and sorted(made.rows) == sorted(there):
            touched = any(True for _ in self.seen.since(model.name, made.action))
            if not touched:
                raise Wrong(f"{what}, and nobody has changed it")

    def _check_current(self, model: Model, unit: Unit, what: str, made: Made) -> None:
        if model.op == "file":
            if self._has_another_file(unit, made):
                raise Wrong(f"{what}, and its file has changed")
            self._require(model, unit, self._rows(model, unit), made.rows, f"{what}: there is")
            return
        wanted = self._expected(model, unit)
        if not model.appends:
            self._require(model, unit, self._rows(model, unit), wanted, f"{what}: there is")
            return
        before = self._expected_at(model, unit, made)
        if sorted(wanted) not in (sorted(made.rows), sorted(before)):
            raise Wrong(f"{what}, and its input has changed")

    def _expected_at(self, model: Model, unit: Unit, made: Made) -> list[Row]:
        return sorted(model.rows(unit, lambda name: self._content(name, made.tables, {})))

    def _has_changed(self, model: Model, unit: Unit, made: Made) -> bool:
        """Whether slices that this one needs, or rows of its bounds, changed after it was made."""
        if model.op == "file":
            return self._has_another_file(unit, made)
        before = (c for c in self.seen.since(model.name, made.action) if model.op == "running")
        if any(row[3] is not None and row[3] < unit.name for c in before for row in c.rows):
            return True
        return any(
            self._is_about(model, unit, read, change)
            for read in self.world.leaves(model)
            for change in self.seen.since(read.table, made.action)
        )

    def _has_another_file(self, unit: Unit, made: Made) -> bool:
        """Whether its file is there, and not as it was read."""
        return self.values.get(unit.name, made.file) != made.file

    def _is_about(self, model: Model, unit: Unit, read: Read, change: Change) -> bool:
        above, (first, end) = self.world.models.get(read.table), model.window(read, unit)
        if change.anew or model.cadence is None:
            return True
        if above is None or above.cadence is None:
            whole = above is not None  # of a whole table that is made again all files are others
            return any(whole or first <= row[0] < end for row in change.rows)
        if above.kind == "time":
            return True  # a batch that is made again with other rows is not compared by its units
        for row in change.rows:
            at = row[0]
            own = next(above.cadence.units(at, at + timedelta(microseconds=1)))
            if row[3] is not None:
                own = self.world.unit(above, row[3])
            if own.start < max(end, unit.end) and min(first, unit.start) < own.end:
                return True
        return False

    # --- the end

    def _finish(self) -> None:
        """Everything is made, and each table is what it is from scratch."""
        self.seen.action += 1
        self._heal()
        self._observe()
        self._check()
        last = self._last_day()
        days = {"from_": str(self.world.first), "to": str(last)}
        noon = self.world.end + (last - self.world.last) + 12 * HOUR  # the last day is over
        asked: dict[str, Any] = {**days, "fire_time": noon, "behind": True}
        self._everything(asked)
        if self._make_stale(asked):
            self.seen.action += 1
            self._everything(asked)
        self._compare()
        self.seen.action += 1
        result = self._everything(asked)
        again = [s for s in result.steps if s.state not in ("skipped", "unchanged")]
        if again:
            raise Wrong(f"made again: {[(s.name, s.slice, s.state, s.reason) for s in again]}")

    def _last_day(self) -> date:
        """The last day of ranges, or the one after it where a plain run made a slice of that: what
        this was made from may be behind, and a range makes nothing again that lies outside of it.
        """
        stored = [model for model in self._stored() if model.cadence]
        asked = {m.name: {unit.name for unit in self.world.units(m)} for m in stored}
        beyond = any(u.name not in asked[m.name] for m in stored for u in self._recorded(m))
        return self.world.last + DAY if beyond else self.world.last

    def _make_stale(self, asked: Mapping[str, Any]) -> bool:
        """What another definition has made is made again by runs that ask for it, and so is what
        holds rows of a whole table that fail its readers.
        """
        some = False
        for model in self._stored():
            bad = any(v >= TOO_MUCH for _, _, v, _ in self.seen.content(model.name))
            states = self._statuses()[model.name].values()
            if bad or any(state == "stale" for state, _ in states):
                some = True
                self.seen.action += 1
                ways = {"fire_time": asked["fire_time"]}
                self._run([model.name], {**asked, "all_": True} if model.cadence else ways)
        return some

    def _everything(self, asked: Mapping[str, Any]) -> RunResult:
        names = [m.name for m in self.world.models.values() if m.kind != "embedded"]
        if not any(self.world.models[name].cadence for name in names):
            asked = {"fire_time": asked["fire_time"]}
        result = self._run([], asked)
        assert result is not None, "a range of everything is not refused"
        return result

    def _heal(self) -> None:
        if any(v >= TOO_MUCH for _, _, v, _ in self.seen.content(EVENTS)):
            self._sql(f"DELETE FROM {EVENTS} WHERE v >= {TOO_MUCH}")
        for day in self._file_days():
            if str(day) not in self.values:
                self._write_file(day, good=True)

    def _compare(self) -> None:
        tables: dict[str, Sequence[Row]] = {
            name: self.seen.content(name) for name in (EVENTS, NAMES)
        }
        statuses = self._statuses()
        for model in self._stored():
            asked = {unit.name: unit for unit in self.world.units(model)}
            units = {**asked, **{unit.name: unit for unit in self._recorded(model)}}
            rows: list[Row] = []
            for unit in sorted(units.values(), key=lambda each: each.start):
                tables[model.name] = rows
                state, reason = statuses[model.name].get(unit.name, ("missing", ""))
                if state != "materialized" and not model.appends and unit.name in asked:
                    raise Wrong(f"in the end {model.name} {unit.name} is {state} ({reason})")
                own = self._rows(model, unit)
                made = self.seen.made.get((model.name, unit.name))
                lost = made is not None and self.seen.is_forgotten(model.name, made)
                if not model.appends and not lost and unit.name in asked:
                    wanted = self._expected(model, unit, tables)
                    self._require(model, unit, own, wanted, "in the end")
                rows += own
            extra = Counter(self.seen.content(model.name)) - Counter(rows)
            if extra:
                raise Wrong(f"in the end {model.name} has other rows: {_shown(list(extra))}")
            tables[model.name] = rows


def _at(moment: datetime) -> str:
    """The first two columns."""
    return f"{sql_moment(moment)}, '{moment:%Y-%m-%d}'"


def _row(at: datetime, g: str, v: int, tag: str | None) -> Row:
    return at.astimezone(UTC), g, v, tag


def _shown(rows: Sequence[Row]) -> str:
    return ", ".join(f"{at:%m-%dT%H:%M} {g} {v}" for at, g, v, _ in sorted(rows)) or "no rows"


def wrong(
    spark: SparkSession | None, folder: Path, seed: int, actions: int = ACTIONS
) -> str | None:
    """What came out otherwise, with all that was done; None for nothing."""
    folder.mkdir(exist_ok=True)
    return Play(spark, folder, seed).play(actions)
