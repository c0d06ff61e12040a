"""Kill runs of models that read each other at random moments; compare what the next runs leave.

    python -m tests.engine.strategies.killed_inputs --times 200 [--seed 1]

They are `input_sequences` whose killed runs are processes of their own, with Spark, that end by
SIGKILL; what follows is checked as there, and in the end each table is what it is from scratch.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.engine.results import RunResult
from tests.conftest import JVM
from tests.engine.strategies.input_models import Model, Unit
from tests.engine.strategies.input_sequences import Play
from tests.engine.strategies.input_sources import Made
from tests.engine.strategies.range_sequences import Death, Killed

# Runs, and kills itself so many seconds after so many events.
CHILD = """
import json, os, signal, sys, threading
from penstock.project.project import Project

root, select, asked, events, delay = json.loads(sys.argv[1])
heard = []

def sink(event):
    heard.append(event)
    if len(heard) == events:
        threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()

overrides = {"spark.master": "local[1]", "spark.conf.spark.driver.memory": "512m"}
Project.load(root, overrides=overrides).run(*select, on_event=sink, jobs=2, **asked)
"""


class KilledPlay(Play):
    """Its killed runs are processes; ``kills`` counts those that were killed before their end."""

    kills = 0

    def _perform(self, select: Sequence[str], asked: Mapping[str, Any], death: Death) -> RunResult:
        if death.at is None:
            return super()._perform(select, asked, death)
        self.project.close()
        told = {**asked, "fire_time": str(asked["fire_time"])}
        given = (str(self.root), list(select), told, death.at + 2, self.chance.random() * 0.4)
        command = [sys.executable, "-c", CHILD, json.dumps(given)]
        done = subprocess.run(command, capture_output=True, timeout=600, check=False)
        self.kills += done.returncode == -signal.SIGKILL
        self.log.append(f"  ended with {done.returncode}")
        raise Killed

    def _has_changed(self, model: Model, unit: Unit, made: Made) -> bool:
        """A slice that Spark makes again as DuckDB made it counts as changed: each has digests of
        its own, and the children judge what DuckDB made without its tests (seed 9021).
        """
        return True

    def _kill(self) -> int | None:
        """Most runs are killed."""
        return self.chance.randrange(30) if self.chance.random() < 0.7 else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ.setdefault("JDK_JAVA_OPTIONS", JVM)
    kills, seed, bad = 0, options.seed, list[int]()
    while kills < options.times:
        with tempfile.TemporaryDirectory(prefix="killed-inputs-") as folder:
            play = KilledPlay(None, Path(folder), seed)
            wrong = play.play(6)
        kills += play.kills
        if wrong is not None:
            bad.append(seed)
            print(f"--- seed {seed}\n{wrong}", flush=True)
        print(f"seed {seed}: {kills} kills, {len(bad)} differ", flush=True)
        seed += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
