"""What a restatement makes again, of a model and of what reads it. No Spark, no catalog."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from penstock.engine.planning.intervals import Event, IntervalHistory
from penstock.engine.planning.restatement_scope import (
    BuildTimes,
    Cascade,
    RestatementScope,
    by_cron,
    cascade,
)
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval
from penstock.model.time.slice import WHOLE, Part
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.toy import write_project

KIND = "MODEL (name main.{}, kind {});\nSELECT ds, n FROM {}"
DAY = "INCREMENTAL_BY_TIME_RANGE (time_column ds, auto_restatement_cron '@daily'{})"
BY = " WHERE ds BETWEEN @start_ds AND @end_ds"
KEYED = "INCREMENTAL_BY_UNIQUE_KEY (unique_key n{})"
SCRIPTS = {
    "models/day": KIND.format("day", DAY.format(", auto_restatement_intervals 2"), "src") + BY,
    "models/v": KIND.format("v", "VIEW", "day"),
    "models/below": KIND.format("below", "INCREMENTAL_BY_TIME_RANGE (time_column ds)", "v") + BY,
    "models/keyed": KIND.format("keyed", KEYED.format(""), "day"),
    "models/part": "-- materialize ducklake://main/part\n-- partitioned daily\n"
    "SELECT ds, n FROM day WHERE ds = '{partition}'",
    "models/log": KIND.format("log", "INCREMENTAL_UNMANAGED", "day"),
    "models/hist": "-- materialize ducklake://main/hist history key=n\nSELECT ds, n FROM keyed",
    "models/full": KIND.format("full", "FULL", "day"),
    "models/last": KIND.format("last", KEYED.format(""), "full"),
}
NOW = datetime(2026, 1, 6, 3, tzinfo=UTC)
DUE = NOW.replace(hour=0)
BEFORE, AFTER = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, 1, tzinfo=UTC)


def days(first: int, last: int) -> Interval:
    return Interval(datetime(2026, 1, first, tzinfo=UTC), datetime(2026, 1, last + 1, tzinfo=UTC))


def made(*events: tuple[datetime, Interval]) -> BuildTimes:
    texts = ((at.isoformat(timespec="microseconds"), each) for at, each in events)
    return BuildTimes(
        painted=IntervalHistory.of(Event(at, each, SliceState.MATERIALIZED) for at, each in texts)
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.load(write_project(tmp_path_factory.mktemp("cascade") / "p", SCRIPTS))


def found(project: Project, pasts: Mapping[str, BuildTimes], *names: str) -> Cascade:
    """What a run of models makes again at `NOW`; of all of them without names."""
    models: list[Model] = project.graph.ordered(project.models)
    planned = names or tuple(model.name for model in models)
    waves: dict[str, RestatementScope] = by_cron(models, pasts, NOW)
    return cascade(models, project.graph.parents, planned, pasts, first=waves)


def test_it_goes_on_to_all_that_read_it(project: Project) -> None:
    parts = tuple((Part(f"2026-01-0{day}"), BEFORE) for day in (3, 4, 5))
    pasts = {
        "day": made((BEFORE, days(1, 5))),
        "below": made((BEFORE, days(1, 5))),
        "part": BuildTimes(parts=parts),
        **dict.fromkeys(("keyed", "log", "hist", "full", "last"), BuildTimes(BEFORE)),
    }
    seen = found(project, pasts)
    assert {name: (each.slices, each.anew) for name, each in seen.again.items()} == {
        "day": ((days(4, 5),), False),
        "below": ((days(4, 5),), False),
        "part": ((Part("2026-01-04"), Part("2026-01-05")), False),
        "keyed": ((WHOLE,), True),
        "last": ((WHOLE,), True),
    }
    assert seen.again["last"].why.startswith("auto_restatement_cron '@daily' of day was due")
    assert seen.left_out.keys() == {"log", "hist"}


def test_an_interrupted_run_is_gone_on_with(project: Project) -> None:
    """The model was restated, and one of its readers; the others are still to be."""
    pasts = {
        "day": made((BEFORE, days(1, 3)), (AFTER, days(4, 5))),
        "below": made((BEFORE, days(1, 4)), (AFTER, days(5, 5))),
        "keyed": BuildTimes(AFTER),
        "full": BuildTimes(AFTER),
        "last": BuildTimes(BEFORE),
    }
    again = found(project, pasts).again
    assert {name: each.slices for name, each in again.items()} == {
        "below": (days(4, 4),),
        "last": (WHOLE,),
    }


def test_a_reader_waits_for_what_it_reads(project: Project) -> None:
    """What is not restated yet, and not in the run either, restates nothing."""
    pasts = {
        "day": made((BEFORE, days(1, 5))),
        "below": made((BEFORE, days(1, 5))),
        "full": BuildTimes(BEFORE),
        "last": BuildTimes(BEFORE),
    }
    assert found(project, pasts, "below", "last").again == {}
    assert found(project, pasts, "day").again.keys() == {"day"}


def test_what_was_made_since_is_not_made_again(project: Project) -> None:
    pasts = {"day": made((AFTER, days(1, 5))), "keyed": BuildTimes(AFTER), "below": BuildTimes()}
    assert found(project, pasts) == Cascade({}, {}, found(project, pasts).passed)
