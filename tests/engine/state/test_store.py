"""Runs, slices, checks and schema versions in the catalog.

Tests ``engine/state/records.py`` (rows as values), too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from penstock.engine.results import CheckResult, ColumnInfo
from penstock.engine.state import reading, run_history
from penstock.engine.state.records import (
    InputRead,
    KeptPart,
    ProcessId,
    ReadRecord,
    lies_among_others,
    this_process,
)
from penstock.engine.state.store import State, StepRecords, divide_step, forget, publish
from penstock.model.time.interval import Interval
from tests.engine.state.builders import at, publication, run_record, step_record


def test_nothing_is_known_before_the_first_run(state: State) -> None:
    assert state.slice("main.a", "") is None
    with state.reading() as connection:
        assert connection is None


@pytest.mark.parametrize("strategy", ["merge", "append", "history", "time_range"])
def test_rows_that_lie_among_others_are_counted_for_the_step(state: State, strategy: str) -> None:
    """The rows of a time range are the slice's own; those of a merge are known as written only."""
    text = Interval(at(0), at(60)).text
    own = None if lies_among_others(strategy, text) else 4
    what = publication(strategy=strategy, slice=text, rows=own, written=None if own else 5)
    state.begin_run(run_record())
    state.begin_step(step_record(slice=text))
    state.confirm(what, 7)
    slice_ = state.slice("main.a", text)
    assert slice_ is not None
    with state.reading() as connection:
        assert connection is not None
        (step,) = run_history.step_runs(connection, "main.a", 9)
    expected = (4, 4, 4) if strategy == "time_range" else (None, 5, 5)
    assert (slice_.rows, step.rows, what.reported) == expected


def test_views_and_files_report_no_rows() -> None:
    assert publication(strategy="view", rows=0).reported is None
    assert publication(strategy="files", rows=2).reported is None
    assert publication(strategy="manual", rows=2).reported == 2


def test_a_run_is_recorded_at_its_start(state: State) -> None:
    assert state.begin_run(run_record()) == []
    assert state.run("r1") == run_record()


def test_a_run_that_ended_keeps_its_state(state: State) -> None:
    state.begin_run(run_record())
    state.end_run("r1", "failed")
    run = state.run("r1")
    assert run is not None
    assert run.state == "failed"
    assert run.finished_at is not None


def test_a_killed_run_is_abandoned_by_the_next(state: State) -> None:
    dead = replace(this_process(), started="another process had this number")
    state.begin_run(run_record("r1", process=dead))
    state.begin_step(step_record("r1"))
    assert state.begin_run(run_record("r2")) == ["r1"]
    run = state.run("r1")
    assert run is not None
    assert run.state == "abandoned"
    with state.reading() as connection:
        assert connection is not None
        assert [step.state for step in run_history.step_runs(connection, "main.a", 9)] == [
            "abandoned"
        ]


def test_a_living_run_and_one_of_another_host_are_left_alone(state: State) -> None:
    state.begin_run(run_record("r1"))
    state.begin_run(run_record("r2", process=ProcessId("elsewhere", 1, "x")))
    assert state.begin_run(run_record("r3")) == []


def test_publication_writes_slice_step_checks_and_columns(state: State) -> None:
    state.begin_run(run_record())
    state.begin_step(step_record())
    state.confirm(publication(), 7)
    slice_ = state.slice("main.a", "2026-01-01")
    assert slice_ is not None
    assert (slice_.snapshot_id, slice_.rows, slice_.fingerprint) == (7, 3, "3:abc")
    with state.reading() as connection:
        assert connection is not None
        (step,) = run_history.step_runs(connection, "main.a", 9)
        (check,) = reading.last_checks(connection)
        (version,) = reading.schema_versions(connection, "main.a")
    assert (step.state, step.rows, step.snapshot_id) == ("done", 3, 7)
    assert check.result == CheckResult("unique id", True, 0)
    assert version.columns == (ColumnInfo("id", "int32"), ColumnInfo("name", "varchar"))


def test_a_result_has_its_severity_and_its_query(state: State) -> None:
    state.begin_run(run_record())
    result = CheckResult("unique id", False, 2, ({"id": 1},), "warn", "SELECT id FROM t")
    state.confirm(publication(checks=(result,)), 7)
    with state.reading() as connection:
        assert connection is not None
        (check,) = reading.last_checks(connection, ["main.a"])
    assert (check.result, check.result.outcome) == (result, "warned")


def test_a_second_publication_replaces_the_slice(state: State) -> None:
    state.begin_run(run_record())
    state.confirm(publication(), 7)
    state.confirm(publication(rows=5), 8)
    slice_ = state.slice("main.a", "2026-01-01")
    assert slice_ is not None
    assert (slice_.snapshot_id, slice_.rows) == (8, 5)


def test_a_schema_version_only_when_columns_change(state: State) -> None:
    state.begin_run(run_record())
    first = publication()
    reordered = publication(columns=first.columns[::-1])
    retyped = publication(columns=(ColumnInfo("id", "int64"), first.columns[1]))
    for snapshot, made in enumerate((first, first, reordered, retyped, retyped, first), start=1):
        state.confirm(made, snapshot)
    with state.reading() as connection:
        assert connection is not None
        versions = reading.schema_versions(connection, "main.a")
    assert [(version.version, version.snapshot_id) for version in versions] == [
        (1, 1),
        (2, 3),
        (3, 4),
        (4, 6),
    ]


def test_a_version_has_the_lineage_of_its_last_definition(state: State) -> None:
    state.begin_run(run_record())
    for snapshot, lineage in enumerate(
        ({"id": ["main.b.id"]}, None, {"id": ["main.c.n"]}), start=1
    ):
        state.confirm(publication(lineage=lineage), snapshot)
        with state.reading() as connection:
            assert connection is not None
            (version,) = reading.schema_versions(connection, "main.a")
        expected = "main.c.n" if snapshot == 3 else "main.b.id"
        assert version.lineage == {"id": (expected,)}


def test_failed_tests_are_kept_and_the_slice_is_not(state: State) -> None:
    state.begin_run(run_record())
    state.begin_step(step_record())
    samples = ({"id": 1, "when": at(0)},)
    failed = CheckResult("unique id", False, 2, samples)
    state.fail_tests(publication(checks=(failed,), reason="1 test failed"))
    assert state.slice("main.a", "2026-01-01") is None
    with state.reading() as connection:
        assert connection is not None
        (check,) = reading.last_checks(connection)
        (step,) = run_history.step_runs(connection, "main.a", 9)
    assert check.result.samples == ({"id": 1, "when": str(at(0))},)
    assert (step.state, step.reason) == ("failed", "1 test failed")


def test_the_last_attempt_counts_however_it_ended(state: State) -> None:
    for minutes, outcome in enumerate(("done", "failed", "cancelled", "abandoned")):
        run_id = f"r{minutes}"
        state.begin_run(run_record(run_id))
        state.begin_step(step_record(run_id, started_at=at(minutes)))
        state.end_step((run_id, "clean/a", "2026-01-01"), outcome, None)
    with state.reading() as connection:
        assert connection is not None
        (attempt,) = reading.unpublished_attempts(connection, ["main.a"])
        history = run_history.step_runs(connection, "main.a", 3)
    assert attempt.state == "abandoned"
    assert [one.state for one in history] == ["abandoned", "cancelled", "failed"]


def test_the_last_checks_are_those_of_the_latest_run(state: State) -> None:
    state.begin_run(run_record())
    state.confirm(publication("r1"), 1)
    state.confirm(publication("r2", at=at(5), checks=(CheckResult("not_null id", True, 0),)), 2)
    with state.reading() as connection:
        assert connection is not None
        assert [check.result.name for check in reading.last_checks(connection)] == ["not_null id"]


def test_a_slice_keeps_what_defined_it(state: State) -> None:
    state.begin_run(run_record())
    state.confirm(publication(slicing="daily", keys=("id", "day")), None, as_of=7)
    found = state.slice("main.a", "2026-01-01")
    assert found is not None
    assert (found.slicing, found.keys) == ("daily", ("id", "day"))
    assert (found.snapshot_id, found.made_in) == (7, None)


def test_a_table_made_anew_forgets_its_other_slices(state: State) -> None:
    state.begin_run(run_record())
    for day in ("2026-01-01", "2026-01-02"):
        state.begin_step(step_record(slice=day, state="failed"))
        state.confirm(publication(slice=day), 7)
    state.begin_step(step_record(slice="2026-01-03", state="failed"))
    state.confirm(publication(slice="2026-01", at=at(9), anew=True), 8)
    assert [slice_.slice for slice_ in state.slices("main.a")] == ["2026-01"]
    with state.reading() as connection:
        assert connection is not None
        assert reading.unpublished_attempts(connection) == []
        assert len(run_history.step_runs(connection, "main.a", 9)) == 3


def test_a_slice_that_was_dropped_is_forgotten(state: State) -> None:
    state.begin_run(run_record())
    state.confirm(publication(), 7)
    state.confirm(publication(slice="2026-01-02"), 8)
    for _ in range(2):
        state.forget("main.a", "2026-01-01")
    assert [slice_.slice for slice_ in state.slices("main.a")] == ["2026-01-02"]
    with state.reading() as connection:
        assert connection is not None
        assert {check.slice for check in reading.last_checks(connection)} == {"2026-01-02"}


def test_outcomes_that_published_nothing_are_known_by_slice(state: State) -> None:
    state.begin_run(run_record())
    state.begin_step(*(step_record(slice=value) for value in ("a", "b", "c")))
    state.write(lambda connection: publish(connection, 1, publication(slice="a")))
    state.end_step(("r1", "clean/a", "b"), "cancelled", None)
    with state.reading() as connection:
        assert connection is not None
        (record,) = reading.slices_of(connection, ["main.a"])["main.a"]
        assert (record.slice, record.run_id, record.definition_hash) == ("a", "r1", "d1")
        attempts = reading.unpublished_attempts(connection, ["main.a"])
        assert {(attempt.slice, attempt.state, attempt.run_id) for attempt in attempts} == {
            ("b", "cancelled", "r1"),
            ("c", "running", "r1"),
        }


def test_a_step_is_divided_into_its_parts(state: State) -> None:
    state.begin_run(run_record())
    whole = replace(step_record("r1"), slice="a/c", started_at=at(1))
    state.begin_step(whole)
    parts = [
        replace(whole, slice="a/b", state="done", started_at=at(5)),
        replace(whole, slice="b/c", state="failed", started_at=at(5), reason="no"),
    ]
    state.write(lambda connection: divide_step(connection, parts, "a/c"))
    with state.reading() as connection:
        assert connection is not None
        runs = run_history.step_runs(connection, whole.target, 9)
    assert {(run.slice, run.state, run.started_at) for run in runs} == {
        ("a/b", "done", at(1)),
        ("b/c", "failed", at(1)),
    }


def test_kinds_of_slices_are_known_with_their_last_snapshot(state: State) -> None:
    state.begin_run(run_record())
    for number, (value, slicing) in enumerate((("a", "daily"), ("b", "daily"), ("c", None))):
        state.confirm(publication(slice=value, slicing=slicing), number + 1)
    with state.reading() as connection:
        assert connection is not None
        found = reading.slices_alike(connection, ["main.a"])["main.a"]
        assert {(each.slicing, each.last) for each in found} == {("daily", 2), (None, 3)}
        (named,) = reading.slices_named(connection, ["main.a"], {"b", "z"})
        assert named.slice == "b"


def test_what_slices_were_made_from_is_recorded_once_for_all_of_them(state: State) -> None:
    state.begin_run(run_record())
    inputs = (InputRead("table", "main.main.b"), InputRead("file", "a.csv", size=3, hash="x"))
    read = ReadRecord("read-1", "main.a", "r1", {"main": 6, "other": 2}, inputs, {"n": None})
    days = ("2026-01-01", "2026-01-02")
    made = tuple(publication(slice=day, read_id="read-1") for day in days)
    state.write(lambda connection: StepRecords(made, 6, reads=(read,)).write(connection, 7))
    assert {each.read_id for each in state.slices("main.a")} == {"read-1"}
    with state.reading() as connection:
        assert connection is not None
        assert reading.read(connection, "read-1") == read
        assert reading.lakes_read(connection, ["main.a"]) == {"read-1": {"main": 6, "other": 2}}
        assert reading.read(connection, "read-2") is None


def test_an_interval_that_stays_as_it_was_keeps_what_made_its_parts(state: State) -> None:
    state.begin_run(run_record())
    first, second = (f"2026-01-0{n}T00:00:00Z/2026-01-0{n + 1}T00:00:00Z" for n in (1, 2))
    both = "2026-01-01T00:00:00Z/2026-01-03T00:00:00Z"
    parts = (KeptPart(first, 4, 1), KeptPart(second, 7, 2))
    what = publication(slice=both, parts=parts, made_before=7, strategy="time_range")
    for snapshot in (None, 9):
        state.write(partial(StepRecords((what,), 8).write, snapshot_id=snapshot))
        found = [(each.slice, each.made_in, each.rows) for each in state.slices("main.a")]
        kept = [(first, 4, 1), (second, 7, 2)]
        assert found == (kept if snapshot is None else [(both, 9, 3)])
        what = replace(what, gone=(first, second))


def test_a_slice_that_was_dropped_says_by_which_snapshot(state: State) -> None:
    state.begin_run(run_record())
    for value in ("2026-01-01", "2026-01-02"):
        state.confirm(publication(slice=value), 7)
    state.write(lambda connection: forget(connection, "main.a", "2026-01-01", at(1), 9))
    state.write(lambda connection: forget(connection, "main.a", "2026-01-02", at(1)))
    assert state.read(reading.dropped, dict[str, dict[str, int]]()) == {"main.a": {"2026-01-01": 9}}
    state.write(lambda connection: forget(connection, "main.a", None, at(2)))
    assert state.read(reading.dropped, dict[str, dict[str, int]]()) == {}
