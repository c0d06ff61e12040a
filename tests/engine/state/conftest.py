"""A lake's state over both databases: a test that asks for ``state`` runs on each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.engine.state.store import State
from penstock.lakes.catalog.catalog import Catalog
from tests.lakes.catalog.conftest import Place, place, postgres_server, postgres_uri

__all__ = ["place", "postgres_server", "postgres_uri"]


@pytest.fixture
def catalog(place: Place) -> Iterator[Catalog]:
    with place.open() as opened:
        yield opened


@pytest.fixture
def state(catalog: Catalog) -> State:
    return State(catalog)
