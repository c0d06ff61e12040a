"""A lake's state over a SQLite catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.engine.state.store import State
from penstock.lake.catalog.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog.open(f"ducklake:sqlite:{tmp_path}/meta.sqlite", data_path=str(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def state(catalog: Catalog) -> State:
    return State(catalog)
