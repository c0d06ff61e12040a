"""Models by chance that read each other: their scripts, and what they make in plain Python.

A row is a moment, a group and a value, with the name of its slice. A model says of each of its
slices which rows it reads of each input, and makes rows of them: the script and the reference say
the same in two languages. What a slice needs of an input is said here a second time, too.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from tests.engine.strategies.range_reference import DAY, HOUR

PARIS = "Europe/Paris"
# Values: a query fails on it, a test; its maximum, which a sum of hours of a month does not reach.
BOOM, TOO_MUCH, MOST = 77_777_777, 10_000_000, 9_000_000
EVENTS, NAMES, FILES = "ev", "dim", "f"  # tables that no model makes, and the model of files
GROUPS = ("a", "b", "c")
NONE = timedelta()

Row = tuple[datetime, str, int, str | None]  # at, g, v, and the slice
Content = Callable[[str], Sequence[Row]]  # of tables, by their names


@dataclass(frozen=True)
class Unit:
    """A slice: a partition by its value, or an interval of a model by time."""

    name: str
    start: datetime
    end: datetime

    def has(self, moment: datetime) -> bool:
        return self.start <= moment < self.end


WHOLE = Unit("", datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True)
class Cadence:
    by_time: bool
    unit: str  # hour, day, month
    zone: str = "UTC"

    def name_of(self, moment: datetime) -> str:
        local = moment.astimezone(ZoneInfo(self.zone))
        return local.strftime(
            {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m"}[self.unit]
        )

    def units(self, first: datetime, end: datetime) -> Iterator[Unit]:
        while first < end:
            unit = _unit_at(self, first)
            yield unit
            first = unit.end


@lru_cache(maxsize=100_000)
def _unit_at(cadence: Cadence, moment: datetime) -> Unit:
    """The hours of UTC whose name is the same: one of two where the clock goes back."""
    name = cadence.name_of(moment)
    start = moment.replace(minute=0, second=0, microsecond=0)
    end = start + HOUR
    while cadence.name_of(start - HOUR) == name:
        start -= HOUR
    while cadence.name_of(end) == name:
        end += HOUR
    return Unit(name, start, end)


@dataclass(frozen=True)
class Read:
    """``how``: by the bounds of the slice (own), from a day before (back), by the text of the day
    (day, dayback), by the name of the slice (tag), or without any condition (all).
    """

    table: str
    how: str = "own"


@dataclass(frozen=True)
class Model:
    """``kind``: part, time, whole, view or embedded. ``op``: copy (a union of what it reads), sum
    by group, join (with a second table, by group), running (with its own slice before), file.
    """

    name: str
    kind: str
    op: str
    reads: tuple[Read, ...]
    cadence: Cadence | None = None
    start: date | None = None
    add: int = 0
    fragile: bool = False
    tested: bool = True
    options: tuple[str, ...] = ()  # of a kind by time
    needs: str = ""
    appends: bool = False
    remark: str = ""

    @property
    def is_stored(self) -> bool:
        return self.kind not in ("view", "embedded")

    @property
    def begins(self) -> datetime | None:
        if self.start is None:
            return None
        zone = UTC if self.cadence is None else ZoneInfo(self.cadence.zone)
        return datetime.combine(self.start, time(), zone).astimezone(UTC)

    def rows(self, unit: Unit, content: Content) -> list[Row]:
        """What a run makes of a slice."""
        tag = unit.name if self.kind == "part" else None
        main = [row for read in self._unioned for row in self.read(read, unit, content(read.table))]
        return [(at, g, v, tag) for at, g, v in _OPS[self.op](self, unit, main, content)]

    @property
    def _unioned(self) -> tuple[Read, ...]:
        return self.reads if self.op == "copy" else self.reads[:1]

    def read(self, read: Read, unit: Unit, rows: Sequence[Row]) -> list[Row]:
        """The rows that its query reads for a slice."""
        if read.how == "all" or self.cadence is None:
            return list(rows)
        if read.how == "tag":
            return [row for row in rows if row[3] == unit.name]
        if read.how in ("day", "dayback"):
            first = date.fromisoformat(_day(unit.start)) - (DAY if read.how == "dayback" else NONE)
            last = _day(unit.end - timedelta(microseconds=1))
            return [row for row in rows if str(first) <= _day(row[0]) <= last]
        start = unit.start - (DAY if read.how == "back" else NONE)
        return [row for row in rows if start <= row[0] < unit.end]

    def window(self, read: Read, unit: Unit) -> tuple[datetime, datetime]:
        """The moments of what its query reads for a slice."""
        if read.how == "all" or self.cadence is None:
            return WHOLE.start, WHOLE.end
        start = unit.start - (DAY if read.how in ("back", "dayback") else NONE)
        return start, unit.end


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


Made = Iterator[tuple[datetime, str, int]]


def _copy(model: Model, unit: Unit, rows: Sequence[Row], __: Content) -> Made:
    yield from ((max(at, unit.start), g, v + model.add) for at, g, v, _ in rows)


def _sum(model: Model, unit: Unit, rows: Sequence[Row], __: Content) -> Made:
    sums: dict[str, int] = defaultdict(int)
    for _at, g, v, _tag in rows:
        sums[g] += v
    at = EPOCH if model.cadence is None else unit.start
    yield from ((at, g, v + model.add) for g, v in sums.items())


EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def _join(model: Model, unit: Unit, rows: Sequence[Row], content: Content) -> Made:
    names = {g: v for _, g, v, _ in content(model.reads[1].table)}
    yield from ((max(at, unit.start), g, v + names.get(g, 0) + model.add) for at, g, v, _ in rows)


def _running(model: Model, unit: Unit, rows: Sequence[Row], content: Content) -> Made:
    before = _day(unit.start - DAY)
    own = [v for _, _, v, tag in content(model.name) if tag == before]
    yield unit.start, "r", sum(v for _, _, v, _ in rows) + sum(own) + model.add


_OPS: Mapping[str, Callable[[Model, Unit, Sequence[Row], Content], Made]] = {
    "copy": _copy,
    "sum": _sum,
    "join": _join,
    "running": _running,
    "file": _copy,
}


# --- as scripts

_PART = {
    "own": "{a}ts >= $partition_start AND {a}ts < $partition_end",
    "back": "{a}ts >= $partition_start - INTERVAL 1 DAY AND {a}ts < $partition_end",
    "day": "{a}d = '{{partition}}'",
    "dayback": "{a}d >= date_sub('{{partition}}', 1) AND {a}d <= '{{partition}}'",
    "tag": "{a}_wm_partition = '{{partition}}'",
    "all": "",
}
_TIME = {
    "own": "{a}ts BETWEEN @start_tstz AND @end_tstz",
    "day": "{a}d BETWEEN @start_ds AND @end_ds",
    "all": "",
}


def _where(model: Model, read: Read, alias: str = "") -> str:
    if model.cadence is None:
        return ""
    text = (_TIME if model.kind == "time" else _PART)[read.how]
    return f" WHERE {text.format(a=alias)}" if text else ""


def _value(model: Model, text: str = "v") -> str:
    if not model.fragile:
        return text
    return f"CASE WHEN {text} = {BOOM} THEN CAST(raise_error('boom') AS BIGINT) ELSE {text} END"


def _moment(model: Model, read: Read, alias: str = "") -> str:
    """The moment and the day of a row; of an earlier day those of the slice's start."""
    if read.how not in ("back", "dayback"):
        return f"{alias}ts, {alias}d"
    at = f"greatest({alias}ts, $partition_start)"
    return f"{at} AS ts, date_format({at}, 'yyyy-MM-dd') AS d"


def _copied(model: Model) -> str:
    return " UNION ALL ".join(
        f"SELECT {_moment(model, read)}, g, {_value(model)} + {model.add} AS v "
        f"FROM {read.table}{_where(model, read)}"
        for read in model.reads
    )


def _summed(model: Model) -> str:
    (read, *_) = model.reads
    at = f"TIMESTAMP '{EPOCH:%Y-%m-%d} 00:00:00'" if model.cadence is None else "$partition_start"
    return (
        f"SELECT {at} AS ts, date_format({at}, 'yyyy-MM-dd') AS d, g, "
        f"sum({_value(model)}) + {model.add} AS v FROM {read.table}{_where(model, read)} GROUP BY g"
    )


def _joined(model: Model) -> str:
    main, names = model.reads
    return (
        f"SELECT {_moment(model, main, 't.')}, t.g, {_value(model, 't.v')} + coalesce(w.v, 0) + "
        f"{model.add} AS v FROM {main.table} AS t LEFT JOIN {names.table} AS w ON t.g = w.g"
        f"{_where(model, main, 't.')}"
    )


def _ran(model: Model) -> str:
    (read, *_) = model.reads
    return (
        f"SELECT $partition_start AS ts, '{{partition}}' AS d, 'r' AS g, "
        f"coalesce(sum({_value(model)}), 0) + {model.add} AS v FROM ("
        f"SELECT v FROM {read.table}{_where(model, read)} UNION ALL SELECT v FROM {model.name} "
        "WHERE _wm_partition = CAST(date_sub('{partition}', 1) AS STRING))"
    )


def _filed(model: Model) -> str:
    return (
        "SELECT $partition_start AS ts, '{partition}' AS d, g, "
        f"CAST(v AS BIGINT) + {model.add} AS v FROM read_csv('data/' || '{{partition}}' || '.csv', "
        "columns = {'g': 'VARCHAR', 'v': 'INTEGER'})"
    )


_QUERIES: Mapping[str, Callable[[Model], str]] = {
    "copy": _copied,
    "sum": _summed,
    "join": _joined,
    "running": _ran,
    "file": _filed,
}


def script(model: Model) -> str:
    return _head(model) + f"\n{model.remark}" + _QUERIES[model.op](model)


def _head(model: Model) -> str:
    start = "" if model.start is None else f"{model.start}"
    if model.kind == "time":
        assert model.cadence is not None
        kind = ", ".join(("time_column ts", *model.options))
        cron = ", cron '@hourly'" if model.cadence.unit == "hour" else ""
        audits = f", audits (accepted_range(column := v, max_v := {MOST}))" if model.tested else ""
        needs = f", needs ({model.needs.replace(' ', ' = ')})" if model.needs else ""
        return (
            f"MODEL (name main.{model.name}, kind INCREMENTAL_BY_TIME_RANGE ({kind}), "
            f"start '{start}'{cron}{audits}{needs});"
        )
    if model.kind in ("view", "embedded"):
        return f"MODEL (name main.{model.name}, kind {model.kind.upper()});"
    lines = ["-- pipeline"]
    if model.cadence is not None:
        word = {"hour": "hourly", "day": "daily", "month": "monthly"}[model.cadence.unit]
        zone = "" if model.cadence.zone == "UTC" else f' tz="{model.cadence.zone}"'
        lines.append(f"-- partitioned {word}{zone}" + (f' start="{start}"' if start else ""))
    lines.append(f"-- materialize ducklake://main/{model.name}{' append' if model.appends else ''}")
    lines += [f"-- data_test accepted_range v max={MOST}"] if model.tested else []
    lines += [f"-- needs main.{model.needs}"] if model.needs else []
    if model.op == "running":
        types = {"ts": "TIMESTAMPTZ", "d": "STRING", "g": "STRING", "v": "BIGINT"}
        lines += [f"-- column {name} {type_}" for name, type_ in types.items()]
    return "\n".join(lines)


def sql_moment(moment: datetime) -> str:
    return f"TIMESTAMPTZ '{moment:%Y-%m-%d %H:%M:%S}+00'"


def sql_row(row: Row) -> str:
    """A row as DuckDB takes it, with its day and, where it has one, its slice."""
    at, g, v, tag = row
    slice_ = "" if tag is None else f", '{tag}'"
    return f"({sql_moment(at)}, '{at:%Y-%m-%d}', '{g}', {v}{slice_})"


# --- by chance


@dataclass(frozen=True)
class World:
    """``models`` in an order in which each reads earlier ones; ``first``: the first day of
    ``days`` that runs are about.
    """

    models: Mapping[str, Model] = field(default_factory=dict)
    first: date = date(2026, 1, 30)
    days: int = 3

    @property
    def begin(self) -> datetime:
        return datetime.combine(self.first, time(), UTC)

    @property
    def last(self) -> date:
        return self.first + (self.days - 1) * DAY

    @property
    def end(self) -> datetime:
        return self.begin + self.days * DAY

    def leaves(self, model: Model) -> list[Read]:
        """What is read in the end, through views and embedded queries, by which condition."""
        found: list[Read] = []
        for read in model.reads:
            inner = self.models.get(read.table)
            if inner is None or inner.is_stored:
                found.append(read)
            else:
                found += [Read(each.table, read.how) for each in self.leaves(inner)]
        return found

    def views(self, model: Model) -> Iterator[str]:
        """The views through which a model reads, however far."""
        for read in model.reads:
            inner = self.models.get(read.table)
            if inner is not None and not inner.is_stored:
                if inner.kind == "view":
                    yield inner.name
                yield from self.views(inner)

    def cadence(self, table: str) -> Cadence | None:
        model = self.models.get(table)
        return None if model is None else model.cadence

    def meaning(self, model: Model) -> tuple[object, ...]:
        """What decides the definition: its own constant, and those of what is embedded."""
        inner = [self.models[r.table] for r in model.reads if r.table in self.models]
        return (model.add, *(self.meaning(each) for each in inner if each.kind == "embedded"))

    def unit(self, model: Model, name: str) -> Unit:
        """The slice of a model by its name."""
        assert model.cadence is not None, "a whole table has one slice"
        units = model.cadence.units(self.begin - 62 * DAY, self.end + 40 * DAY)
        return next(each for each in units if each.name == name)

    def units(self, model: Model) -> list[Unit]:
        """The slices of the days, since the start."""
        if model.cadence is None:
            return [WHOLE]
        zone = ZoneInfo(model.cadence.zone)
        first = datetime.combine(self.first, time(), zone).astimezone(UTC)
        end = datetime.combine(self.first + self.days * DAY, time(), zone).astimezone(UTC)
        starts = [start for each in self.above(model) if (start := each.begins) is not None]
        return [u for u in model.cadence.units(first, end) if all(u.end > s for s in starts)]

    def above(self, model: Model) -> Iterator[Model]:
        yield model
        for read in model.reads:
            if read.table in self.models and read.table != model.name:
                yield from self.above(self.models[read.table])

    def changed(self, name: str, **parts: object) -> World:
        model = replace(self.models[name], **parts)  # type: ignore[arg-type] # of any of its fields
        return replace(self, models={**self.models, name: model})


_WINDOWS = (date(2026, 1, 30), date(2026, 3, 28), date(2026, 3, 30), date(2026, 10, 24))
_KINDS = ("part",) * 5 + ("time",) * 3 + ("whole",) * 3 + ("view", "embedded")


def world_of(chance: random.Random) -> World:
    hourly = chance.random() < 0.25
    world = World(first=chance.choice(_WINDOWS), days=1 if hourly else 3)
    if chance.random() < 0.25:
        cadence = Cadence(by_time=False, unit="day")
        files = Model(FILES, "part", "file", (), cadence, world.first)
        world = replace(world, models={FILES: files})
    for name in "pqrstu"[: chance.choice((3, 3, 4, 4, 5, 6)) - len(world.models)]:
        model = _model_of(chance, world, name, hourly=hourly)
        world = replace(world, models={**world.models, name: model})
    if all(model.kind == "embedded" for model in world.models.values()):  # nothing to run
        world = replace(world, models={**world.models, name: replace(model, kind="whole")})
    return world


def _model_of(chance: random.Random, world: World, name: str, *, hourly: bool) -> Model:
    kind = chance.choice(_KINDS)
    tables = [EVENTS, *world.models]
    table = chance.choice(tables[-3:] if chance.random() < 0.8 else tables)
    add, fragile, tested = chance.randrange(1, 5), chance.random() < 0.3, chance.random() < 0.6
    if kind in ("view", "embedded"):
        return Model(name, kind, "copy", (Read(table, "all"),), add=add)
    if kind == "whole":
        op = chance.choice(("copy", "sum", "sum"))
        reads = [Read(table, "all")]
        if op == "copy" and chance.random() < 0.4:
            reads.append(Read(chance.choice(tables), "all"))
        return Model(name, kind, op, tuple(reads), add=add, fragile=fragile, tested=tested)
    unit = "hour" if hourly and chance.random() < 0.4 else "day"
    if kind == "part" and chance.random() < 0.2:
        unit = "month"
    zone = PARIS if kind == "part" and chance.random() < 0.35 else "UTC"
    cadence = Cadence(kind == "time", unit, zone)
    start = world.first.replace(day=1) if unit == "month" else world.first
    model = Model(name, kind, "copy", (), cadence, start, add, fragile, tested)
    if kind == "part" and unit != "month" and chance.random() < 0.12:
        model = replace(model, start=None)
    return _with_reads(chance, world, model, table)


def _with_reads(chance: random.Random, world: World, model: Model, table: str) -> Model:
    cadence, others = model.cadence, [EVENTS, *world.models]
    assert cadence is not None
    reads: tuple[Read, ...] = (Read(table, chance.choice(_hows(world, model, table))),)
    if reads[0].how == "all":
        needs = f"{table} all" if _is_sliced(world, table) else ""
        return replace(model, op="sum", reads=reads, needs=needs)
    way = chance.choice(("copy", "copy", "union", "join", "own way", "own way"))
    whole = [NAMES, *(m.name for m in world.models.values() if m.kind == "whole" and m.op == "sum")]
    if way == "union":
        other = chance.choice(others)
        hows = [how for how in _hows(world, model, other) if how != "all"]
        reads += (Read(other, chance.choice(hows)),)
    elif way == "join":
        model, reads = replace(model, op="join"), (*reads, Read(chance.choice(whole), "all"))
    elif way == "own way" and model.kind == "part":
        model = _own_way(chance, model)
    if model.kind == "time":
        options = [f"lookback {chance.choice((1, 2))}"] if chance.random() < 0.3 else []
        options += [f"batch_size {chance.choice((1, 2))}"] if chance.random() < 0.4 else []
        model = replace(model, options=tuple(options))
    return replace(model, reads=reads)


def _own_way(chance: random.Random, model: Model) -> Model:
    assert model.cadence is not None
    daily = model.cadence == Cadence(by_time=False, unit="day")
    if daily and model.start is not None and chance.random() < 0.3:
        return replace(model, op="running", fragile=False)
    if chance.random() < 0.15:
        return replace(model, appends=True)
    return replace(model, op="sum")


def _is_sliced(world: World, table: str) -> bool:
    """Whether any table that is read through this one has slices."""
    model = world.models.get(table)
    if model is None or model.kind == "whole":
        return False
    return model.cadence is not None or any(_is_sliced(world, r.table) for r in model.reads)


def _hows(world: World, model: Model, table: str) -> list[str]:
    """The conditions by which a model may read a table."""
    assert model.cadence is not None
    found, upstream = ["own", "own"], world.models.get(table)
    utc_days = model.cadence.zone == "UTC" and model.cadence.unit == "day"
    if utc_days:
        found += ["day", "day"]
    if model.kind == "part":
        found += ["back"] + (["dayback"] if utc_days else [])
        if upstream is not None and upstream.cadence == model.cadence:
            found += ["tag", "tag"]
        if upstream is None or upstream.is_stored:
            found += ["all"]
    return found
