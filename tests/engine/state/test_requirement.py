"""What a commit requires of the records that it was planned by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.engine.state.records import Requirement
from penstock.engine.state.store import State
from penstock.errors import CommitConflict
from tests.engine.state.builders import publication, run_record

DAYS = "2026-01-01T00:00:00Z/2026-01-04T00:00:00Z"
LAST = "2026-01-03T00:00:00Z/2026-01-04T00:00:00Z"
NEXT = "2026-01-04T00:00:00Z/2026-01-05T00:00:00Z"


def publish(state: State, run_id: str, slice_: str, **changes: Any) -> None:
    state.confirm(replace(publication(run_id, slice=slice_), **changes), 7)


@pytest.mark.parametrize(
    ("known", "asked", "meanwhile", "refused"),
    [
        ((), "2026-01-01", "2026-01-02", False),  # of another slice
        ((), "2026-01-01", "2026-01-01", True),  # it was not there
        (("2026-01-01",), "2026-01-01", "2026-01-01", True),  # published once more
        ((DAYS,), NEXT, LAST, False),  # intervals that have nothing in common
        ((), DAYS, LAST, True),  # a part of it
        (("",), "", "", True),  # a whole table
    ],
)
def test_a_record_of_another_run_is_refused(
    state: State, known: tuple[str, ...], asked: str, meanwhile: str, refused: bool
) -> None:
    state.begin_run(run_record())
    for slice_ in known:
        publish(state, "r1", slice_)
    required = Requirement.of("main.a", [asked], state.slices("main.a"))
    publish(state, "r2", meanwhile)
    what = replace(publication("r3", slice=asked), requires=required)
    if not refused:
        state.confirm(what, 8)
        return
    with pytest.raises(CommitConflict, match="run r2 has published"):
        state.confirm(what, 8)
    records = {record.slice: record.run_id for record in state.slices("main.a")}
    assert "r3" not in records.values()


def test_a_record_that_was_dropped_is_missed(state: State) -> None:
    state.begin_run(run_record())
    publish(state, "r1", "2026-01-01")
    required = Requirement.of("main.a", ["2026-01-01"], state.slices("main.a"))
    state.forget("main.a", "2026-01-01")
    with pytest.raises(CommitConflict, match="was dropped since it was read"):
        state.confirm(replace(publication("r2"), requires=required), 8)
