"""Random changes of a Delta table through an index, with deletion vectors, beside a Python model.

    python -m tests.destinations.delta.marked [--seeds FROM TO] [--steps N] [--keep DIRECTORY]

Between them others change the table: delta-rs appends, deletes and compacts, penstock.Delta marks
rows of its own, another index does both. Each version is read by DuckDB's extension, by delta-rs
and by Spark. Then two writers with an index each add to the same numbers, and processes are killed
at each step of a commit. ``--keep`` leaves the tables for `tests.delta.by_delta_spark`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from penstock import Delta
from penstock.delta.log import load
from penstock.destinations.delta.lake import DeltaLake
from penstock.errors import CommitConflict
from tests.delta.oracles import by_delta_rs, by_duckdb, sort
from tests.delta.sequences import condition
from tests.destinations.delta.test_models import DELTA
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
NAMES = ("id", "k", "p", "v")
TYPES = "id BIGINT, k INT, p STRING, v DOUBLE"
ARROW = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("p", pa.string()), ("v", pa.float64())])


@dataclass
class Run:
    """One table of a root. ``at`` has the rows of each version of its log."""

    spark: SparkSession
    folder: Path
    chance: random.Random
    rows: list[Row] = field(default_factory=list)
    at: dict[int, list[Row]] = field(default_factory=dict)
    did: list[str] = field(default_factory=list)
    next_id: int = 0
    vectors: int = 0

    def open(self, index: str = "index") -> DeltaLake:
        uri = f"ducklake:sqlite:{self.folder}/{index}.sqlite"
        root = f"{self.folder}/root"
        return DeltaLake.of_root(root, uri, spark=self.spark, name="d", deletion_vectors=True)

    @property
    def table(self) -> str:
        return f"{self.folder}/root/main/t"

    def new(self, least: int = 0, most: int = 9) -> list[Row]:
        rows = []
        for _ in range(self.chance.randint(least, most)):
            k, v = self.chance.choice([None, *range(8)]), self.chance.choice([None, 0.5, 10, 99])
            place = self.chance.choice(["a", "b", "c d%/é", None])
            v = None if v is None else float(v)
            rows.append({"id": self.next_id, "k": k, "p": place, "v": v})
            self.next_id += 1
        return rows

    def arrow(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=ARROW)

    def views(self, rows: list[Row]) -> dict[str, Any]:
        values = [tuple(row[name] for name in NAMES) for row in rows]
        return {"source": self.spark.createDataFrame(values, TYPES)}

    def append(self, lake: DeltaLake) -> None:
        new = self.new(3)
        self.rows = self.rows + new
        lake.sql("INSERT INTO main.t SELECT * FROM source", views=self.views(new))

    def delete(self, lake: DeltaLake) -> None:
        where = condition(self.chance)
        self.rows = [row for row in self.rows if not where.holds(row)]
        lake.sql(f"DELETE FROM main.t WHERE {where.sql}")

    def update(self, lake: DeltaLake) -> None:
        where = condition(self.chance)
        self.rows = [{**row, "v": -1.0} if where.holds(row) else row for row in self.rows]
        lake.sql(f"UPDATE main.t SET v = -1 WHERE {where.sql}")

    def few(self, lake: DeltaLake) -> None:
        """Only some rows, so that most files are marked."""
        for row in self.chance.sample(self.rows, min(2, len(self.rows))):
            self.rows = [each for each in self.rows if each is not row]
            lake.sql(f"DELETE FROM main.t WHERE id = {row['id']}")
            self.keep()

    def merge(self, lake: DeltaLake) -> None:
        some = self.chance.sample(self.rows, min(len(self.rows), self.chance.randint(0, 3)))
        source = self.new() + [{**row, "v": 77.0} for row in some]
        gone = {row["id"] for row in source}
        self.rows = [row for row in self.rows if row["id"] not in gone] + source
        lake.sql(
            "MERGE INTO main.t USING source ON t.id = source.id WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *",
            views=self.views(source),
        )

    def two_changes(self, lake: DeltaLake) -> None:
        """A deletion and an append in one version, as delete+insert of a model."""
        where, new = condition(self.chance), self.new()
        self.rows = [row for row in self.rows if not where.holds(row)] + new
        with lake.transaction() as tx:
            tx.sql(f"DELETE FROM main.t WHERE {where.sql}")
            tx.sql("INSERT INTO main.t SELECT * FROM source", views=self.views(new))

    def append_by_delta_rs(self, lake: DeltaLake) -> None:
        new = self.new(1)
        self.rows = self.rows + new
        write_deltalake(self.table, self.arrow(new), mode="append")
        lake.refresh()

    def delete_by_delta_rs(self, lake: DeltaLake) -> None:
        k = self.chance.randrange(8)
        self.rows = [row for row in self.rows if row["k"] != k]
        DeltaTable(self.table).delete(f"k = {k}")
        lake.refresh()

    def compact(self, lake: DeltaLake) -> None:
        DeltaTable(self.table).optimize.compact()
        lake.refresh()

    def delete_by_delta(self, lake: DeltaLake) -> None:
        where = condition(self.chance)
        self.rows = [row for row in self.rows if not where.holds(row)]
        Delta.attach(f"{self.folder}/root", spark=self.spark).table("main.t").delete(where.sql)
        lake.refresh()

    def by_another_index(self, lake: DeltaLake) -> None:
        with self.open("other") as other:
            getattr(self, self.chance.choice(["append", "delete", "update", "merge"]))(other)
        lake.refresh()

    def roll_back(self, lake: DeltaLake) -> None:
        """To a version before, which has the columns that the table has now."""
        query = "SELECT version, snapshot_id FROM penstock_delta_version"
        with lake.catalog.reading() as connection:
            known = {row.version: row.snapshot_id for row in connection.exec_driver_sql(query)}
        version = self.chance.choice([at for at in sorted(self.at) if known[at] is not None])
        self.rows = self.at[version]
        lake.table("main.t").rollback(known[version])

    def keep(self) -> None:
        state = load(self.table)
        if state is not None:
            self.at[state.number] = list(self.rows)
            self.vectors += sum(file.vector is not None for file in state.by_key.values())

    def step(self, lake: DeltaLake) -> None:
        name = self.chance.choice(OPERATIONS)
        self.did.append(name)
        getattr(self, name)(lake)
        self.keep()

    def check(self, lake: DeltaLake) -> None:
        query = "SELECT version, snapshot_id FROM penstock_delta_version ORDER BY version"
        with lake.catalog.reading() as connection:
            snapshots = {row.version: row.snapshot_id for row in connection.exec_driver_sql(query)}
        with self.open("new") as new:  # which reads each version from the log
            assert self.by_spark(new, None) == self.model(self.rows), f"new index: {self.did}"
        columns, last = ", ".join(NAMES), None
        for version, rows in sorted(self.at.items()):
            expected, whole = self.model(rows), f"version {version} after {self.did}"
            assert by_duckdb(self.table, version, columns) == expected, f"DuckDB: {whole}"
            assert by_delta_rs(self.table, version, columns) == expected, f"delta-rs: {whole}"
            last = snapshots[version] or last
            assert self.by_spark(lake, last) == expected, f"Spark: {whole}"

    def leave(self, place: Path) -> None:
        """Copy the table, with the rows of each version beside it."""
        shutil.copytree(self.table, place)
        rows = {str(version): self.model(rows) for version, rows in self.at.items()}
        (place.parent / f"{place.name}.json").write_text(json.dumps(rows), encoding="utf-8")

    def by_spark(self, lake: DeltaLake, snapshot: int | None) -> list[tuple[Any, ...]]:
        at = "" if snapshot is None else f"AT (VERSION => {snapshot})"
        return sort(map(tuple, lake.sql(f"SELECT * FROM main.t {at}").collect()))

    def model(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        return sort(tuple(row[name] for name in NAMES) for row in rows)


OPERATIONS = [
    *("append", "append", "delete", "update", "few", "few", "few", "merge", "merge"),
    *("two_changes", "append_by_delta_rs", "delete_by_delta_rs", "compact", "delete_by_delta"),
    *("by_another_index", "roll_back", "roll_back"),
]


def sequence(
    spark: SparkSession, seed: int, steps: int, keep: Path | None = None
) -> tuple[int, int]:
    """Run one; return the number of versions compared, and how often a file had a vector."""
    folder = Path(tempfile.mkdtemp())
    run = Run(spark, folder, random.Random(seed))
    try:
        with run.open() as lake:
            parted = "PARTITIONED BY (p)" if run.chance.random() < 0.4 else ""
            lake.sql(f"CREATE TABLE main.t ({TYPES}) {parted}")
            run.append(lake)
            run.keep()
            for _ in range(steps):
                run.step(lake)
            run.check(lake)
        if keep is not None:
            run.leave(keep / str(seed))
        return len(run.at), run.vectors
    finally:
        shutil.rmtree(folder)


def two_writers(spark: SparkSession, times: int) -> None:
    """Two indexes of one root add to the same numbers; none of what they say they did is lost."""
    folder = Path(tempfile.mkdtemp())
    run = Run(spark, folder, random.Random(0))
    rows = [{"id": id_, "k": 0, "p": "a", "v": 0.0} for id_ in range(20)]
    with run.open() as lake:
        lake.sql(f"CREATE TABLE main.t ({TYPES})")
        lake.sql("INSERT INTO main.t SELECT * FROM source", views=run.views(rows))

    def add(index: str) -> int:
        done = 0
        with run.open(index) as lake:
            for _ in range(times):
                try:
                    lake.sql("UPDATE main.t SET k = k + 1 WHERE id = 3")
                    done += 1
                except CommitConflict:
                    pass
        return done

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(add, ("index", "other")))
    version = DeltaTable(run.table).version()
    ((k,),) = by_duckdb(run.table, version, "max(k)")
    assert k == sum(done), (k, done)
    assert [row[0] for row in by_delta_rs(run.table, version, "count(*)")] == [20]
    print(f"two writers: {done} of {times} each, all there", flush=True)
    shutil.rmtree(folder)


_KILLED = """
import os, signal, sys
from penstock.delta import vectors
from penstock.destinations.delta import catalog, log
from penstock.lakes.catalog.catalog import Catalog
module, name, after = sys.argv.pop(1).split(":")
owner = {"vectors": vectors, "log": log, "catalog": Catalog}[module]
real = getattr(owner, name)
def until_killed(*given, **named):
    made = real(*given, **named) if after == "after" else None
    os.kill(os.getpid(), signal.SIGKILL)
setattr(owner, name, until_killed)
from penstock.cli.main import main
main()
"""
_POINTS = {  # and what the next run finds
    "vectors:write:before": "not there",
    "vectors:write:after": "not there",
    "log:add_version:before": "not there",
    "log:add_version:after": "there",
    "catalog:commit:after": "there",
}
_MERGED = (
    "-- pipeline\n-- materialize delta://sales/main/t key=id\nSELECT * FROM VALUES {} AS v(id, n)"
)
_SPARK = """[spark]
master = "local[1]"
conf."spark.driver.memory" = "700m"
conf."spark.sql.shuffle.partitions" = "1"
"""


def kills() -> None:
    """A merge of a model, killed at each of its steps, and made again."""
    for point, state in _POINTS.items():
        folder = Path(tempfile.mkdtemp())
        config = f"{DELTA}deletion_vectors = true\n{_SPARK}"
        first = ", ".join(f"({id_}, 0)" for id_ in range(9))
        place = write_project(folder / "p", {"models/t": _MERGED.format(first)}, config)
        assert _penstock(place, "from penstock.cli.main import main; main()") == 0
        write_project(place, {"models/t": _MERGED.format("(4, 1), (9, 1)")}, config)
        assert _penstock(place, _KILLED, point) == -9, point
        table = str(place / "delta/main/t")
        before = [(id_, 0) for id_ in range(9)]
        after = [*((id_, 0) for id_ in range(9) if id_ != 4), (4, 1), (9, 1)]
        found = by_duckdb(table, DeltaTable(table).version())
        assert found == sort(after if state == "there" else before), (point, found)
        assert _penstock(place, "from penstock.cli.main import main; main()") == 0
        versions = DeltaTable(table).version()
        assert by_duckdb(table, versions) == sort(after), point
        assert by_delta_rs(table, versions) == sort(after), point
        assert versions == 1, (point, versions)  # no version is made twice
        print(f"killed at {point}: right", flush=True)
        shutil.rmtree(folder)


def _penstock(place: Path, program: str, *arguments: str) -> int:
    command = [sys.executable, "-c", program, *arguments, "run"]
    done = subprocess.run(command, check=False, cwd=place, capture_output=True, text=True)
    if done.returncode > 0:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode


def main() -> None:
    from penstock.engine.session.spark import start_session
    from penstock.settings.config import SparkSettings
    from tests.quick import quick

    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 10))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    conf: Mapping[str, str] = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
    spark = start_session(SparkSettings(master="local[2]", conf=dict(conf)), "marked")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        with quick(spark):
            for seed in range(*args.seeds):
                versions, vectors = sequence(spark, seed, args.steps, args.keep)
                print(seed, versions, "versions,", vectors, "files with vectors", flush=True)
            if args.keep is None:
                two_writers(spark, 12)
    finally:
        spark.stop()
    if args.keep is None:
        kills()


if __name__ == "__main__":
    main()
