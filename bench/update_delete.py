"""UPDATE and DELETE of 1% of a table, warm, against DuckDB and a rewrite in Spark.

DuckDB runs the same statements with its ducklake extension on a lake of its own, with as many
threads as Spark has cores; both lakes have a SQLite catalog. The rows that change are spread evenly
over the table. Each round starts from a copy of a loaded lake; only the statement is timed.
"""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from bench import data, harness
from bench.merge import connect
from penstock import Lake

WHERE = "id % 100 = 7"
GOAL_DUCK, GOAL_REWRITE = 1.2, 0.6
WARMUP = 2
LOADED = "loaded"  # directory of the lakes that are copied


@dataclass(slots=True)
class Penstock:
    """A new lake each round: copied, changed, removed."""

    spark: SparkSession
    work: Path
    target: Path
    statement: str
    rows_after: tuple[int, int] = (0, 0)
    _lake: Lake | None = None

    def load(self) -> None:
        """The lake that is copied for each round."""
        root = self.work / LOADED / "penstock"
        root.mkdir(parents=True)
        with self._attached(root) as lake:
            lake.table("main.orders").append(self.spark.read.parquet(str(self.target)))

    def prepare(self) -> None:
        root = self.work / "penstock"
        shutil.copytree(self.work / LOADED / "penstock", root)
        self._lake = self._attached(root)

    def _attached(self, root: Path) -> Lake:
        return Lake.attach(
            f"ducklake:sqlite:{root / 'meta.sqlite'}",
            data_path=str(root / "data"),
            override_data_path=True,
            spark=self.spark,
        )

    def run(self) -> None:
        assert self._lake is not None
        table = self._lake.table("main.orders")
        if self.statement == "delete":
            table.delete(WHERE)
        else:
            table.update({"state": "'upd'", "amount": "amount + 1"}, WHERE)

    def clean(self) -> None:
        assert self._lake is not None
        self.rows_after = counts(self._lake.sql(f"SELECT {COUNTS} FROM main.orders").collect()[0])
        self._lake.close()
        shutil.rmtree(self.work / "penstock")


COUNTS = "count(*) AS n, count_if(state = 'upd') AS updated"


def counts(row: tuple[int, ...]) -> tuple[int, int]:
    return int(row[0]), int(row[1])


@dataclass(slots=True)
class Rewrite:
    """Copy on write: all rows through one projection or filter."""

    spark: SparkSession
    work: Path
    target: Path
    statement: str
    rows_after: tuple[int, int] = (0, 0)

    def run(self) -> None:
        rows = self.spark.read.parquet(str(self.target))
        if self.statement == "delete":
            rows = rows.where(f"NOT ({WHERE})")
        else:
            rows = rows.selectExpr(
                "id",
                "account",
                f"CASE WHEN {WHERE} THEN cast(amount + 1 AS decimal(10, 2)) ELSE amount END amount",
                "ordered_at",
                f"CASE WHEN {WHERE} THEN 'upd' ELSE state END AS state",
                "note",
            )
        rows.write.parquet(str(self.work / "rewrite"))

    def clean(self) -> None:
        rows = self.spark.read.parquet(str(self.work / "rewrite"))
        self.rows_after = counts(rows.selectExpr(*COUNTS.split(", ")).collect()[0])
        shutil.rmtree(self.work / "rewrite")


@dataclass(slots=True)
class Duck:
    """The real extension, loaded from its PyPI packages."""

    work: Path
    target: Path
    statement: str
    rows_after: tuple[int, int] = (0, 0)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _connection: duckdb.DuckDBPyConnection | None = None

    def load(self) -> None:
        """The lake that is copied for each round."""
        root = self.work / LOADED / "duck"
        root.mkdir(parents=True)
        connection = self._attached(root)
        connection.execute(
            f"CREATE TABLE lake.orders AS FROM read_parquet('{self.target}/*.parquet')"
        )
        connection.execute("DETACH lake")

    def prepare(self) -> None:
        root = self.work / f"duck_{self.statement}_{next(self._numbers)}"
        shutil.copytree(self.work / LOADED / "duck", root)
        self._attached(root)

    def _attached(self, root: Path) -> duckdb.DuckDBPyConnection:
        self._connection = self._connection or connect()
        self._connection.execute(
            f"ATTACH 'ducklake:sqlite:{root / 'meta.sqlite'}' AS lake "
            f"(DATA_PATH '{root / 'data'}', OVERRIDE_DATA_PATH true)"
        )
        return self._connection

    def run(self) -> None:
        assert self._connection is not None
        if self.statement == "delete":
            self._connection.execute(f"DELETE FROM lake.orders WHERE {WHERE}")
        else:
            self._connection.execute(
                f"UPDATE lake.orders SET state = 'upd', amount = amount + 1 WHERE {WHERE}"
            )

    def clean(self) -> None:
        assert self._connection is not None
        found = self._connection.execute(f"SELECT {COUNTS} FROM lake.orders").fetchone()
        self.rows_after = counts(found or (0, 0))
        self._connection.execute("DETACH lake")
        for root in self.work.glob("duck_*"):
            shutil.rmtree(root)


def names(statement: str) -> tuple[str, str, str]:
    return tuple(f"{each} {statement}" for each in ("penstock", "duckdb", "rewrite"))  # type: ignore[return-value]  # three for three


def measure(spark: SparkSession, work: Path, statement: str, rounds: int) -> dict[str, list[float]]:
    """Seconds by side of one statement over ``work/target``."""
    target = work / "target"
    shutil.rmtree(work / LOADED, ignore_errors=True)
    ours = Penstock(spark, work, target, statement)
    duck = Duck(work, target, statement)
    rewrite = Rewrite(spark, work, target, statement)
    ours.load()
    duck.load()
    our_name, duck_name, rewrite_name = names(statement)
    sides = (
        harness.Side(our_name, ours.run, ours.prepare, ours.clean),
        harness.Side(duck_name, duck.run, duck.prepare, duck.clean),
        harness.Side(rewrite_name, rewrite.run, clean=rewrite.clean),
    )
    seconds = harness.race(sides, rounds, warmup=WARMUP)
    counts = {ours.rows_after, duck.rows_after, rewrite.rows_after}
    if len(counts) != 1:
        raise SystemExit(f"the sides do not agree on the rows after the {statement}: {counts}")
    return seconds


def main() -> None:
    options = harness.options("update_delete", __doc__, rows=10_000_000)
    before = harness.load()
    seconds: dict[str, list[float]] = {}
    figures: list[harness.Figure] = []
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        data.orders(spark, 0, options.rows).write.parquet(str(work / "target"))
        for statement in ("update", "delete"):
            seconds |= measure(spark, work, statement, options.rounds)
            ours, duck, rewrite = names(statement)
            title = statement.upper()
            figures += (
                harness.Figure(
                    f"{title} of 1% against DuckDB with ducklake",
                    harness.ratio(seconds, ours, duck),
                    GOAL_DUCK,
                    note=f"{harness.CORES} threads each, SQLite catalogs",
                ),
                harness.Figure(
                    f"{title} of 1% against copy on write in Spark",
                    harness.ratio(seconds, ours, rewrite),
                    GOAL_REWRITE,
                ),
            )
    report = harness.Report(
        "update_delete",
        tuple(figures),
        seconds,
        options.rows,
        options.rounds,
        before,
        harness.load(),
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
