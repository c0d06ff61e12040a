"""Random sequences of DuckDB's statements, on each catalog and by both writers.

Six are one on each catalog by each writer. Of eighteen more the paths through the lake's code were
those of the scripts in `scripts` (160 of 2,900 branches were new among random ones), and an hour of
`hunt` tries hundreds.

``PENSTOCK_TEST_EXAMPLES=1000`` tries that many, and others each time; `hunt` does so for hours.
"""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import duckdb_process, postgres
from tests.lakes.differential import generate, hunt, replay
from tests.lakes.differential.record import Effort
from tests.lakes.differential.script import CATALOGS, WRITERS

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

_EXAMPLES = os.environ.get("PENSTOCK_TEST_EXAMPLES")
_COUNT = int(_EXAMPLES or 4)
_BATCH = 12
_EFFORT = Effort(midway=1, last=8) if _EXAMPLES is None else hunt.EFFORT


def _places() -> list[tuple[str, str]]:
    kinds = [kind for kind in CATALOGS if kind != "postgres" or postgres.why_not() is None]
    writers = [each for each in WRITERS if duckdb_process.why_not(each) is None]
    return list(itertools.product(kinds, writers))


def test_random_sequences(spark: SparkSession, tmp_path: Path) -> None:
    seed = None if _EXAMPLES is None else random.randrange(2**32)
    places = itertools.cycle(_places())
    scripts = generate.scripts(_COUNT, seed)
    assert len(scripts) == _COUNT
    reports = []
    with replay.bench(spark) as room:
        for start in range(0, _COUNT, _BATCH):
            for recording, findings in hunt.check(
                room, scripts[start : start + _BATCH], places, _EFFORT
            ):
                if findings:
                    path = hunt.write(tmp_path, recording, findings)
                    reports.append(f"{path}\n{path.read_text()}\n")
                    reports.append(replay.report(recording, findings))
    if reports:
        pytest.fail("\n".join(reports), pytrace=False)
