"""Every strategy but history against a plain reference; `range_hunt` tries thousands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import duck
from tests.engine.strategies import range_sequences as sequences
from tests.engine.strategies.range_forms import FORMS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SEED, ACTIONS = 1, 3


@pytest.mark.parametrize("name", FORMS)
def test_sequences_of_runs_come_out_as_by_the_reference(
    tmp_path: Path, spark: SparkSession, name: str
) -> None:
    duck.required()
    assert sequences.wrong(spark, tmp_path / "s", SEED, name, ACTIONS) is None
