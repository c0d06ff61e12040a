"""A few random changes, read by three readers at every version; `sequences` has more by hand.

Tests ``delta/table.py``, ``delta/merge.py``, ``delta/version.py`` and
``delta/version.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.delta import sequences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_sequence(spark: SparkSession, tmp_path: Path) -> None:
    assert sequences.run(spark, str(tmp_path), seed=7, steps=3) > 1
