"""Random models of partitions by time, and whether one job makes the rows that one a slice makes.

    python -m tests.engine.joint_projects --times 300 [--seed 1] [--tables]

Queries are drawn by a small grammar whose every SELECT has the columns id, k and v: conditions on
the slice below CTEs, derived tables, joins, set operations, groups and windows; and forms that look
across slices, which have to be refused. Compared are the rows of the joint query with those of each
slice's query, or with ``--tables`` whole runs: a range, and a run a day.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.events import ignore
from penstock.model.definition.model import Model
from penstock.model.query.render import trial_names
from penstock.model.script.constants import Bindings
from penstock.model.script.sources import TableSource
from penstock.model.slicing.joint import joint_query, why_apart
from penstock.model.slicing.slice_condition import NotJoint
from penstock.project.project import Project
from penstock.settings.config import SparkSettings
from tests.engine.toy import rows as rows_of
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
FIRST, DAYS = date(2026, 3, 28), 3  # with a day of 23 hours in Paris
CONDITIONS = (
    "{t}.day = '{partition}'",
    "'{partition}' = {t}.text",
    "substring({t}.text, 1, 10) = '{partition}'",
    "CAST({t}.at AS DATE) = DATE '{partition}'",
    "{t}.at >= $partition_start AND {t}.at < $partition_end",
)
PLAIN = ("{a}.id AS id, {a}.k AS k, {b}.v AS v", "{a}.id, {b}.k, {a}.v + coalesce({b}.v, 0) AS v")
STARS = ("a.*", "b.* EXCEPT (v), a.v", "a.id, b.* EXCEPT (id)")
OF_ONE = (
    "{a}.id, {a}.k, {a}.v",
    "DISTINCT {a}.k AS id, {a}.k, {a}.v",
    "id, k, CASE WHEN v > 3 THEN v ELSE -k END AS v",
    "id, k, row_number() OVER (ORDER BY id, k, v) AS v",
    "id, rank() OVER (PARTITION BY k ORDER BY v) AS k, sum(v) OVER () AS v",
    "id, k, lag(v) OVER (PARTITION BY k ORDER BY id, v) AS v",
)
GROUPS = (
    ("{a}.k AS id, count(*) AS k, sum({a}.v) AS v", "GROUP BY {a}.k"),
    ("count(*) AS id, k, CASE WHEN max(v) > 3 THEN 1 ELSE min(v) END AS v", "GROUP BY ALL"),
    ("min(id) AS id, k, max(v) AS v", "GROUP BY 2 HAVING count(*) > 1"),
    ("k AS id, count(DISTINCT v) AS k, sum(count(*)) OVER () AS v", "GROUP BY k"),
)
ACROSS = (
    "SELECT * FROM ({x}) AS q ORDER BY id LIMIT 3",
    "SELECT max(id) AS id, max(k) AS k, count(*) AS v FROM ({x}) AS q",
    "SELECT q.id, q.k, q.v FROM ({x}) AS q RIGHT JOIN dim AS d ON d.k = q.k",
    "SELECT id, k, v FROM dim WHERE k IN (SELECT k FROM ({x}) AS q)",
    "SELECT d.id, d.k, q.v FROM dim AS d LEFT JOIN ({x}) AS q ON d.k = q.k",
    "SELECT id, k, length(to_json(struct(q.*))) AS v FROM ({x}) AS q",
    "SELECT id, k, v FROM ({x}) AS q GROUP BY ROLLUP (id, k, v)",
    "SELECT id, k, v FROM ({x}) AS q UNION ALL SELECT id, k, v FROM dim",
)
JOINS = (
    "{x} JOIN {y} ON a.k = b.k",
    "{x} LEFT JOIN {y} ON a.id = b.id OR b.k = 1",
    "{x}, {y}",
    "{x} CROSS JOIN {y}",
    "{x} JOIN {y} USING (k)",
    "{x} LEFT JOIN {y} USING (id)",
)
HALVES = ("SEMI", "ANTI")


@dataclass
class Grammar:
    """Draws one query; ``named`` are the queries of its WITH, which each has a slice or not."""

    chance: random.Random
    named: dict[str, str] = field(default_factory=dict)

    def query(self) -> str:
        body = self.select(3)
        if self.chance.random() < 0.15:
            body = self.chance.choice(ACROSS).replace("{x}", body)
        if not self.named:
            return body
        return "WITH " + ", ".join(f"{n} AS ({q})" for n, q in self.named.items()) + f" {body}"

    def select(self, depth: int) -> str:
        kind = self.chance.choice(("bottom", "above", "above", "joined", "joined", "set"))
        if depth == 0 or kind == "bottom":
            return self.bottom(depth)
        if kind == "set":
            sign = self.chance.choice(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
            return f"({self.select(depth - 1)}) {sign} ({self.select(depth - 1)})"
        if kind == "above":
            return self.shaped(self.read(depth, "a"), "a")
        return self.joined(self.read(depth, "a"), self.other(depth), self.filter("a"))

    def bottom(self, depth: int) -> str:
        table = self.chance.choice(("events", "other"))
        condition = self.chance.choice(CONDITIONS).replace("{t}", "a")
        if depth and self.chance.random() < 0.4:
            where = f"WHERE {condition}{self.filter('a').replace('WHERE', 'AND', 1)}"
            return self.joined(f"{table} AS a", self.other(depth), where)
        return self.shaped(f"{table} AS a", "a", condition)

    def joined(self, first: str, second: str, where: str) -> str:
        if self.chance.random() < 0.2:
            half = self.chance.choice(HALVES)
            return (
                f"SELECT a.id, a.k, a.v FROM {first} LEFT {half} JOIN {second} ON a.k = b.k {where}"
            )
        join = self.chance.choice(JOINS).replace("{x}", first).replace("{y}", second)
        items = self.chance.choice((*PLAIN, *STARS)).replace("{a}", "a").replace("{b}", "b")
        if "USING" in join:  # which has its columns first in a *
            items = PLAIN[0].replace("{a}", "a").replace("{b}", "b")
        return f"SELECT {items} FROM {join} {where}"

    def other(self, depth: int) -> str:
        return "dim AS b" if self.chance.random() < 0.35 else self.read(depth, "b")

    def read(self, depth: int, name: str) -> str:
        """A query in brackets, one of the WITH, or the same once more."""
        if self.named and self.chance.random() < 0.4:
            return f"{self.chance.choice(list(self.named))} AS {name}"
        inside = self.select(depth - 1)
        if self.chance.random() < 0.4:
            return f"({inside}) AS {name}{self.chance.choice(('', '', '(id, k, v)'))}"
        called = f"w{len(self.named)}"
        self.named[called] = inside
        return f"{called} AS {name}"

    def shaped(self, source: str, name: str, condition: str = "") -> str:
        where = self.filter(name)
        if condition:
            where = f"WHERE {condition}{where.replace('WHERE', 'AND', 1)}"
        elif self.chance.random() < 0.2:
            return f"SELECT * FROM {source} {where}"
        if self.chance.random() < 0.3:
            items, group = self.chance.choice(GROUPS)
            return f"SELECT {items} FROM {source} {where} {group}".replace("{a}", name)
        return f"SELECT {self.chance.choice(OF_ONE)} FROM {source} {where}".replace("{a}", name)

    def filter(self, name: str) -> str:
        some = (f" WHERE {name}.v > 1", f" WHERE ({name}.k = 1 OR {name}.v IS NULL)")
        other = " WHERE EXISTS (SELECT 1 FROM dim WHERE dim.k = 1)"
        return self.chance.choice(("", "", "", "", *some, other))


def source(chance: random.Random, rows: int, *, dim: bool = False) -> str:
    """A query for random rows; NULLs and moments outside of the range among them."""
    listed = []
    for _ in range(rows):
        number = [str(chance.randrange(6)) if chance.random() < 0.9 else "NULL" for _ in range(2)]
        moment = (
            f"TIMESTAMP '{FIRST - timedelta(1)} 12:00:00' + INTERVAL '{chance.randrange(100)}' HOUR"
        )
        listed.append(f"({chance.randrange(9)}, {number[0]}, {number[1]}, {moment})")
    values = ", ".join(listed) or f"(1, 1, 1, TIMESTAMP '{FIRST} 12:00:00')"
    more = "" if dim else ", at, CAST(at AS DATE) AS day, CAST(CAST(at AS DATE) AS STRING) AS text"
    none = "" if listed else " WHERE false"
    return f"SELECT id, k, v{more} FROM VALUES {values} AS t(id, k, v, at){none}"


def scripts(chance: random.Random) -> dict[str, str]:
    """A project: its sources, and a model of partitions by a drawn query."""
    zone = chance.choice(("", ' tz="Europe/Paris"'))
    strategy = chance.choice(("", " append"))
    test = chance.choice(("", "", "-- data_test row_count max=4\n", "-- data_test unique id\n"))
    head = "-- pipeline\n-- materialize ducklake://main/{name}\n"
    made = {
        f"models/{name}": head.format(name=name) + source(chance, rows, dim=name == "dim")
        for name, rows in (("events", chance.randrange(60)), ("other", 30), ("dim", 6))
    }
    model = f"-- pipeline\n-- partitioned daily{zone}\n-- materialize ducklake://main/t{strategy}\n"
    made["models/t"] = model + test + Grammar(chance).query()
    return made


def text_of(script: str) -> str:
    return "\n".join(line for line in script.splitlines() if not line.startswith("--"))


def one_by_one(spark: SparkSession, model: Model, plan_args: Sequence[Bindings]) -> Counter[Any]:
    rendered = model.query.render(trial_names(model.query.sources))
    return Counter(
        (*row, bindings.partition)
        for bindings in plan_args
        for row in spark.sql(rendered.sql, args=rendered.args(bindings)).collect()
    )


def together(spark: SparkSession, model: Model) -> Counter[Any]:
    """Raises NotJoint, and what Spark does where it cannot read the joint query."""
    assert model.partition is not None, "it is drawn so"
    joint = joint_query(model.query.render(trial_names(model.query.sources)))
    values = [str(FIRST + timedelta(day)) for day in range(DAYS)]
    told = [
        condition.by_bounds(values, model.partition)
        if condition.by_time
        else condition.by_value(values, spark.sql(trial).dtypes[0][1])
        for condition, trial in zip(joint.conditions, joint.trials, strict=True)
    ]
    return Counter(map(tuple, spark.sql(joint.query("slice", told)).collect()))


def hunt(spark: SparkSession, root: Path, chance: random.Random) -> tuple[str, str | None]:
    """How a drawn model is made, and what is wrong: the rows alone, without any table."""
    made = scripts(chance)
    project = Project.load(write_project(root, made), spark=spark)
    model = project.model("t")
    why = why_apart(model)
    if why is not None:
        return f"apart: {why.split(' ')[0]}", None
    for query_source, view in trial_names(model.query.sources).items():
        assert isinstance(query_source, TableSource), "it reads no others"
        name = str(query_source.table).rpartition(".")[2]
        spark.sql(text_of(made[f"models/{name}"])).createOrReplaceTempView(view.strip("`"))
    plans = [project.plan(FIRST + timedelta(day), select="t") for day in range(DAYS)]
    try:
        found = together(spark, model)
    except NotJoint as error:
        return f"apart later: {error}", None
    except Exception as error:  # Spark refuses it: then the slices are made one by one
        return f"refused: {str(error).splitlines()[0][:90]}", None
    wanted = one_by_one(spark, model, [plan.steps[0].bindings for plan in plans])
    if found == wanted:
        return "together" if wanted else "together, without rows", None
    lost, more = list((wanted - found).items())[:3], list((found - wanted).items())[:3]
    return "WRONG", f"{made['models/t']}\n lost {lost}\n more {more}"


def hunt_tables(spark: SparkSession, root: Path, chance: random.Random) -> tuple[str, str | None]:
    """The same by runs: a run of the range against a run a day."""
    made, found = scripts(chance), []
    for name in ("range", "days"):
        root.mkdir(exist_ok=True)
        with Project.load(write_project(root / name, made), spark=spark) as project:
            project.run(select=["events", "other", "dim"], on_event=ignore)
            days = [FIRST + timedelta(day) for day in range(DAYS)]
            if name == "range":
                why = why_apart(project.model("t"))
                project.run(select="t", from_=days[0], to=days[-1], on_event=ignore)
            else:
                for day in days:
                    project.run(day, select="t", on_event=ignore)
            slices = project.status("t")[0].slices
            status = sorted((str(each.slice), each.state, each.rows) for each in slices)
            there = any(rows is not None for _, _, rows in status)
            query = "SELECT to_json(struct(*)) AS row FROM t ORDER BY row"
            found.append((status, rows_of(project, query) if there else []))
    wrong = None if found[0] == found[1] else f"{made['models/t']}\n {found[0]}\n {found[1]}"
    return ("together" if why is None else "apart"), wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args(arguments)
    from penstock.engine.session.spark import start_session

    ways, found = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="joint-") as folder:
        spark = start_session(SparkSettings(master="local[2]", conf=CONF), "joint")
        for number in range(options.seed, options.seed + options.times):
            try:
                look = hunt_tables if options.tables else hunt
                way, wrong = look(spark, Path(folder) / str(number), random.Random(number))
            except PenstockError as error:
                way, wrong = "broken", f"{error}"
            ways[way] += 1
            if wrong:
                found.append(f"seed {number}: {wrong}")
                print(found[-1], flush=True)
    for way, count in ways.most_common():
        print(f"{count:5} {way}", flush=True)
    print(f"{len(found)} wrong", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
