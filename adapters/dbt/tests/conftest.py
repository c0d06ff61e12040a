"""One lake and one Spark session for all tests; each class has a schema of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["dbt.tests.fixtures.project"]

SMALL = {"master": "local[2]", "conf": {"spark.driver.memory": "1g"}}


@pytest.fixture(scope="session")
def lake_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def dbt_profile_target(lake_directory: Path) -> dict[str, Any]:
    return {
        "type": "penstock",
        "catalog": f"ducklake:sqlite:{lake_directory / 'lake.sqlite'}",
        "data_path": str(lake_directory / "data"),
        "threads": 2,
        "spark": SMALL,
    }
