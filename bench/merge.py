"""Merge changes (half updates, half new) into a table, warm, against DuckDB, Spark and delta-rs.

Spark rewrites all rows; so does delta-rs with the files that change, which is duckrun's way
(`deltalake` of the extra ``bench``; left out where that is not installed).

DuckDB does the same MERGE with its ducklake extension on a lake of its own, with as many threads as
Spark has cores. Both lakes have a SQLite catalog, and both read the changes from the same Parquet
files. Each round starts from a freshly loaded table; only the merge is timed.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import duckdb
from pyarrow import parquet
from pyspark.sql import SparkSession, functions

from bench import data, harness
from penstock import Lake

OURS, DUCK, REWRITE = "penstock merge", "duckdb ducklake merge", "spark copy on write"
SQL = "penstock SQL MERGE"
DELTA = "delta-rs merge"
KEY = "id"


@dataclass(slots=True)
class Penstock:
    """A new lake each round: loaded, merged into, removed."""

    folder: ClassVar[str] = "penstock"

    spark: SparkSession
    work: Path
    target: Path
    source: Path
    rows_after: int = 0
    _lake: Lake | None = None

    def prepare(self) -> None:
        root = self.work / self.folder
        root.mkdir()
        self._lake = Lake.attach(
            f"ducklake:sqlite:{root / 'meta.sqlite'}",
            data_path=str(root / "data"),
            spark=self.spark,
        )
        self._lake.table("main.orders").append(self.spark.read.parquet(str(self.target)))

    def run(self) -> None:
        assert self._lake is not None
        changes = self.spark.read.parquet(str(self.source))
        self._lake.table("main.orders").merge(changes, [KEY])

    def clean(self) -> None:
        assert self._lake is not None
        self.rows_after = self._lake.table("main.orders").to_df().count()
        self._lake.close()
        shutil.rmtree(self.work / self.folder)


@dataclass(slots=True)
class Statement(Penstock):
    """The same merge as a statement."""

    folder: ClassVar[str] = "statement"

    def run(self) -> None:
        assert self._lake is not None
        changes = self.spark.read.parquet(str(self.source))
        self._lake.sql(
            f"MERGE INTO orders AS t USING s ON t.{KEY} = s.{KEY} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            views={"s": changes},
        )


@dataclass(slots=True)
class Rewrite:
    """Copy on write with the cheapest plan there is: an anti-join that sends the keys around."""

    spark: SparkSession
    work: Path
    target: Path
    source: Path
    rows_after: int = 0

    def run(self) -> None:
        changes = self.spark.read.parquet(str(self.source))
        unchanged = self.spark.read.parquet(str(self.target)).join(
            functions.broadcast(changes.select(KEY)), KEY, "left_anti"
        )
        unchanged.unionByName(changes).write.parquet(str(self.work / "rewrite"))

    def clean(self) -> None:
        self.rows_after = self.spark.read.parquet(str(self.work / "rewrite")).count()
        shutil.rmtree(self.work / "rewrite")


@dataclass(slots=True)
class Duck:
    """The real extension, loaded from its PyPI packages."""

    work: Path
    target: Path
    source: Path
    rows_after: int = 0
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _connection: duckdb.DuckDBPyConnection | None = None

    def prepare(self) -> None:
        root = self.work / f"duck_{next(self._numbers)}"
        root.mkdir()
        connection = self._connection or connect()
        self._connection = connection
        connection.execute(
            f"ATTACH 'ducklake:sqlite:{root / 'meta.sqlite'}' AS lake (DATA_PATH '{root / 'data'}')"
        )
        connection.execute(
            f"CREATE TABLE lake.orders AS FROM read_parquet('{self.target}/*.parquet')"
        )

    def run(self) -> None:
        assert self._connection is not None
        self._connection.execute(f"""
            MERGE INTO lake.orders AS t
            USING (FROM read_parquet('{self.source}/*.parquet')) AS s ON t.{KEY} = s.{KEY}
            WHEN MATCHED THEN UPDATE SET
                account = s.account, amount = s.amount, ordered_at = s.ordered_at,
                state = s.state, note = s.note
            WHEN NOT MATCHED THEN INSERT
        """)

    def clean(self) -> None:
        assert self._connection is not None
        counted = self._connection.execute("SELECT count(*) FROM lake.orders").fetchone()
        self.rows_after = counted[0] if counted else 0
        self._connection.execute("DETACH lake")
        for root in self.work.glob("duck_*"):
            shutil.rmtree(root)


@dataclass(slots=True)
class Delta:
    """delta-rs on a table of its own, without a server; it uses all cores."""

    work: Path
    target: Path
    source: Path
    rows_after: int = 0

    @property
    def path(self) -> str:
        return str(self.work / "delta")

    def prepare(self) -> None:
        _deltalake().write_deltalake(self.path, parquet.read_table(self.target))

    def run(self) -> None:
        changes = parquet.read_table(self.source)
        merge = (
            _deltalake()
            .DeltaTable(self.path)
            .merge(changes, predicate=f"s.{KEY} = t.{KEY}", source_alias="s", target_alias="t")
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def clean(self) -> None:
        files = _deltalake().DeltaTable(self.path).file_uris()
        self.rows_after = sum(
            parquet.read_metadata(file.removeprefix("file://")).num_rows for file in files
        )
        shutil.rmtree(self.path)


def _deltalake() -> Any:
    return importlib.import_module("deltalake")


def has_delta() -> bool:
    return importlib.util.find_spec("deltalake") is not None


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB with the extensions of the PyPI packages: nothing is fetched."""
    connection = duckdb.connect(config={"threads": harness.CORES})
    for name in ("sqlite_scanner", "ducklake"):
        package = importlib.import_module(f"duckdb_extension_{name}")
        file = f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        connection.execute(f"LOAD '{Path(package.__path__[0]) / file}'")
    return connection


def agree(contenders: Sequence[Penstock | Duck | Rewrite | Delta]) -> int:
    """The rows that each has after its merge, when that is one number."""
    counts = {type(side).__name__: side.rows_after for side in contenders}
    if len(set(counts.values())) != 1:
        raise SystemExit(f"the sides do not agree on the rows after the merge: {counts}")
    return contenders[0].rows_after


def measure(spark: SparkSession, work: Path, rows: int, rounds: int) -> dict[str, list[float]]:
    """Seconds by side. The changes are a tenth of ``rows``."""
    target, source = work / "target", work / "source"
    data.orders(spark, 0, rows).write.parquet(str(target))
    data.changes(spark, rows, rows // 10).write.parquet(str(source))
    ours = Penstock(spark, work, target, source)
    statement = Statement(spark, work, target, source)
    duck = Duck(work, target, source)
    rewrite = Rewrite(spark, work, target, source)
    contenders: list[Penstock | Duck | Rewrite | Delta] = [ours, statement, duck, rewrite]
    sides = [
        harness.Side(OURS, ours.run, ours.prepare, ours.clean),
        harness.Side(SQL, statement.run, statement.prepare, statement.clean),
        harness.Side(DUCK, duck.run, duck.prepare, duck.clean),
        harness.Side(REWRITE, rewrite.run, clean=rewrite.clean),
    ]
    if has_delta():
        delta = Delta(work, target, source)
        contenders.append(delta)
        sides.append(harness.Side(DELTA, delta.run, delta.prepare, delta.clean))
    else:
        print("  deltalake is not installed: pip install 'penstock-spark[bench]'")
    seconds = harness.race(sides, rounds, warmup=2)
    print(f"  each side has {agree(contenders):,} rows after the merge")
    return seconds


def main() -> None:
    options = harness.options("merge", __doc__, rows=10_000_000)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        seconds = measure(spark, work, options.rows, options.rounds)
    figures = [
        harness.Figure(
            "Merge against DuckDB with ducklake",
            harness.ratio(seconds, OURS, DUCK),
            1.0,
            note=f"{harness.CORES} threads each, SQLite catalogs",
        ),
        harness.Figure(
            "Merge against copy on write in Spark", harness.ratio(seconds, OURS, REWRITE), 0.6
        ),
        harness.Figure("SQL MERGE against `Table.merge`", harness.ratio(seconds, SQL, OURS), 1.1),
    ]
    if DELTA in seconds:
        value = harness.ratio(seconds, OURS, DELTA)
        figures.append(harness.Figure("Merge against delta-rs (duckrun's way)", value, 0.7))
    report = harness.Report(
        "merge", tuple(figures), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
