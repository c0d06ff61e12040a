"""Opening a Delta table of many small files: its log is read, and the files of it are listed.

By `penstock.Delta`, by delta-rs, and by a Delta root of a project whose index is new or there. The
files are one Parquet file under many names. A table of thirty times as many, which are in the log
alone, is opened by `penstock.Delta` in a process of its own, for its peak memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from bench import harness
from penstock import Delta
from penstock.delta.actions import Add, Json, Metadata, Protocol, lines
from penstock.delta.log_files import commit_path
from penstock.destinations.delta.lake import DeltaLake

COMMITS = 10
MORE = 30
PENSTOCK, CHECKPOINT = "penstock.Delta", "penstock.Delta, checkpoint"
DELTA_RS, CHECKPOINT_RS = "delta-rs", "delta-rs, checkpoint"
NEW_INDEX, INDEX = "Delta root, new index", "Delta root, index"
KINDS = {"id": "long", "name": "string", "price": "double"}


def fill(table: Path, files: int, *, linked: bool) -> None:
    """A table of so many files; ``linked``: the files are there."""
    (table / "_delta_log").mkdir(parents=True)
    source = table / "source.parquet"
    pq.write_table(pa.table({"id": [0, 9], "name": ["n0", "n9"], "price": [1.5, 1.5]}), source)
    size = source.stat().st_size
    low, high = {"id": 0, "name": "n0", "price": 1.5}, {"id": 9, "name": "n9", "price": 1.5}
    nulls = dict.fromkeys(KINDS, 0)
    stats = {"numRecords": 2, "minValues": low, "maxValues": high, "nullCount": nulls}
    fields = [{"name": n, "type": k, "nullable": True, "metadata": {}} for n, k in KINDS.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    first: list[Json] = [Protocol().json(), Metadata("t", schema, created=1).json()]
    for number in range(COMMITS):
        names = [f"f{at}.parquet" for at in range(number, files, COMMITS)]
        adds = [Add(name, (), size, 1, json.dumps(stats)).json() for name in names]
        info: Json = {"commitInfo": {"timestamp": 1_700_000_000_000 + number}}
        actions = [info, *(() if number else first), *adds]
        Path(commit_path(str(table), number)).write_bytes(lines(actions))
        for name in names if linked else ():
            os.link(source, table / name)


def by_penstock(root: Path) -> int:
    return len(Delta.attach(root).table("main.t").files())


def by_delta_rs(root: Path) -> int:
    return len(DeltaTable(str(root / "main/t")).file_uris())


def by_index(root: Path, index: Path) -> int:
    with DeltaLake.of_root(str(root), f"ducklake:sqlite:{index}") as lake:
        return len(lake.table("main.t").list_files())


def memory(root: Path) -> float:
    """The peak memory, in MB, of a process that opens the table."""
    code = (
        "import sys; from pathlib import Path; from bench import delta_opening, harness;"
        "delta_opening.by_penstock(Path(sys.argv[1])); print(harness.peak_memory_mb())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def main() -> None:
    options = harness.options("delta_opening", __doc__, rows=10_000, rounds=5)
    before = harness.load()
    with harness.scratch(options.work) as work:
        plain, checkpoint, more = work / "plain", work / "checkpoint", work / "more"
        fill(plain / "main/t", options.rows, linked=True)
        fill(more / "main/t", MORE * options.rows, linked=False)
        shutil.copytree(plain / "main/t/_delta_log", checkpoint / "main/t/_delta_log")
        DeltaTable(str(checkpoint / "main/t")).create_checkpoint()
        new, index = work / "new.sqlite", work / "index.sqlite"
        by_index(plain, index)
        sides = [
            harness.Side(PENSTOCK, partial(by_penstock, plain)),
            harness.Side(DELTA_RS, partial(by_delta_rs, plain)),
            harness.Side(CHECKPOINT, partial(by_penstock, checkpoint)),
            harness.Side(CHECKPOINT_RS, partial(by_delta_rs, checkpoint)),
            harness.Side(INDEX, partial(by_index, plain, index)),
            harness.Side(NEW_INDEX, partial(by_index, plain, new), clean=new.unlink),
        ]
        seconds = harness.race(sides, options.rounds)
        peak = memory(more)
    many = f"a Delta table of {options.rows:,} files"
    goals = (
        (f"Opening {many} against delta-rs", PENSTOCK, DELTA_RS),
        (f"Opening {many} with a checkpoint against delta-rs", CHECKPOINT, CHECKPOINT_RS),
        (f"Opening {many} by an index that is there against delta-rs", INDEX, DELTA_RS),
        (f"Opening {many} by a new index against delta-rs", NEW_INDEX, DELTA_RS),
    )
    figures = (
        *(
            harness.Figure(title, harness.ratio(seconds, ours, theirs), 1.2)
            for title, ours, theirs in goals
        ),
        harness.Figure(f"Peak memory of opening {MORE * options.rows:,} files", peak, 1500, "MB"),
    )
    report = harness.Report(
        "delta_opening", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
