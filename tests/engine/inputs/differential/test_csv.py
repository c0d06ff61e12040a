"""CSV files by chance are read as DuckDB reads them, or refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.inputs.differential.compare import compare
from tests.engine.inputs.differential.csv_cases import case
from tests.engine.inputs.differential.hunt import described
from tests.quick import quick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 40  # `hunt` tries thousands


@pytest.mark.spark
def test_files_by_chance(tmp_path: Path, spark: SparkSession) -> None:
    outcomes = Counter[str]()
    with quick(spark):
        for number in range(CASES):
            compared = compare(case(number), tmp_path, spark)
            assert compared.outcome != "differs", described(compared)
            assert "NOT BLAMED" not in compared.penstock.error, described(compared)
            outcomes[compared.outcome] += 1
    assert outcomes["same"] > CASES * 0.7, outcomes
