"""Twenty small models in a session of Spark that runs, by this adapter and by dbt-spark's session::

    .venv-dbt/bin/python adapters/dbt/bench/warm.py OTHER_PYTHON

OTHER_PYTHON has dbt-spark and pyspark. Each adapter has a process of its own, and they take turns;
the first starts Spark. It prints the median seconds of both, and their ratio.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODELS, TIMES = 20, 5
PROJECT = """name: bench
version: "1.0"
config-version: 2
profile: bench
models: {+materialized: table}
"""
PROFILES = {
    "penstock": "{type: penstock, catalog: 'sqlite:lake.sqlite', data_path: data/, threads: 1}",
    "spark": "{type: spark, method: session, schema: main, host: localhost, threads: 1}",
}
MODEL = "select id, id % {number} as part, sha2(cast(id as string), 256) as text from range(1000)"


def main() -> None:
    python = {"penstock": sys.executable, "spark": sys.argv[1]}
    processes = {
        adapter: subprocess.Popen(
            [program, __file__, "--run", adapter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for adapter, program in python.items()
    }
    taken: dict[str, list[float]] = {adapter: [] for adapter in processes}
    for turn in range(TIMES + 1):
        for adapter, process in processes.items():
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            answer = next(line for line in process.stdout if line.startswith("took "))
            if turn:
                taken[adapter].append(float(answer.split()[1]))
    for process in processes.values():
        process.kill()
    medians = {adapter: statistics.median(times) for adapter, times in taken.items()}
    for adapter, median in medians.items():
        print(f"{adapter}: {median:.2f} s (median of {TIMES})")
    print(f"ratio: {medians['penstock'] / medians['spark']:.2f}")


def run(adapter: str) -> None:
    """Run the project once for each line of the input."""
    from dbt.cli.main import dbtRunner

    root = Path(tempfile.mkdtemp(prefix=f"dbt-{adapter}-"))
    (root / "models").mkdir()
    (root / "dbt_project.yml").write_text(PROJECT)
    target = f"bench: {{target: dev, outputs: {{dev: {PROFILES[adapter]}}}}}\n"
    (root / "profiles.yml").write_text(target)
    for number in range(1, MODELS + 1):
        (root / "models" / f"m{number}.sql").write_text(MODEL.format(number=number))
    os.chdir(root)
    for _ in sys.stdin:
        began = time.perf_counter()
        result = dbtRunner().invoke(["--quiet", "run"])
        if not result.success:
            sys.exit(f"dbt failed: {result.exception or result.result}")
        print(f"took {time.perf_counter() - began}", flush=True)


if __name__ == "__main__":
    run(sys.argv[2]) if sys.argv[1] == "--run" else main()
