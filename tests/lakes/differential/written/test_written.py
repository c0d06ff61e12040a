"""Sequences that Penstock writes, or Penstock and DuckDB in turn, read back by both.

``PENSTOCK_TEST_EXAMPLES=1000`` tries that many random ones, and others each time; `hunt` does so
for hours. What it found once is kept in ``cases``.
"""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import postgres
from tests.lakes.differential.script import CATALOGS
from tests.lakes.differential.written import generate, hunt
from tests.lakes.differential.written.altering import transactions
from tests.lakes.differential.written.script import Script, load

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

_EXAMPLES = os.environ.get("PENSTOCK_TEST_EXAMPLES")
# One on each catalog: `hunt` plays thousands, and what it found is in `cases`.
_COUNT = int(_EXAMPLES or 3)
_ALTERING = int(_EXAMPLES or 2)
_STEPS = (3, 6) if _EXAMPLES is None else (7, 14)  # jobs of Spark are what takes the time
_BATCH = 12
_CASES = sorted((Path(__file__).parent / "cases").glob("*.sql"))


def _catalogs() -> list[str]:
    return [kind for kind in CATALOGS if kind != "postgres" or postgres.why_not() is None]


def _check(
    spark: SparkSession,
    scripts: list[Script],
    catalogs: list[str],
    limit: int | None,
    ours: int | None,
) -> None:
    reports = []
    kinds = itertools.cycle(catalogs)
    with hunt.room(spark) as room:
        for start in range(0, len(scripts), _BATCH):
            batch = scripts[start : start + _BATCH]
            for played, findings in room.check(batch, kinds, limit, ours):
                if findings:
                    reports.append(f"{played.script.text}\n{hunt.report(played, findings)}")
    if reports:
        pytest.fail("\n\n".join(reports), pytrace=False)


def test_random_sequences(spark: SparkSession) -> None:
    seed = 1 if _EXAMPLES is None else random.randrange(2**32)
    _check(spark, generate.scripts(_COUNT, seed, steps=_STEPS), _catalogs(), 10, 2)


def test_random_alterations(spark: SparkSession) -> None:
    """Transactions that alter tables and then look for rows by conditions, others beside them."""
    seed = 1 if _EXAMPLES is None else random.randrange(2**32)
    by = (generate.OURS, generate.OURS, generate.OURS, generate.MIXED)
    _check(spark, transactions.scripts(_ALTERING, seed, by, most=1), _catalogs(), 10, 2)


def test_cases(spark: SparkSession) -> None:
    """Each on one catalog that it names."""
    scripts = [script for script in map(load, _CASES) if script.xfail is None]
    for kind in _catalogs():
        _check(spark, [s for s in scripts if s.catalogs[0] == kind], [kind], None, None)
