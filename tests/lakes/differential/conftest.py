"""Lakes that both write and read. On SQLite all scripts run, on PostgreSQL a part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.catalog.conftest import Place, postgres_server, postgres_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["postgres_server", "postgres_uri"]

Rows = Callable[[str, list[tuple[Any, ...]]], "DataFrame"]


@pytest.fixture(scope="session", autouse=True)
def _duckdb() -> None:
    duck.required()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", f"{tmp_path}/data/")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def each_place(request: pytest.FixtureRequest, place: Place) -> Place:
    """On both databases."""
    if request.param == "sqlite":
        return place
    return Place(str(request.getfixturevalue("postgres_uri")), place.data_path)


@pytest.fixture
def attach(spark: SparkSession) -> Callable[[Place], Lake]:
    return lambda at: Lake.attach(at.uri, data_path=at.data_path, spark=spark)


@pytest.fixture
def lake(place: Place, attach: Callable[[Place], Lake]) -> Iterator[Lake]:
    with attach(place) as attached:
        yield attached


@pytest.fixture
def each_lake(each_place: Place, attach: Callable[[Place], Lake]) -> Iterator[Lake]:
    with attach(each_place) as attached:
        yield attached


@pytest.fixture
def rows(spark: SparkSession) -> Rows:
    """Rows as a DataFrame of one partition, its columns as in a CREATE TABLE of Spark."""
    return lambda columns, values: spark.createDataFrame(values, columns).coalesce(1)
