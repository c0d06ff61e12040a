"""Warnings of conditions on the validity of a history's versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.project.loader import scan_models

STEP = "-- pipeline\n-- materialize ducklake://main/{}\n"
HISTORY = STEP.format("h key=id history") + "SELECT 1 AS id, 'a' AS tier"


def places(root: Path, condition: str, history: str = HISTORY) -> list[tuple[str, int | None]]:
    (root / "models").mkdir()
    text = STEP.format("f") + f"SELECT h.tier FROM o\nJOIN h ON o.id = h.id AND {condition}"
    for name, script in (("h", history), ("f", text)):
        (root / "models" / f"{name}.sql").write_text(script)
    found = scan_models(root, lakes=("main",)).diagnostics
    return [(f.rule, f.location.line) for f in found]


@pytest.mark.parametrize(
    ("condition", "lines"),
    [
        ("o.at BETWEEN h.valid_from AND h.valid_to", [4]),
        ("(NOT o.at BETWEEN Valid_From AND main.h.`valid_to`) AND 1 = 1", [4]),
        ("o.at BETWEEN h.valid_from AND coalesce(h.valid_to, now())", []),
        ("o.at >= h.valid_from AND (o.at < h.valid_to OR h.valid_to IS NULL)", []),
        ("o.at BETWEEN h.valid_from AND o.last", []),
        ("o.at BETWEEN 1 AND 2", []),
    ],
)
def test_between_leaves_out_open_versions(tmp_path: Path, condition: str, lines: list[int]) -> None:
    assert places(tmp_path, condition) == [("closed-interval", line) for line in lines]


def test_columns_of_that_name_in_another_table(tmp_path: Path) -> None:
    plain = STEP.format("h") + "SELECT 1 AS id, 1 AS valid_from, 2 AS valid_to, 'a' AS tier"
    assert places(tmp_path, "o.at BETWEEN valid_from AND valid_to", plain) == []
