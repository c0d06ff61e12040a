"""Directories."""

from __future__ import annotations

import pytest

from penstock.lakes.format.naming import directory_name


@pytest.mark.parametrize(
    ("name", "plain"), [("orders", True), ("a-B_1", True), ("my t", False), ("é", False)]
)
def test_directories(name: str, plain: bool) -> None:
    assert directory_name(name, "some-uuid") == (f"{name}/" if plain else "some-uuid/")
