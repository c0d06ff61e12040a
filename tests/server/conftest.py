"""Catalogs with an agenda: on SQLite, and on each database for what depends on transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.lakes.catalog.catalog import Catalog
from penstock.server.agenda_store import AgendaStore
from tests.lakes.catalog.conftest import (
    Place,
    lake,
    place,
    postgres_server,
    postgres_uri,
    sqlite_place,
)

__all__ = ["lake", "place", "postgres_server", "postgres_uri", "sqlite_place"]


@pytest.fixture
def catalog(sqlite_place: Place) -> Iterator[Catalog]:
    with sqlite_place.open() as opened:
        yield opened


@pytest.fixture
def any_catalog(place: Place) -> Iterator[Catalog]:
    """A catalog on each database."""
    with place.open() as opened:
        yield opened


@pytest.fixture
def store(catalog: Catalog) -> AgendaStore:
    return AgendaStore(catalog)


@pytest.fixture
def any_store(any_catalog: Catalog) -> AgendaStore:
    return AgendaStore(any_catalog)
