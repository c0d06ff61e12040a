"""Try many sequences: ``python -m tests.engine.strategies.range_hunt --sequences 2000``.

Of each form in turn; a sequence that comes out other than by the reference is printed with all that
was done, and the program fails.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from penstock.engine.session.spark import start_session
from penstock.settings.config import SparkSettings
from tests.engine.strategies import range_sequences as sequences
from tests.engine.strategies.range_forms import FORMS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=2000, help="in all")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--form", action="append", help="of these only")
    options = parser.parse_args()
    names = tuple(options.form or FORMS)
    conf = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"}
    spark = start_session(SparkSettings(master="local[1]", conf=conf), "range-hunt")
    tried, bad, began = Counter[str](), Counter[str](), time.monotonic()
    for number in range(options.sequences):
        name, seed = names[number % len(names)], options.seed + number // len(names)
        tried[name] += 1
        with tempfile.TemporaryDirectory(prefix="range-hunt-") as folder:
            wrong = sequences.wrong(spark, Path(folder), seed, name)
        if wrong is not None:
            bad[name] += 1
            print(f"--- {name}, seed {seed}\n{wrong}", flush=True)
        if number % 20 == 19:
            seconds = time.monotonic() - began
            print(f"{number + 1} in {seconds:.0f} s, {bad.total()} differ", flush=True)
    print(*(f"{name}: {count}, {bad[name]} differ" for name, count in tried.items()), sep="\n")
    spark.stop()
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
