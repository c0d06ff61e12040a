"""A project by chance, its sources, and edits of them and of its tables and models."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from penstock.engine.state.other_writers import DROP_NOTE
from penstock.engine.state.store import State, forget, now
from penstock.model.time.interval import Interval
from penstock.project.project import Project
from tests import duck
from tests.engine.strategies.input_models import (
    BOOM,
    EVENTS,
    FILES,
    GROUPS,
    NAMES,
    TOO_MUCH,
    Cadence,
    Row,
    World,
    script,
    sql_moment,
    world_of,
)
from tests.engine.strategies.range_reference import DAY, HOUR
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = "ts TIMESTAMPTZ, d VARCHAR, g VARCHAR, v BIGINT"
Tables = Mapping[str, Sequence[Row]]


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

    def is_forgotten(self, names: Iterable[str], made: Made) -> bool:
        """Whether others changed any of these tables after a slice was made, by snapshots that
        expired: nobody can tell that, of the slice or of its input (docs/cli.md).
        """
        every = (at for name in names for at in self.foreign[name])
        return any(made.action <= at <= self.expired for at in every)

    def since(self, name: str, action: int) -> Iterator[Change]:
        return (each for each in self.changes.get(name, ()) if each.action > action)


class Sources:
    """One project, its sources and edits of them; ``log`` is what was done."""

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
        self.queries: dict[str, World] = {}  # of views that runs have not created again yet
        self.created: dict[str, int] = {}  # when a view got another query
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

    @property
    def edits(self) -> list[Callable[[], None]]:
        """Return everything that somebody may do between two runs."""
        edits = [self._insert, self._insert, self._update, self._delete]
        edits += [self._write_file, self._write_names, self._foreign, self._roll_back]
        return [*edits, self._maintain, self._redefine, self._drop_slice]

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
        models, old = [m for m in self.world.models.values() if m.op != "file"], self.world
        if not models:
            return
        model = self.chance.choice(models)
        if self.chance.random() < 0.3 or model.appends:
            self.world = self.world.changed(model.name, remark=f"-- {self.seen.action}\n")
            self.log.append(f"a remark in {model.name}")
        else:
            self.world = self.world.changed(model.name, add=model.add + 10)
            self.log.append(f"{model.name} adds {model.add + 10}")
        for view in (each for each in old.models.values() if each.kind == "view"):
            if old.meaning(view) != self.world.meaning(self.world.models[view.name]):
                self.queries.setdefault(view.name, old)
        self.project.close()
        self._write()
        self.project = self._open()

    def _drop_slice(self) -> None:
        """A slice is dropped, which a rollback may undo."""
        models = [m for m in self.world.models.values() if m.kind == "part"]
        slices = [(m.name, row[3]) for m in models for row in self.seen.content(m.name) if row[3]]
        if not slices:
            return
        name, slice_ = self.chance.choice(slices)
        self.log.append(f"drop {name} --slice {slice_}")
        if self.spark is not None:
            self.project.drop(name, slice_)
            return
        # Rows of merged files are Spark's to find: DuckDB removes them in the name of the drop.
        note = json.dumps({DROP_NOTE: {"table": f"main.{name}", "slice": slice_, "text": slice_}})
        gone = f"DELETE FROM {name} WHERE _wm_partition = '{slice_}'"
        said = f"CALL lk.set_commit_message('penstock', 'drop', extra_info => '{note}')"
        for statement in ("BEGIN", gone, said, "COMMIT"):
            self.duck.execute(statement)
        catalog = self.project.lake("main").catalog
        at = catalog.latest().id
        State(catalog).write(lambda c: forget(c, f"main.{name}", slice_, now(), at))


def _at(moment: datetime) -> str:
    """The first two columns."""
    return f"{sql_moment(moment)}, '{moment:%Y-%m-%d}'"
