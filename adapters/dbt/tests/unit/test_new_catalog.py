"""A catalog that a profile names and that does not exist is created with a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.penstock import lakes
from dbt.adapters.penstock.credentials import PenstockCredentials
from dbt.adapters.penstock.lakes import Lakes


def test_a_catalog_that_is_created_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with a typing error would give an empty lake, and `dbt debug` would pass."""
    warnings: list[str] = []
    monkeypatch.setattr(lakes.logger, "warning", warnings.append)
    catalog = f"ducklake:sqlite:{tmp_path / 'lake.sqlite'}"
    for _ in range(2):
        opened = Lakes(PenstockCredentials(catalog=catalog, data_path=str(tmp_path / "data")))
        opened.lake()
        opened.close()
    assert warnings == [f"the catalog {catalog} does not exist: it is created now"]
