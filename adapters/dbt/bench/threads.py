"""Ten small models by one thread and by four, each five times in turn, in one session of Spark::

    .venv-dbt/bin/python adapters/dbt/bench/threads.py

It prints the median seconds of both, and their ratio.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from dbt.cli.main import dbtRunner

MODELS, TIMES, THREADS = 10, 5, (1, 4)
PROJECT = """name: bench
version: "1.0"
config-version: 2
profile: bench
models: {+materialized: table}
"""
PROFILE = """
bench:
  target: dev
  outputs:
    dev: {type: penstock, catalog: "ducklake:sqlite:lake.sqlite", data_path: data/, threads: 1}
"""
MODEL = "select id, id % {number} as part, sha2(cast(id as string), 256) as text from range(1000)"


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="dbt-threads-"))
    (root / "models").mkdir()
    (root / "dbt_project.yml").write_text(PROJECT)
    (root / "profiles.yml").write_text(PROFILE)
    for number in range(1, MODELS + 1):
        (root / "models" / f"m{number}.sql").write_text(MODEL.format(number=number))
    os.chdir(root)
    taken: dict[int, list[float]] = {threads: [] for threads in THREADS}
    for turn in range(TIMES + 1):  # the first starts Spark and compiles
        for threads in THREADS:
            began = time.perf_counter()
            result = dbtRunner().invoke(["--quiet", "run", "--threads", str(threads)])
            if not result.success:
                sys.exit(f"dbt failed: {result.exception or result.result}")
            if turn:
                taken[threads].append(time.perf_counter() - began)
    medians = {threads: statistics.median(times) for threads, times in taken.items()}
    for threads, median in medians.items():
        print(f"{threads} threads: {median:.2f} s (median of {TIMES})")
    print(f"ratio: {medians[THREADS[1]] / medians[THREADS[0]]:.2f}")


if __name__ == "__main__":
    main()
