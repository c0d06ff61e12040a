"""Try many sequences: ``python -m tests.engine.strategies.history_hunt --sequences 2000``.

They are computed in batches, each in a table of its own; a sequence that comes out other than by
the reference is printed with its loads, and the program fails.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from penstock.engine.session.spark import start_session
from penstock.model.values.history import History
from penstock.settings.config import SparkSettings
from tests.engine.strategies import history_sequences as sequences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=2000, help="of each form")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    options = parser.parse_args()
    conf = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    spark = start_session(SparkSettings(master="local[2]", conf=conf), "history-hunt")
    bad = 0
    for name, form in sequences.FORMS.items():
        for start in range(options.first, options.first + options.sequences, options.batch):
            seeds = range(start, min(start + options.batch, options.first + options.sequences))
            with tempfile.TemporaryDirectory() as folder:
                found = sequences.faults(sequences.run(spark, Path(folder), form, seeds), seeds)
            print(f"{name}: {len(seeds)} from {start}, {len(found)} differ", flush=True)
            for seed, (made, wanted) in found.items():
                _show(seed, form, made, wanted)
            bad += len(found)
    spark.stop()
    raise SystemExit(1 if bad else 0)


def _show(seed: int, form: History, made: object, wanted: object) -> None:
    print(f"seed {seed}")
    for number, load in enumerate(sequences.sequence(seed, form)):
        print(f"  load at {sequences.now_of(number)}: {load}")
    print(f"  made   {made}\n  wanted {wanted}")


if __name__ == "__main__":
    main()
