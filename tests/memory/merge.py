"""Merge many rows in a container: ``python -m tests.memory.merge [--limit 3g] [--rows N]``.

A project with a table that is merged by key: a first run fills it with ``--rows`` rows, a second
one merges as many, of which half are there already. Both are commands of their own in a control
group without swap. Prints the peak of memory and how often the kernel killed a process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.memory.groups import Group, limited

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "from penstock.cli.main import main; main()"
SETTINGS = """
[project]
name = "shop"

[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
"""
MODEL = """-- pipeline
-- materialize ducklake://main/orders key=id

SELECT * FROM read_parquet('source.parquet')
"""
ROWS = """
import pyarrow as pa, pyarrow.parquet as pq, sys
first, end, path, state = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
writer = None
for start in range(first, end, 500_000):
    ids = range(start, min(end, start + 500_000))
    table = pa.table({
        "id": pa.array(ids, pa.int64()),
        "account": pa.array([i * 2654435761 % 1000003 for i in ids], pa.int32()),
        "amount": pa.array([i * 40503 % 1000000 / 100 for i in ids], pa.float64()),
        "state": pa.array([state] * len(ids), pa.string()),
        "note": pa.array([f"order {i * 7919 % 100000}" for i in ids], pa.string()),
    })
    writer = writer or pq.ParquetWriter(path, table.schema)
    writer.write_table(table)
writer.close()
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command came to. ``used`` is the most that was seen of memory that stays."""

    code: int
    seconds: float
    used: int
    peak: int
    kills: int
    output: str


def project(folder: Path) -> Path:
    """A project in ``folder``, on its disk."""
    root = folder / "shop"
    (root / "models").mkdir(parents=True)
    (root / "penstock.toml").write_text(SETTINGS)
    (root / "models" / "orders.sql").write_text(MODEL)
    return root


def write_source(root: Path, group: Group, first: int, end: int, state: str) -> None:
    """The rows that the model reads, written in the group as well: their cache counts."""
    target = str(root / "source.parquet")
    command = [sys.executable, "-c", ROWS, str(first), str(end), target, state]
    done = group.run(command, cwd=ROOT, env=os.environ)
    assert done.returncode == 0, done.stdout


def run(root: Path, group: Group, *arguments: str, environ: Mapping[str, str]) -> Outcome:
    """Run a command of Penstock in the group, watched."""
    command = [sys.executable, "-c", COMMAND, *arguments, "--project", str(root)]
    seen, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            seen[0] = max(seen[0], group.anonymous)

    watching = threading.Thread(target=watch)
    watching.start()
    began, kills = time.monotonic(), group.kills
    done = group.run(command, cwd=ROOT, env=environ)
    seconds = time.monotonic() - began
    ended.set()
    watching.join()
    return Outcome(done.returncode, seconds, seen[0], group.peak, group.kills - kills, done.stdout)


def merge(folder: Path, limit: int, rows: int, environ: Mapping[str, str]) -> list[Outcome]:
    """Fill a table with ``rows`` rows and merge as many into it."""
    root = project(folder)
    outcomes = []
    with limited(limit) as group:
        for number, first in enumerate((0, rows // 2)):
            write_source(root, group, first, first + rows, f"state {number}")
            outcomes.append(run(root, group, "run", environ=environ))
            if outcomes[-1].code != 0:
                break
    return outcomes


def size(text: str) -> int:
    """Bytes of ``3g`` or ``1500m``."""
    return int(text[:-1]) << {"m": 20, "g": 30}[text[-1]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.memory.merge", description=__doc__)
    parser.add_argument("--limit", type=size, default=3 << 30)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="penstock-memory-"))
    try:
        outcomes = merge(folder, options.limit, options.rows, os.environ)
    finally:
        shutil.rmtree(folder)
    for name, each in zip(("fill", "merge"), outcomes, strict=False):
        print(each.output)
        print(
            f"{name}: exit code {each.code}, {each.seconds:.1f} s, "
            f"{each.used >> 20} MiB in use at most, {each.peak >> 20} MiB with the page cache, "
            f"{each.kills} killed"
        )
    sys.exit(max(each.code for each in outcomes))


if __name__ == "__main__":
    main()
