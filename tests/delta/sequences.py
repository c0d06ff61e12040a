"""Random changes of a Delta table beside a model in Python, compared at every version.

    python -m tests.delta.sequences [--seeds FROM TO] [--steps N]

delta-rs appends and compacts in between. Each version is read by DuckDB's extension, by delta-rs
and by Spark; all have to be the model's.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, write_deltalake

from penstock import Delta
from penstock.delta.merge import Clause
from penstock.delta.table import Table
from tests.delta.oracles import by_delta_rs, by_duckdb, rows_of, sort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
Rows = list[Row]
COLUMNS = {"id": "long", "k": "int", "p": "string", "v": "double"}
MORE = {"w": "string", "x": "long"}  # columns that come later
PLACES = ["a", "b", "c d%/é", None]


@dataclass(frozen=True)
class Condition:
    """``holds`` is whether it is true, which a NULL is not."""

    sql: str
    holds: Callable[[Row], bool]


def condition(chance: random.Random) -> Condition:
    k, place = chance.randrange(8), chance.choice(PLACES)
    quoted = None if place is None else place.replace("'", "''")
    return chance.choice(
        [
            Condition(f"k = {k}", lambda r: r["k"] == k),
            Condition(f"k < {k}", lambda r: r["k"] is not None and r["k"] < k),
            Condition("k IS NULL", lambda r: r["k"] is None),
            Condition(
                f"k BETWEEN {k} AND {k + 2} OR v > 50",
                lambda r: (
                    (r["k"] is not None and k <= r["k"] <= k + 2)
                    or (r["v"] is not None and r["v"] > 50)
                ),
            ),
            Condition("p IS NULL", lambda r: r["p"] is None)
            if place is None
            else Condition(f"p = '{quoted}'", lambda r: r["p"] == place),
            Condition(
                f"p <> 'a' AND id % 3 = {k % 3}",
                lambda r: r["p"] not in (None, "a") and r["id"] % 3 == k % 3,
            ),
            Condition(f"id >= {k * 10}", lambda r: r["id"] >= k * 10),
        ]
    )


@dataclass
class Run:
    """One table and its model. ``at`` has the rows of each version."""

    spark: SparkSession
    table: Table
    chance: random.Random
    rows: Rows = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=lambda: dict(COLUMNS))
    at: dict[int, tuple[tuple[str, ...], Rows]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    next_id: int = 0

    def new(self, least: int = 0, most: int = 6, **fixed: Any) -> Rows:
        rows = []
        for _ in range(self.chance.randint(least, most)):
            row = {
                "id": self.next_id,
                "k": self.chance.choice([None, *range(8)]),
                "p": self.chance.choice(PLACES),
                "v": self.chance.choice([None, 0.5, 10.0, 99.0]),
                **{name: self.chance.choice([None, "5"]) for name in self.columns if name == "w"},
                **{name: self.chance.choice([None, 5]) for name in self.columns if name == "x"},
            }
            self.next_id += 1
            rows.append({**row, **fixed})
        return rows

    def frame(self, rows: Rows, names: Sequence[str] | None = None) -> DataFrame:
        names = names or list(self.columns)
        schema = ", ".join(f"{name} {self.columns[name]}" for name in names)
        values = [tuple(row[name] for name in names) for row in rows]
        return self.spark.createDataFrame(values, schema)

    # Each changes the table by one call, and sets the rows that it should have.

    def append(self) -> None:
        new = self.new()
        self.rows = self.rows + new
        self.table.append(self.frame(new))

    def overwrite(self) -> None:
        self.rows = self.new(2)
        keys = self.chance.choice([[], ["p"], ["p", "k"], None])
        self.table.overwrite(self.frame(self.rows), partition_by=keys)

    def delete(self) -> None:
        where = condition(self.chance)
        self.rows = [row for row in self.rows if not where.holds(row)]
        self.table.delete(where.sql)

    def update(self) -> None:
        where = condition(self.chance)
        place = self.chance.choice(["a", "b"])
        self.rows = [
            {**row, "p": place, "v": None if row["v"] is None else row["v"] + 1}
            if where.holds(row)
            else row
            for row in self.rows
        ]
        self.table.update({"p": f"'{place}'", "v": "v + 1"}, where.sql)

    def replace_where(self) -> None:
        where = condition(self.chance)
        new = [row for row in self.new() if where.holds(row)]
        self.rows = [row for row in self.rows if not where.holds(row)] + new
        self.table.replace_where(self.frame(new), where.sql)

    def upsert(self) -> None:
        some = self.chance.sample(self.rows, min(len(self.rows), self.chance.randint(0, 3)))
        source = self.new() + [{**row, "v": 77.0, "p": "b"} for row in some]
        gone = {row["id"] for row in source}
        self.rows = [row for row in self.rows if row["id"] not in gone] + source
        self.table.merge(self.frame(source), ["id"])

    def merge(self) -> None:
        some = self.chance.sample(self.rows, min(len(self.rows), 3))
        source = [{**row, "v": self.chance.choice([1.0, 2.0])} for row in some]
        source += self.new(0, 2, v=1.0)
        theirs = {row["id"]: row for row in source}
        place = self.chance.choice(["a", "b"])
        rows = []
        for row in self.rows:
            match = theirs.get(row["id"])
            if match is None:
                if row["p"] == "b":
                    continue
                rows.append({**row, "k": 0} if row["k"] == 3 else row)
            elif match["v"] == 1.0:
                rows.append({**row, "p": place, "v": -1.0})
        ours = {row["id"] for row in self.rows}
        rows += [
            {**dict.fromkeys(self.columns), "id": row["id"], "v": 0.0}
            for row in source
            if row["id"] not in ours
        ]
        self.rows = rows
        clauses = [
            Clause("matched", "update", "source.v = 1", {"p": f"'{place}'", "v": "-source.v"}),
            Clause("matched", "delete"),
            Clause("not_matched", "insert", None, {"id": "source.id", "v": "source.v - 1"}),
            Clause("not_matched_by_source", "delete", "target.p = 'b'"),
            Clause("not_matched_by_source", "update", "target.k = 3", {"k": "0"}),
        ]
        on: Any = self.chance.choice([["id"], "target.id = source.id"])
        self.table.merge(self.frame(source, ["id", "v"]), on, clauses)

    def partial_upsert(self) -> None:
        """Of a source that lacks columns."""
        some = self.chance.sample(self.rows, min(len(self.rows), self.chance.randint(0, 3)))
        source = [*({**row, "v": 55.0} for row in some), *self.new(0, 2)]
        gone = {row["id"]: row for row in source}
        ours = {row["id"] for row in self.rows}
        self.rows = [
            {**row, "v": gone[row["id"]]["v"]} if row["id"] in gone else row for row in self.rows
        ] + [
            {**dict.fromkeys(self.columns), "id": row["id"], "v": row["v"]}
            for row in source
            if row["id"] not in ours
        ]
        self.table.merge(self.frame(source, ["id", "v"]), ["id"])

    def append_by_delta_rs(self) -> None:
        new = self.new(1)
        self.rows = self.rows + new
        write_deltalake(self.table.place.uri, self.frame(new).toArrow(), mode="append")

    def compact_by_delta_rs(self) -> None:
        """delta-rs refuses to compact some tables: those of a newer protocol, with vectors."""
        with contextlib.suppress(Exception):
            DeltaTable(self.table.place.uri).optimize.compact()

    def evolve(self) -> None:
        more = {name: kind for name, kind in MORE.items() if name not in self.columns}
        if not more:
            return
        name = next(iter(more))
        self.columns = {**self.columns, name: more[name]}
        self.rows = [{**row, name: None} for row in self.rows]
        new = self.new(1)
        frame = self.frame(new)
        self.rows = self.rows + new
        self.table.append(frame, evolve=True)

    def vectors(self) -> None:
        on = self.chance.choice(["true", "false"])
        self.table.set_options({"delta.enableDeletionVectors": on})

    def comment(self) -> None:
        self.table.comment(f"c{self.chance.randrange(9)}", self.chance.choice([None, "k"]))

    def step(self) -> None:
        """One commit, or none."""
        if not self.table.exists():
            options = {"delta.checkpointInterval": "4"}
            keys = self.chance.choice([[], ["p"]])
            self.table.create(self.frame([]), partition_by=keys, options=options)
            self.at[0] = (tuple(self.columns), [])
        name = self.chance.choice(OPERATIONS)
        self.log.append(name)
        before = self.table.version()
        getattr(self, name)()
        rows = self.model(self.rows, tuple(self.columns))
        assert rows_of(self.table.to_df().toArrow()) == rows, f"now: {self.log}"
        version = self.table.version()
        assert version <= before + 1
        self.at[version] = (tuple(self.columns), self.rows)

    def model(self, rows: Rows, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
        return sort(tuple(row[name] for name in names) for row in rows)

    def check(self) -> int:
        """Compare every version with the model."""
        uri = self.table.place.uri
        for version, (names, rows) in self.at.items():
            expected, columns = self.model(rows, names), ", ".join(names)
            whole = f"version {version} after {self.log}"
            assert by_duckdb(uri, version, columns) == expected, f"DuckDB: {whole}"
            assert by_delta_rs(uri, version, columns) == expected, f"delta-rs: {whole}"
        version = self.chance.choice([*self.at])
        names, rows = self.at[version]
        assert rows_of(self.table.to_df(version).toArrow()) == self.model(rows, names)
        return len(self.at)


OPERATIONS = [
    *("append", "append", "overwrite", "delete", "delete", "update", "update"),
    *("replace_where", "upsert", "upsert", "partial_upsert", "merge", "merge"),
    *("evolve", "vectors", "vectors", "comment", "append_by_delta_rs", "compact_by_delta_rs"),
]


def run(spark: SparkSession, root: str, seed: int, steps: int) -> int:
    """Run one sequence; return the number of versions that were compared."""
    delta = Delta.attach(root, spark=spark)
    sequence = Run(spark, delta.table(f"seq.s{seed}"), random.Random(seed))
    for _ in range(steps):
        sequence.step()
    return sequence.check()


def main() -> None:
    from penstock.engine.session.spark import start_session
    from penstock.settings.config import SparkSettings
    from tests.quick import quick

    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 10))
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    conf: Mapping[str, str] = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
    spark = start_session(SparkSettings(master="local[2]", conf=dict(conf)), "sequences")
    root = tempfile.mkdtemp()
    try:
        with quick(spark):
            for seed in range(*args.seeds):
                print(seed, run(spark, root, seed, args.steps), "versions", flush=True)
    finally:
        shutil.rmtree(root)
        spark.stop()


if __name__ == "__main__":
    main()
