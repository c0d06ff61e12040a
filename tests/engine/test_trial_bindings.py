"""``check --spark`` has a trial value for all that a query binds, also of models by time."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.verifying.spark_check import trial_bindings
from penstock.model.project.loader import load_models
from tests.engine.toy import write_project

BY_TIME = "MODEL (name main.t, start '2026-01-01', kind INCREMENTAL_BY_TIME_RANGE (time_column d));"


@pytest.mark.parametrize(
    ("script", "names"),
    [
        (f"{BY_TIME}\nSELECT @start_date AS d, @end_epoch AS n, @execution_ts AS x", 3),
        (f"{BY_TIME}\nSELECT 1 AS d WHERE $partition_end < now()", 1),
        ("MODEL (name main.t, kind FULL);\nSELECT @start_ds AS d, @execution_ds AS x", 2),
        ("-- partitioned daily\n-- materialize ducklake://main/t\nSELECT @end_ds AS d", 1),
    ],
)
def test_times_have_trial_values(tmp_path: Path, script: str, names: int) -> None:
    root = write_project(tmp_path / "toy", {"models/t": script})
    (model,) = load_models(root, lakes=["main"]).models
    values = trial_bindings(model, model.query, None).arguments
    assert len([value for value in values.values() if value is not None]) >= names
