"""A small form of the races that `run` holds: 4 processes, and DuckDB where it can keep up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import duck
from tests.lakes.catalog.conftest import Place, postgres_server, postgres_uri
from tests.lakes.concurrent.maintenance import maintain_beside
from tests.lakes.concurrent.run import Race, run
from tests.lakes.concurrent.soak import soak

__all__ = ["postgres_server", "postgres_uri"]


@pytest.fixture(autouse=True)
def _duckdb() -> None:
    duck.required()


def test_on_sqlite(tmp_path: Path) -> None:
    place = Place(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", f"{tmp_path}/data/")
    result = run(Race(place, writers=4, commits=5, tables=1), tmp_path)
    assert not result.problems, str(result)


@pytest.mark.postgres
def test_on_postgres_beside_duckdb(postgres_uri: str, tmp_path: Path) -> None:
    """Two writers of each table."""
    place = Place(postgres_uri, f"{tmp_path}/data/")
    race = Race(place, writers=4, commits=5, tables=2, with_duckdb=True)
    result = run(race, tmp_path)
    assert not result.problems, str(result)


@pytest.mark.postgres
def test_maintenance_beside_writers_and_duckdb(postgres_uri: str, tmp_path: Path) -> None:
    place = Place(postgres_uri, f"{tmp_path}/data/")
    maintained = maintain_beside(
        Race(place, writers=2, commits=6, tables=2, with_duckdb=True), tmp_path
    )
    assert not maintained.problems, "\n".join(maintained.problems)
    assert maintained.done["merge_adjacent_files"], "nothing was merged"
    assert all(
        "which was to be compacted" in refusal or "flush" in refusal
        for refusal in maintained.refused
    )


@pytest.mark.postgres
def test_both_change_and_compact_one_table(postgres_uri: str, tmp_path: Path) -> None:
    result = soak(Place(postgres_uri, f"{tmp_path}/data/"), tmp_path, seconds=4, seed=1)
    assert not result.problems, "\n".join(result.problems)
    assert result.counts["penstock delete"] + result.counts["duckdb delete"], "none was deleted"
