"""A model by time that nothing tells where to begin is named by `check`."""

from __future__ import annotations

from pathlib import Path

from penstock.model.project.loader import scan_models
from tests.engine.toy import write_project

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
    loaded = scan_models(write_project(tmp_path / "toy", scripts), lakes=["main"])
    named = [f for f in loaded.diagnostics if f.rule == "no-start"]
    assert sorted(Path(f.location.path).stem for f in named) == ["alone", "header", "merged"]
    assert {f.severity for f in named} == {"warning"}
    assert all("[project.defaults]" in str(f.hint) for f in named)
