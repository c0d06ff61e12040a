"""Forms of queries that read a sliced input, and a project that runs one of them.

DuckDB makes the rows, from the text of the query itself. After each correction of a single day
every slice of the reader that `status` calls materialized must be what its query returns now.
``python -m tests.engine.strategies.input_forms`` does so with all forms, in some minutes.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from penstock.project.project import Project
from tests import duck
from tests.engine.strategies.input_models import Cadence, Model, Row, Unit, World, sql_moment
from tests.engine.strategies.input_runs import Duckling
from tests.engine.toy import write_project

FIRST = date(2026, 1, 30)
DAY = timedelta(days=1)
DAYS = tuple(FIRST + n * DAY for n in range(4))
P = "'{partition}'"

#: conditions of a daily partition over ``s``; True: what is needed is understood
CONDITIONS: Mapping[str, bool] = {
    f"d = {P}": True,
    f"{P} = s.D": True,
    f"d IN ({P})": True,
    f"CAST(d AS DATE) = CAST({P} AS DATE)": True,
    f"CAST(d AS DATE) BETWEEN date_sub({P}, 2) AND CAST({P} AS DATE)": True,
    f"d >= {P} AND d <= {P}": True,
    "ts >= $partition_start AND ts < $partition_end": True,
    "ts >= $partition_start - INTERVAL 1 DAY AND ts < $partition_end": True,
    "ts BETWEEN $partition_start AND $partition_end": True,
    "ts <= $partition_end": True,
    f"d = date_sub({P}, 1)": True,
    f"CAST(d AS DATE) >= date_trunc('MONTH', CAST({P} AS DATE)) AND d <= {P}": True,
    f"CAST(d AS DATE) > add_months(CAST({P} AS DATE), -1) AND d <= {P}": True,
    f"d = CAST({P} AS DATE) - INTERVAL 1 DAY": True,
    f"d < {P}": True,
    f"d <= {P}": True,
    f"d >= {P}": True,
    f"d > {P}": True,
    f"NOT (d > {P})": True,
    f"d IN ({P}, date_sub({P}, 1))": True,
    f"d = {P} OR d = date_sub({P}, 1)": True,
    f"_wm_partition = {P}": True,
    f"_wm_partition <= {P}": True,
    f"date_format(ts, 'yyyy-MM-dd') = {P}": True,
    f"date_add(d, 1) = {P}": True,
    f"date_sub(d, 1) = {P}": True,
    f"date_add(CAST(ts AS DATE), 1) = {P}": True,
    f"datediff(CAST({P} AS DATE), CAST(d AS DATE)) BETWEEN 0 AND 2": True,
    f"d = {P} OR g = 'a'": False,
    f"(d = {P} AND g = 'a') OR d = date_sub({P}, 1)": True,
    f"d <> {P}": True,
    f"d NOT IN ({P})": True,
    f"d IN ({P}, '2026-01-31')": True,
    f"NOT (d < {P} OR d > {P})": True,
    f"d = {P} OR d IS NULL": True,
    f"nullif(d, {P}) IS NULL": True,
    f"coalesce(d, '') = {P}": True,
    f"CASE WHEN d = {P} THEN TRUE ELSE FALSE END": True,
    f"CASE WHEN g = 'a' THEN d = {P} ELSE TRUE END": False,
    f"substring(_wm_partition, 1, 7) = substring({P}, 1, 7)": True,
    f"left(d, 7) = left({P}, 7) AND d <= {P}": True,
    f"replace(d, '-', '') = replace({P}, '-', '')": True,
    f"date_trunc('MONTH', CAST(d AS DATE)) = date_trunc('MONTH', CAST({P} AS DATE))": True,
    "date_trunc('MONTH', ts) = date_trunc('MONTH', $partition_start)": True,
    f"last_day(CAST(d AS DATE)) = last_day(CAST({P} AS DATE))": True,
    f"year(CAST(d AS DATE)) = year(CAST({P} AS DATE))": True,
    f"month(CAST(d AS DATE)) = month(CAST({P} AS DATE)) AND d <= {P}": True,
    f"d LIKE concat(substring({P}, 1, 8), '%')": True,
    "d LIKE '2026-01-%'": True,
    f"d = CAST(date_sub({P}, v) AS STRING)": False,
    f"v > (SELECT min(v) FROM s WHERE d = {P})": False,
    "v > 0": False,
}
_OF_DAY = f"WHERE d = {P}"
#: queries over ``s``; those that look at more than their rows are not bounded by what is outside
QUERIES: Mapping[str, bool] = {
    f"SELECT v FROM (SELECT d, lag(v) OVER (ORDER BY ts, v) AS v FROM s) x {_OF_DAY}": False,
    f"WITH x AS (SELECT d, sum(v) OVER (ORDER BY ts, v) AS v FROM s) SELECT v FROM x {_OF_DAY}":
        False,
    f"SELECT v FROM (SELECT d, v FROM s ORDER BY v LIMIT 2) x {_OF_DAY}": False,
    f"SELECT b.v FROM s a JOIN s b ON b.d = CAST(date_sub(a.d, 1) AS STRING) WHERE a.d = {P}":
        False,
    f"SELECT (SELECT max(b.v) FROM s b WHERE b.d < a.d) AS v FROM s a WHERE a.d = {P}": False,
    f"SELECT v FROM s a WHERE d = {P} AND EXISTS (SELECT 1 FROM s b WHERE b.v = a.v + 1)": False,
    f"SELECT v FROM s WHERE d = {P} AND v IN (SELECT v + 1 FROM s)": False,
    f"SELECT sum(v) FILTER (WHERE d = CAST(date_sub({P}, 1) AS STRING)) AS v FROM s": False,
    f"SELECT a.v FROM s a FULL JOIN s b ON a.d = {P} AND a.v = b.v": False,
    f"SELECT a.v FROM s a LEFT JOIN s b ON a.d = {P} AND b.d = {P} AND a.v = b.v": False,
    f"WITH x AS (SELECT * FROM s) SELECT a.v FROM x a, x b WHERE a.d = {P} AND a.v <> b.v": False,
    f"SELECT a.v FROM s a LEFT JOIN s b ON b.v = a.v + 1 WHERE b.d IS NULL AND a.d = {P}": False,
    f"SELECT a.v FROM s a LEFT JOIN s b ON b.v = a.v + 1 "
    f"WHERE coalesce(b.d, {P}) = {P} AND a.d = {P}": False,
    f"SELECT v FROM (SELECT d, sum(v) AS v FROM s GROUP BY ROLLUP (d)) x "
    f"WHERE coalesce(d, {P}) = {P}": False,
    f"SELECT a.v FROM s a WHERE d = {P} AND EXISTS "
    f"(SELECT 1 FROM s b WHERE b.d = date_sub({P}, 1) AND b.v <> a.v)": True,
    f"SELECT v FROM (SELECT d, v FROM s) x WHERE date_add(d, 1) = {P}": True,
    f"WITH x AS (SELECT d AS e, v FROM s) SELECT v FROM x WHERE left(e, 7) = left({P}, 7)": True,
    f"SELECT v FROM (SELECT d, v FROM s UNION ALL SELECT d, v + 1 FROM s) x "
    f"WHERE datediff({P}, d) = 1": True,
    f"SELECT b.v FROM s a JOIN s b ON a.d = b.d WHERE date_add(a.d, 1) = {P}": True,
    f"SELECT v FROM s WHERE d = {P} UNION ALL SELECT v FROM s WHERE d = date_sub({P}, 1)": True,
    f"SELECT b.v FROM s a JOIN s b ON a.v <> b.v AND b.d = date_sub({P}, 1) WHERE a.d = {P}": True,
    f"SELECT v FROM s WHERE d = (SELECT max(d) FROM s WHERE d < {P}) AND d <= {P}": True,
    f"WITH x AS (SELECT d, v FROM s), y AS (SELECT * FROM x) SELECT v FROM y {_OF_DAY}": True,
    f"SELECT v FROM (SELECT d, sum(v) AS v FROM s GROUP BY d) x {_OF_DAY}": True,
    f"SELECT v FROM (SELECT d, v FROM s UNION SELECT d, v + 1 FROM s) x {_OF_DAY}": True,
    f"WITH x AS (SELECT * FROM s {_OF_DAY}) SELECT b.v FROM x JOIN s b ON x.d = b.d": True,
    f"SELECT a.v FROM s a JOIN s b USING (d, g) WHERE b.d = {P}": True,
}  # fmt: skip
#: conditions of a model by time over ``s``
BY_TIME: Mapping[str, bool] = {
    "ts BETWEEN @start_dt AND @end_dt": True,
    "d BETWEEN @start_ds AND @end_ds": True,
    "d = @end_ds": True,
    "d <= @end_ds": True,
    "CAST(d AS DATE) >= date_sub(@start_ds, 1) AND d <= @end_ds": True,
    "d IN (@start_ds, date_sub(@start_ds, 1))": True,
    "d >= @start_ds": True,
    "date_add(d, 1) = @start_ds": True,
    "date_sub(d, 1) = @start_ds": True,
    "datediff(@start_ds, d) BETWEEN 0 AND 1": True,
    "substring(d, 1, 7) = substring(@start_ds, 1, 7)": True,
    "left(d, 7) = left(@start_ds, 7) AND d < @start_ds": True,
    "date_trunc('MONTH', CAST(d AS DATE)) = date_trunc('MONTH', CAST(@start_ds AS DATE))": True,
    "date_add(CAST(ts AS DATE), 1) = @start_ds": True,
    "CAST(ts AS DATE) IN (date_sub(@start_ds, 1), CAST(@start_ds AS DATE))": True,
    "year(CAST(ts AS DATE)) = year(CAST(@start_ds AS DATE))": True,
    "v > 0": False,
}
_KEPT = "SELECT {ts}, {d} AS d, 'r' AS g, CAST(coalesce(sum(v), 0) AS BIGINT) AS v FROM ({q}) AS t"


@dataclass(frozen=True)
class Form(Model):
    """A model with a query of its own; ``inner`` are the texts of views by their names."""

    query: str = ""
    inner: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A reader's ``query`` of ``s``. ``source`` is how it reads ``s``: the table, or through a view
    or an embedded model. ``by_time`` says whether it is by intervals. ``above`` is the input: ``u``
    sliced by the day of its rows, ``t`` by intervals, ``w`` by the day on which rows arrive.
    """

    query: str
    source: str = "table"
    by_time: bool = False
    dialect: str = "spark"
    above: str = "u"

    @property
    def kind(self) -> str:
        return "time" if self.by_time else "part"

    @property
    def text(self) -> str:
        """Its whole query of ``s``."""
        ts, day = (
            ("@start_dt AS ts", "@start_ds") if self.by_time else ("$partition_start AS ts", P)
        )
        return _KEPT.format(ts=ts, d=day, q=self.query)

    @property
    def reads(self) -> str:
        """The name of what it reads as ``s``."""
        return self.above if self.source == "table" else f"{self.source}_{self.above}"

    def script(self, name: str) -> str:
        query = in_dialect(_renamed(self.text, self.reads), self.dialect)
        return _script(name, self.kind, query, self.dialect)


INPUTS = {
    "u": ("part", "date_format(ts, 'yyyy-MM-dd') AS d"),
    "t": ("time", "date_format(ts, 'yyyy-MM-dd') AS d"),
    "w": ("part", "d"),
}


def scripts_of(cases: Sequence[Case]) -> dict[str, str]:
    """Return the scripts of a project with a reader for each case, in order: r0, r1 ..."""
    made: dict[str, str] = {}
    for name, (kind, day) in INPUTS.items():
        made[f"models/{name}"] = _script(name, kind, _bounded(kind, day), "spark")
    for number, case in enumerate(cases):
        if case.source != "table":
            head = f"MODEL (name main.{case.reads}, kind {case.source.upper()});"
            made[f"models/{case.reads}"] = f"{head}\nSELECT * FROM {case.above}"
        made[f"models/r{number}"] = case.script(f"r{number}")
    return made


def _bounded(kind: str, day: str) -> str:
    bounds = {
        "part": "ts >= $partition_start AND ts < $partition_end",
        "time": "ts BETWEEN @start_dt AND @end_dt",
    }
    return f"SELECT ts, {day}, g, v FROM ev WHERE {bounds[kind]}"


def _script(name: str, kind: str, query: str, dialect: str) -> str:
    start = f"{FIRST:%Y-%m-%d}"
    if kind == "time":
        by = "INCREMENTAL_BY_TIME_RANGE (time_column ts, batch_size 1)"
        return f"MODEL (name main.{name}, kind {by}, start '{start}', dialect {dialect});\n{query}"
    head = f'-- pipeline\n-- dialect {dialect}\n-- partitioned daily start="{start}"\n'
    return f"{head}-- materialize ducklake://main/{name}\n{query}"


_MARKS = ("'{partition}'", "$partition_start", "$partition_end", "@start_dt", "@end_dt",
          "@start_ds", "@end_ds")  # fmt: skip


def in_dialect(query: str, dialect: str) -> str:
    """Return a query of Spark's dialect in one, with what stands for the slice as it is."""
    if dialect == "spark":
        return query
    for number, mark in enumerate(_MARKS):
        query = query.replace(mark, f"mark_{number}_")
    (query,) = sqlglot.transpile(query, read="spark", write=dialect)
    query = re.sub(r"\((\d+) \* -1\)", r"(-\1)", query.replace("TRY_CAST", "CAST"))
    for number, mark in enumerate(_MARKS):
        query = query.replace(f"mark_{number}_", mark)
    return query


def _renamed(query: str, name: str) -> str:
    """Return a query that reads ``name`` as ``s``."""
    if name == "s":
        return query
    tree = sqlglot.parse_one(_hidden(query), read="spark")
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name == "s" and "s" not in ctes:
            alias = table.alias or "s"
            table.replace(exp.to_table(name).as_(alias, table=True))
    return _shown(tree.sql("spark"))


def _hidden(query: str) -> str:
    for number, mark in enumerate(_MARKS):
        query = query.replace(mark, f"mark_{number}_")
    return query


def _shown(query: str) -> str:
    for number, mark in enumerate(_MARKS):
        query = query.replace(f"mark_{number}_", mark)
    return query


def as_duckdb(query: str, unit: Unit) -> str:
    """Return a query of Spark's dialect for one slice, as DuckDB takes it."""
    last = unit.end - timedelta(microseconds=1)
    values = {
        "'{partition}'": f"'{unit.start:%Y-%m-%d}'",
        "$partition_start": sql_moment(unit.start),
        "$partition_end": sql_moment(unit.end),
        "@start_dt": sql_moment(unit.start),
        "@end_dt": f"TIMESTAMPTZ '{last:%Y-%m-%d %H:%M:%S.%f}+00'",
        "@start_ds": f"'{unit.start:%Y-%m-%d}'",
        "@end_ds": f"'{last:%Y-%m-%d}'",
    }
    text = in_dialect(query, "duckdb")
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text


class FormDuckling(Duckling):
    """Make the rows of slices by the texts of their queries."""

    def rows(self, model: Model, unit: Unit) -> list[Row]:
        assert isinstance(model, Form)
        text = as_duckdb(model.query, unit)
        found = self.duck.execute(f"SELECT ts, g, v FROM ({text})").fetchall()
        tag = unit.name if model.kind == "part" else None
        return [(at.astimezone(UTC), g, v, tag) for at, g, v in found]


class FormProject:
    """A project with a reader for each case, and rows of three days."""

    def __init__(self, folder: Path, cases: Sequence[Case]) -> None:
        self.cases, self.root = cases, folder / "p"
        write_project(self.root, scripts_of(cases))
        (self.root / "lake").mkdir()
        self.duck: duckdb.DuckDBPyConnection = duck.attach(
            f"ducklake:sqlite:{self.root}/lake/meta.sqlite", data_path=f"{self.root}/lake/data"
        )
        self.duck.execute("CREATE TABLE ev (ts TIMESTAMPTZ, d VARCHAR, g VARCHAR, v BIGINT)")
        self.number = 0
        for day in DAYS[:3]:
            self.insert(day)
        self.project = Project.load(self.root)
        models: dict[str, Model] = {
            name: _form(name, kind, _bounded(kind, day)) for name, (kind, day) in INPUTS.items()
        }
        for number, case in enumerate(cases):
            if case.source != "table":
                models[case.reads] = Model(case.reads, case.source, "copy", ())
            models[f"r{number}"] = _form(f"r{number}", case.kind, _renamed(case.text, case.above))
        self.world = World(models, FIRST, len(DAYS))
        self.now = datetime.combine(DAYS[-1], datetime.min.time(), UTC) + timedelta(hours=12)

    def insert(self, day: date, *, early: int = 0) -> None:
        """Add a row of a day, whose text is that of ``early`` days before."""
        self.number += 1
        at = datetime.combine(day, datetime.min.time(), UTC)
        shown, group = f"{day - early * DAY:%Y-%m-%d}", "ab"[self.number % 2]
        values = f"({sql_moment(at)}, '{shown}', '{group}', {self.number})"
        self.duck.execute(f"INSERT INTO ev VALUES {values}")

    def run(self, *names: str, **asked: Any) -> None:
        there = {name for (name,) in self.duck.execute("SHOW TABLES").fetchall()}
        stored = {name for name, model in self.world.models.items() if model.is_stored}
        content = {name: self.rows(name) for name in there & stored}
        views = (there & self.world.models.keys()) - stored
        duckling = FormDuckling(self.project, self.world, self.duck, content, views)
        duckling.run(names, lambda _: None, {"fire_time": self.now, **asked})

    def rows(self, name: str) -> list[Row]:
        tag = "_wm_partition" if self.world.models[name].kind == "part" else "NULL"
        found = self.duck.execute(f"SELECT ts, g, v, {tag} FROM {name}").fetchall()
        return [(at.astimezone(UTC), g, v, t) for at, g, v, t in found]

    def states(self) -> dict[tuple[str, str], str]:
        """Return the states of the slices of all readers."""
        return {
            (status.model, (each.slice or "")[:10]): each.state
            for status in self.project.status()
            if status.model is not None and status.model.startswith("r")
            for each in status.slices
        }

    def hidden(self, what: str) -> Iterator[str]:
        """Yield the slices that are not what their queries return now, and that `status` calls
        materialized.
        """
        stored: dict[str, list[Row]] = {}
        for (name, text), state in self.states().items():
            model = self.world.models[name]
            if state != "materialized":
                continue
            assert isinstance(model, Form)
            assert model.cadence is not None
            unit = next(each for each in self.world.units(model) if each.name == text)
            found = self.duck.execute(f"SELECT v FROM ({as_duckdb(model.query, unit)})").fetchall()
            rows = stored.setdefault(name, self.rows(name))
            if sorted(v for at, _, v, _ in rows if unit.has(at)) != sorted(v for (v,) in found):
                yield f"{what}: {text} of {self.cases[int(name[1:])]}"


def _form(name: str, kind: str, query: str) -> Form:
    cadence = Cadence(by_time=kind == "time", unit="day")
    return Form(name, kind, "copy", (), cadence, FIRST, query=query)


def silent(folder: Path, cases: Sequence[Case]) -> list[str]:
    """Return the slices of readers that differ from a recomputation while nothing says so, each
    with what was done before.
    """
    folder.mkdir(exist_ok=True)
    project, found = FormProject(folder, cases), list[str]()
    readers = [f"r{number}" for number in range(len(cases))]
    views = sorted({case.reads for case in cases if case.source == "view"})
    days = {"from_": str(DAYS[0]), "to": str(DAYS[2])}
    try:
        for day in (DAYS[0], DAYS[2]):
            project.run(*INPUTS, from_=str(day), to=str(day))
        project.run(*views) if views else None
        project.run(*readers, from_=str(DAYS[2]), to=str(DAYS[2]))
        found += project.hidden("a day of the input is missing")
        project.run(**days)
        found += project.hidden("all was made")
        for day in DAYS:
            project.insert(day, early=1)
            project.run(*INPUTS, from_=str(day), to=str(day), all_=True)
            found += project.hidden(f"{day} was corrected")
        project.run(from_=str(DAYS[0]), to=str(DAYS[3]), behind=True)
        found += project.hidden("all was made again")
        left = {key: state for key, state in project.states().items() if state != "materialized"}
        found += [f"in the end {name} {text} is {state}" for (name, text), state in left.items()]
    finally:
        project.project.close()
        project.duck.close()
    return found


class Corrected:
    """Plain tables of DuckDB with the rows of all days, in which single days are corrected.

    Nothing is run or recorded here: what a slice returns now is compared with what plans say of it.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases, self.number = cases, 0
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'")
        self.duck.execute("CREATE TABLE ev (ts TIMESTAMPTZ, d VARCHAR, g VARCHAR, v BIGINT)")
        part = "strftime(ts, '%Y-%m-%d') AS _wm_partition"
        for name, (_, day) in INPUTS.items():
            columns = in_dialect(f"SELECT ts, {day}, g, v FROM ev", "duckdb")
            self.duck.execute(f"CREATE VIEW {name} AS {columns.replace(' FROM', f', {part} FROM')}")
        for start in DAYS:
            self.insert(start)
        self.known: list[list[list[tuple[Any, ...]]]] = []
        self.units = tuple(map(_unit_of, DAYS))
        self.queries = [
            [as_duckdb(_renamed(case.text, case.above), unit) for unit in self.units]
            for case in cases
        ]

    def insert(self, day: date, *, early: int = 0) -> None:
        self.number += 1
        at = datetime.combine(day, datetime.min.time(), UTC)
        shown, group = f"{day - early * DAY:%Y-%m-%d}", "ab"[self.number % 2]
        values = f"({sql_moment(at)}, '{shown}', '{group}', {self.number})"
        self.duck.execute(f"INSERT INTO ev VALUES {values}")

    def rows(self) -> list[list[list[tuple[Any, ...]]]]:
        """Return the rows of each slice of each case."""
        return [
            [sorted(self.duck.execute(query).fetchall()) for query in queries]
            for queries in self.queries
        ]

    def differing(self, day: date) -> list[set[date]]:
        """Correct a day, and return of each case the slices that return other rows since."""
        before = self.known or self.rows()
        self.insert(day, early=1)
        self.known = self.rows()
        return [
            {DAYS[n] for n, (old, new) in enumerate(zip(*both, strict=True)) if old != new}
            for both in zip(before, self.known, strict=True)
        ]


def _unit_of(day: date) -> Unit:
    start = datetime.combine(day, datetime.min.time(), UTC)
    return Unit(f"{day:%Y-%m-%d}", start, start + DAY)


def known_cases() -> Sequence[tuple[Case, bool]]:
    """Return all cases, and of each whether what it needs is understood."""
    found: list[tuple[Case, bool]] = []
    for condition, is_known in CONDITIONS.items():
        found.append((Case(f"SELECT v FROM s WHERE {condition}"), is_known))
    found += [(Case(query), is_known) for query, is_known in QUERIES.items()]
    for number, (condition, is_known) in enumerate(BY_TIME.items()):
        query = f"SELECT v FROM s WHERE {condition}"
        found.append((Case(query, by_time=True, above="ut"[number % 2]), is_known))
    plain, by_time = f"SELECT v FROM s WHERE d = {P}", "SELECT v FROM s WHERE d = @start_ds"
    shifted = f"SELECT v FROM s WHERE date_add(d, 1) = {P}"
    for source in ("view", "embedded"):
        found += [(Case(shifted, source), True), (Case(shifted, source, above="w"), False)]
        for query, is_timed in ((plain, False), (by_time, True)):
            found += [
                (Case(query, source, is_timed), True),
                (Case(query, source, is_timed, above="w"), False),
            ]
    found += [(Case(plain, above="w"), False), (Case(plain, above="t"), True)]
    return found


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="input-forms-") as folder:
        found = silent(Path(folder) / "f", [case for case, _ in known_cases()])
    print("\n".join(found) or "no slice differs silently")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
