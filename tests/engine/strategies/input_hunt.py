"""Try many sequences: ``python -m tests.engine.strategies.input_hunt --sequences 2000``.

A sequence that comes out otherwise than the reference says is printed with all that was done, and
the program fails.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import traceback
from contextlib import nullcontext
from pathlib import Path

from penstock.engine.session.spark import start_session
from penstock.settings.config import SparkSettings
from tests.conftest import JVM
from tests.engine.strategies import input_again, input_sequences
from tests.quick import quick


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=2000, help="in all")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--actions", type=int, default=input_sequences.ACTIONS)
    parser.add_argument("--again", action="store_true", help="retry and roll back, too")
    parser.add_argument("--no-spark", action="store_true", help="DuckDB makes the rows")
    options = parser.parse_args()
    os.environ.setdefault("JDK_JAVA_OPTIONS", JVM)
    conf = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"}
    settings = SparkSettings(master="local[1]", conf=conf)
    spark = None if options.no_spark else start_session(settings, "input-hunt")
    bad, began = list[int](), time.monotonic()
    played = input_again if options.again else input_sequences
    with nullcontext() if spark is None else quick(spark):
        for number in range(options.sequences):
            seed = options.seed + number
            with tempfile.TemporaryDirectory(prefix="input-hunt-") as folder:
                try:
                    wrong = played.wrong(spark, Path(folder), seed, options.actions)
                except Exception:
                    wrong = traceback.format_exc()
            if wrong is not None:
                bad.append(seed)
                print(f"--- seed {seed}\n{wrong}", flush=True)
            seconds = time.monotonic() - began
            print(f"{number + 1} in {seconds:.0f} s, {len(bad)} differ: {bad}", flush=True)
    if spark is not None:
        spark.stop()
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
