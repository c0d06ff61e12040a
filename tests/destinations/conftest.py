"""One suite over all destinations: a test that asks for ``destination`` runs on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.destinations.delta.lake import DeltaLake
from penstock.destinations.destination import Destination
from penstock.lakes.lake import Lake
from tests.destinations.memory import MemoryDestination

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["ducklake", "memory", "delta"])
def destination(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
) -> Iterator[Destination]:
    if request.param == "memory":
        yield MemoryDestination(spark)
        return
    if request.param == "delta":
        index = f"ducklake:sqlite:{tmp_path / 'index.sqlite'}"
        with DeltaLake.of_root(f"{tmp_path}/root", index, spark=spark) as root:
            yield root
        return
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/data", spark=spark) as lake:
        yield lake
