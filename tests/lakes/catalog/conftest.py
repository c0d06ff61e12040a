"""One suite over the three databases: a test that asks for ``lake`` runs on each."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from penstock.lakes.catalog.catalog import Catalog
from tests import postgres


@dataclass(frozen=True)
class Place:
    """Where a lake is to be made."""

    uri: str
    data_path: str

    def open(self, **options: object) -> Catalog:
        return Catalog.open(self.uri, data_path=self.data_path, **options)  # type: ignore[arg-type] # by name


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    reason = postgres.why_not()
    if reason is not None:
        pytest.skip(reason)
    with postgres.server() as conninfo:
        yield conninfo


@pytest.fixture
def postgres_uri(postgres_server: str) -> Iterator[str]:
    """The URI of a catalog in an empty database of its own."""
    name = f"lake_{uuid.uuid4().hex}"
    with psycopg.connect(f"{postgres_server} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield f"ducklake:postgres:dbname={name} {postgres_server}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    makers: dict[str, Callable[[], str]] = {
        "sqlite": lambda: f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}",
        "duckdb": lambda: f"ducklake:{tmp_path / 'meta.ducklake'}",
        "postgres": lambda: str(request.getfixturevalue("postgres_uri")),
    }
    return Place(makers[request.param](), f"{tmp_path}/data/")


@pytest.fixture
def lake(place: Place) -> Iterator[Catalog]:
    with place.open() as catalog:
        yield catalog


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return Place(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", f"{tmp_path}/data/")
