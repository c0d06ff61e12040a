"""The arguments of the lake's table functions."""

from __future__ import annotations

import pytest

from penstock.errors import ArgumentError
from penstock.sql.lake_functions import require_arguments


@pytest.mark.parametrize(
    ("name", "count", "named", "message"),
    [
        ("table_changes", 3, (), None),
        ("ducklake_table_changes", 5, (), None),
        ("ducklake_list_files", 2, ("snapshot_version",), None),
        ("table_changes", 2, (), "the argument to is missing"),
        ("ducklake_table_changes", 3, (), "the argument from is missing"),
        ("snapshots", 1, (), "takes 0 arguments, and 1 are given"),
        ("ducklake_list_files", 2, ("snapshot_versio",), "did you mean snapshot_version"),
        ("table_changes", 2, ("until",), r"write table_changes\(table, from, to\)"),
    ],
)
def test_arguments(name: str, count: int, named: tuple[str, ...], message: str | None) -> None:
    if message is None:
        require_arguments(name, count, named)
        return
    with pytest.raises(ArgumentError, match=message):
        require_arguments(name, count, named)
