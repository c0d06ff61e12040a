"""``ducklake:NAME``, which DuckDB takes for a secret.

Tests ``lakes/catalog/database/location.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.lakes.catalog.database.location import parse_location


@pytest.mark.parametrize("uri", ["ducklake:my_lake", "my_lake"])
def test_a_name_is_neither_path_nor_file(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="neither a path nor a file") as caught:
        parse_location(uri)
    assert "ducklake:sqlite:PATH" in str(caught.value)
    Path("my_lake").touch()
    assert parse_location(uri).target == str(tmp_path / "my_lake")
