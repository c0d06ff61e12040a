"""A lake to write to, and rows to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = Callable[[str, list[tuple[Any, ...]]], "DataFrame"]


@pytest.fixture
def limits() -> Limits:
    """Of the lake; tests of what is Spark's set them lower."""
    return Limits()


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession, limits: Limits) -> Iterator[Lake]:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/data", spark=spark, limits=limits) as attached:
        yield attached


@pytest.fixture
def rows(spark: SparkSession) -> Rows:
    """Rows as a DataFrame, its columns as in a CREATE TABLE of Spark."""
    return lambda columns, values: spark.createDataFrame(values, columns)


def table_of(df: DataFrame) -> list[tuple[Any, ...]]:
    """The rows, sorted as text."""
    return sorted((tuple(row) for row in df.collect()), key=str)
