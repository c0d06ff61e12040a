"""A project whose Delta root is in S3 and whose index is in PostgreSQL, by hand.

    PENSTOCK_TEST_S3=DIRECTORY python -m tests.destinations.delta.remote

Runs by each strategy, a version of another engine, tables with deletion vectors (of another engine,
and of a model), two runs at once, and an index that is lost; what is in the tables is read by
DuckDB and by delta-rs. It needs boto3, and httpfs for DuckDB.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from penstock.delta.commit import storage_options
from penstock.lakes.storage import Storage, hold
from penstock.lakes.storage import output as output_to
from tests import duck, postgres, s3
from tests.delta.test_fixtures import FIXTURES
from tests.destinations.delta.test_models import SCRIPTS
from tests.engine.toy import write_project

CONFIG = """
[project]
name = "remote"
[lakes.main]
catalog = "postgres:{postgres} dbname=postgres"
data_path = "{root}/lake"
{store}
[delta.sales]
root = "{root}/delta"
deletion_vectors = true
{store}
[spark]
master = "local[1]"
conf."spark.driver.memory" = "900m"
conf."spark.sql.shuffle.partitions" = "1"
conf."spark.jars" = "{jars}"
"""
ROOT = f"s3://{s3.BUCKET}/remote"
_COMMAND = "from penstock.cli.main import main; main()"


@dataclass(frozen=True)
class Remote:
    """A project, and readers of its tables beside it."""

    folder: Path
    conninfo: str
    reader: duckdb.DuckDBPyConnection

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _COMMAND, *arguments]
        return subprocess.Popen(
            command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, *arguments: str) -> dict[str, str]:
        """Run, and return the state of each step."""
        return _states(self.start("run", "--partition", "2026-01-02", "--json", *arguments))

    def rows(self, table: str, version: int | None = None) -> list[tuple[Any, ...]]:
        at = "" if version is None else f", version => {version}"
        query = f"SELECT * FROM delta_scan('{ROOT}/delta/{table}'{at}) ORDER BY ALL"
        return self.reader.sql(query).fetchall()

    def delta_rs(self, table: str) -> DeltaTable:
        place = f"{ROOT}/delta/{table}"
        return DeltaTable(place, storage_options=storage_options(place))


def _states(job: subprocess.Popen[str]) -> dict[str, str]:
    output = job.communicate()[0]
    try:
        found = json.loads(output.splitlines()[-1])["result"]
    except (ValueError, KeyError, IndexError):
        raise AssertionError(output[-3000:]) from None
    return {each["name"]: each["state"] for each in found["steps"]} | {"": str(job.returncode)}


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(s3.server(folder))
        conninfo = stack.enter_context(postgres.server())
        stack.callback(hold(ROOT, Storage.of(store)))
        lines = "\n".join(f"s3_{key} = {json.dumps(value)}" for key, value in store.items())
        jars = ",".join(s3.spark_jars())
        config = CONFIG.format(postgres=conninfo, root=ROOT, store=lines, jars=jars)
        place = write_project(folder / "p", SCRIPTS, config)
        remote = Remote(place, conninfo, _reader(store))
        for step in STEPS:
            begun = time.monotonic()
            step(remote)
            print(f"{step.__name__}: right, in {time.monotonic() - begun:.0f} s", flush=True)


def _reader(store: Mapping[str, object]) -> duckdb.DuckDBPyConnection:
    con = duck.connect()
    for name in ("httpfs", "delta"):
        package = importlib.import_module(f"duckdb_extension_{name}")
        folder = Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}"
        con.execute(f"LOAD '{folder / name}.duckdb_extension'")
    host = str(store["endpoint"]).removeprefix("http://")
    con.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{s3.KEY}', SECRET '{s3.SECRET}', REGION 'us-east-1', "
        f"ENDPOINT '{host}', USE_SSL false, URL_STYLE 'path')"
    )
    return con


def _each_strategy(remote: Remote) -> None:
    states = remote.run()
    assert states == {**dict.fromkeys(states, "done"), "": "0"}, states
    for name in ("whole", "added", "merged"):
        assert remote.rows(f"main/{name}") == [(1, "a"), (2, "b")], name
    assert remote.rows("shop/daily") == [("2026-01-02", 2, "2026-01-02")]
    again = remote.run()
    assert again == {**dict.fromkeys(again, "unchanged"), "added": "done", "": "0"}, again


def _another_engine(remote: Remote) -> None:
    place = f"{ROOT}/delta/main/whole"
    more = pa.table({"id": pa.array([3], pa.int32()), "name": ["c"]})
    write_deltalake(place, more, mode="append", storage_options=storage_options(place))
    states = remote.run("daily", "--force")
    assert states["daily"] == "done", states
    assert remote.rows("shop/daily") == [("2026-01-02", 3, "2026-01-02")]
    table = QueryBuilder().register("t", remote.delta_rs("main/whole"))
    assert pa.table(table.execute("SELECT * FROM t").read_all()).num_rows == 3
    assert remote.rows("main/whole", 0) == [(1, "a"), (2, "b")]


def _vectors(remote: Remote) -> None:
    """A table of delta-spark's with deletion vectors, read in the store."""
    for path in (FIXTURES / "others/vectors").rglob("*.*"):
        if path.is_file():
            with output_to(f"{ROOT}/delta/{path.relative_to(FIXTURES)}") as out:
                out.write(path.read_bytes())
    job = remote.start("sql", "SELECT count(*) AS n FROM sales.others.vectors", "--json")
    output = job.communicate()[0]
    assert json.loads(output)["rows"] == [[22]], output[-3000:]


def _marked(remote: Remote) -> None:
    """A merge marks a row of a file in the store."""
    source = "SELECT * FROM VALUES (2, 'B'), (3, 'c') AS v(id, name)"
    header = "-- pipeline\n-- materialize ducklake://main/source\n"
    (remote.folder / "models/source.sql").write_text(header + source)
    states = remote.run("source", "merged")
    assert states == {"source": "done", "merged": "done", "": "0"}, states
    assert remote.rows("main/merged") == [(1, "a"), (2, "B"), (3, "c")]
    assert remote.rows("main/merged", 0) == [(1, "a"), (2, "b")]
    marks = pa.table(remote.delta_rs("main/merged").deletion_vectors().read_all())
    assert marks.num_rows == 1


def _two_at_once(remote: Remote) -> None:
    before = len(remote.rows("main/added"))
    jobs = [remote.start("run", "added", "--json") for _ in range(2)]
    states = [_states(job) for job in jobs]
    print(states)
    done = sum(each.get("added") == "done" for each in states)
    assert len(remote.rows("main/added")) == before + 2 * done
    assert done, states


def _lost_index(remote: Remote) -> None:
    before = remote.rows("main/added")
    with psycopg.connect(f"{remote.conninfo} dbname=postgres", autocommit=True) as connection:
        connection.execute("DROP SCHEMA penstock_delta_sales CASCADE")
    states = remote.run("merged", "whole")
    assert states["merged"] == "unchanged", states
    assert states["whole"] == "failed", states  # no record says whose its rows are
    adopted = remote.start("adopt", "whole")
    output = adopted.communicate()[0]
    assert adopted.returncode == 0, output[-3000:]
    assert remote.rows("main/added") == before


STEPS = (_each_strategy, _another_engine, _vectors, _marked, _two_at_once, _lost_index)

if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(sys.path))
    main()
