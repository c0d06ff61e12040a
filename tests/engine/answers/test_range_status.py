"""The slices of models in a range of time. No Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from penstock.cli.status import print_ranges
from penstock.engine.answers.range_status import in_range
from penstock.engine.planning.intervals import Event, IntervalHistory
from penstock.engine.planning.ranges import SliceRange
from penstock.engine.results import ModelStatus, SliceStatus, Statuses
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.toy import write_project

SCRIPTS = {
    "models/t": "MODEL (name main.t, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));\n"
    "SELECT DATE '2026-01-01' AS ds",
    "models/days": "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/days\n"
    "SELECT '{partition}' AS d",
}
NOW = datetime(2026, 1, 21, 1, tzinfo=UTC)
ASKED = SliceRange(date(2026, 1, 1), date(2026, 1, 20))


def days(first: int, last: int) -> Interval:
    """Both included."""
    return Interval(datetime(2026, 1, first, tzinfo=UTC), datetime(2026, 1, last + 1, tzinfo=UTC))


def known_of(model: Model, *slices: SliceStatus) -> ModelStatus:
    return ModelStatus(model.name, str(model.target), model.strategy.name, None, slices)


def statuses(tmp_path: Path) -> Statuses:
    project = Project.load(write_project(tmp_path / "p", SCRIPTS))
    t, partitioned = project.model("t"), project.model("days")
    batch, failed = days(1, 5), days(6, 6)
    painted = IntervalHistory(
        (Event("a", batch, SliceState.MATERIALIZED), Event("b", failed, SliceState.FAILED))
    )
    known = Statuses(
        [
            known_of(partitioned, SliceStatus("2026-01-02", SliceState.MATERIALIZED, rows=3)),
            known_of(t, SliceStatus(str(batch), SliceState.MATERIALIZED, rows=50)),
        ]
    )
    return in_range(known, [t, partitioned], ASKED, lambda models: {t.name: painted}, NOW)


def test_what_a_batch_made_stands_for_its_intervals(tmp_path: Path) -> None:
    _, t = statuses(tmp_path)
    assert [(each.slice, each.state, each.rows, each.intervals) for each in t.slices] == [
        ("2026-01-01 to 2026-01-05", SliceState.MATERIALIZED, 50, 5),
        ("2026-01-06", SliceState.FAILED, None, 1),
        ("2026-01-07 to 2026-01-20", "missing", None, 14),
    ]


def test_each_partition_is_a_slice(tmp_path: Path) -> None:
    partitioned, _ = statuses(tmp_path)
    assert len(partitioned.slices) == 20
    assert [each.slice for each in partitioned.slices if each.rows] == ["2026-01-02"]


def test_intervals_are_counted_as_plan_counts_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_ranges(statuses(tmp_path))
    printed = " ".join(capsys.readouterr().out.split())
    assert "5 materialized, 1 failed, 14 missing 2026-01-07 to 2026-01-20" in printed
    assert "19 missing, 1 materialized" in printed
