"""Places for lakes that DuckDB makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import duck
from tests.lakes.catalog.conftest import Place, postgres_server, postgres_uri

__all__ = ["postgres_server", "postgres_uri"]


@pytest.fixture(scope="session", autouse=True)
def _duckdb() -> None:
    duck.required()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", f"{tmp_path}/data/")


@pytest.fixture(params=["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def each_place(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Place:
    """On each of the three databases."""
    if request.param == "sqlite":
        return place
    if request.param == "duckdb":
        return Place(f"ducklake:{tmp_path / 'meta.ducklake'}", place.data_path)
    return Place(str(request.getfixturevalue("postgres_uri")), place.data_path)
