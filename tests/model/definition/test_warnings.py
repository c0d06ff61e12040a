"""Warnings of conditions on the validity of a history's versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.project.loader import load_models
from tests.engine.toy import write_project

STEP = "-- pipeline\n-- materialize ducklake://main/{}\n"
HISTORY = STEP.format("h key=id history") + "SELECT 1 AS id, 'a' AS tier"


def places(root: Path, condition: str, history: str = HISTORY) -> list[tuple[str, int | None]]:
    (root / "models").mkdir()
    text = STEP.format("f") + f"SELECT h.tier FROM o\nJOIN h ON o.id = h.id AND {condition}"
    for name, script in (("h", history), ("f", text)):
        (root / "models" / f"{name}.sql").write_text(script)
    found = load_models(root, lakes=("main",)).diagnostics
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


BY_TIME = (
    "MODEL (name main.{}, kind INCREMENTAL_BY_TIME_RANGE (time_column d){});\nSELECT d FROM {} "
)
FILTER = "WHERE d BETWEEN @start_date AND @end_date"


def test_a_model_without_a_start_is_named(tmp_path: Path) -> None:
    scripts = {
        "models/alone": BY_TIME.format("alone", "", "raw") + FILTER,
        "models/first": BY_TIME.format("first", ", start '2026-01-01'", "raw") + FILTER,
        "models/reader": BY_TIME.format("reader", "", "first") + FILTER,
        "models/merged": "MODEL (name main.merged, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key d));"
        f"\nSELECT d FROM raw {FILTER}",
        "models/header": "-- materialize ducklake://main/header time=d\n-- partitioned daily\n"
        f"SELECT d FROM raw {FILTER}",
        "models/whole": "MODEL (name main.whole, kind FULL);\nSELECT 1 AS d",
    }
    loaded = load_models(write_project(tmp_path / "toy", scripts), lakes=["main"])
    named = [f for f in loaded.diagnostics if f.rule == "no-start"]
    assert sorted(Path(f.location.path).stem for f in named) == ["alone", "header", "merged"]
    assert {f.severity for f in named} == {"warning"}
    assert all("[project.defaults]" in str(f.hint) for f in named)
