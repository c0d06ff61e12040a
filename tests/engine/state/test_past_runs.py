"""What slices took in past runs."""

from __future__ import annotations

import pytest

from penstock.engine.state.run_history import MadeOnce, Pace, last_made, pace_of
from penstock.engine.state.store import State
from penstock.engine.state.tables import to_text
from tests.engine.state.builders import at, publication, run_record, step_record


def made(run_id: str, *ends: int, rows: int | None = 10, began: int = 0) -> list[MadeOnce]:
    start = to_text(at(began))
    return [MadeOnce(run_id, str(end), start, to_text(at(end)), rows) for end in ends]


def one(_: str) -> int:
    return 1


def test_nothing_is_known_without_a_past_run() -> None:
    assert pace_of([], one) is None


def test_slices_of_one_job_share_its_time() -> None:
    assert pace_of(made("r1", 4, 4), one) == Pace(120, 10, 1)


def test_the_median_of_runs_counts() -> None:
    runs = [*made("r3", 1), *made("r2", 100), *made("r1", 2)]
    assert pace_of(runs, one) == Pace(120, 10, 3)
    assert pace_of(runs[:2], one) == Pace(50.5 * 60, 10, 2)


def test_a_slice_may_stand_for_many_units() -> None:
    assert pace_of(made("r1", 4, rows=40), lambda _: 4) == Pace(60, 10, 1)


def test_rows_that_were_not_counted_are_unknown() -> None:
    assert pace_of(made("r1", 1, rows=None), one) == Pace(60, None, 1)


@pytest.fixture
def known(state: State) -> State:
    state.begin_run(run_record())
    for slice_ in ("2026-01-01", "2026-01-02"):
        state.begin_step(step_record(slice=slice_, started_at=at(0)))
    state.confirm(publication(at=at(2)), 1)
    state.end_step(("r1", "clean/a", "2026-01-02"), "failed", "as it is")
    return state


def test_only_slices_that_were_made_count(known: State) -> None:
    found = known.read(lambda connection: last_made(connection, "main.a"), list[MadeOnce]())
    assert found == [MadeOnce("r1", "2026-01-01", to_text(at(0)), to_text(at(2)), 3)]
