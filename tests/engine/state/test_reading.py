"""What is read back from the state tables, those of the oldest version that is migrated too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Table, create_engine, insert, inspect

from penstock.engine.state import reading
from penstock.engine.state.columns import METADATA
from penstock.engine.state.reading import SliceDrop, SlicesAlike
from penstock.engine.state.tables import (
    BUILT,
    CHECK,
    DROPPED,
    NONE_NEEDED,
    OLDEST,
    READ,
    RUN,
    SCHEMA_VERSION,
    SLICE,
    STEP,
    UNCOUNTED,
    VERSION,
    to_text,
)
from tests.engine.state.builders import START, at, make_oldest

VERSIONS = (OLDEST, VERSION)


@contextmanager
def tables(version: int = VERSION) -> Iterator[Connection]:
    """State tables as a version had them."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        METADATA.create_all(connection)
        if version == OLDEST:
            make_oldest(connection)
        yield connection.execution_options(**{reading.VERSION: version})
    engine.dispose()


def put(connection: Connection, table: Table, *rows: Mapping[str, Any]) -> None:
    """Insert rows, without the columns that the table does not have yet."""
    if not inspect(connection).has_table(table.name):
        return
    there = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for row in rows:
        known = {name: value for name, value in row.items() if name in there}
        connection.execute(insert(table).values(**known))


def a_slice(value: str = "2026-01-01", **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "target": "main.a",
        "slice": value,
        "run_id": "r1",
        "step": "a",
        "strategy": "replace",
    }
    row |= {"snapshot_id": 4, "row_count": 3, "fingerprint": "3:abc", "definition_hash": "d1"}
    row |= {"published_at": to_text(START), "slicing": "daily", "keys": '["id"]', "inputs": None}
    return row | {"made_in": 3, "read_id": "x1"} | changes


def a_step(value: str = "2026-01-01", minute: int = 0, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"run_id": f"r{minute}", "step": "a", "slice": value, "target": "main.a"}
    row |= {"state": "done", "started_at": to_text(at(minute)), "snapshot_id": 4, "row_count": 3}
    return row | {"finished_at": to_text(at(minute + 1)), "reason": None} | changes


def a_read(**changes: Any) -> dict[str, Any]:
    inputs = json.dumps([{"kind": "table", "name": "main.raw"}])
    row: dict[str, Any] = {
        "read_id": "x1",
        "target": "main.a",
        "run_id": "r1",
        "lakes": '{"main": 7}',
    }
    row |= {"inputs": inputs, "arguments": "{}", "tests": "t", "version": "1", "missing": None}
    return row | changes


def a_run(**changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run_id": "r1",
        "state": "running",
        "args": "{}",
        "trigger_kind": "manual",
        "pid": 1,
    }
    row |= {"started_at": to_text(START), "host": "h", "process_started": "s", "user_name": "ada"}
    row |= {"environment": "dev", "schema_suffix": "_dev"}
    return row | {"exit_code": 0, "plan": "{}", "retry_of": "r0"} | changes


def a_check(minute: int, position: int, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run_id": f"r{minute}",
        "target": "main.a",
        "slice": "",
        "position": position,
    }
    row |= {"name": name, "passed": 0, "failures": 2, "samples": '[{"id": 1}]'}
    return row | {"severity": "warn", "query": "SELECT 1", "checked_at": to_text(at(minute))}


def test_what_was_recorded_is_read() -> None:
    with tables() as connection:
        put(connection, RUN, a_run())
        put(connection, SLICE, a_slice())
        put(connection, READ, a_read(missing="main.raw"))
        put(connection, CHECK, a_check(0, 0, "unique id"))
        run = reading.run(connection, "r1")
        assert run is not None
        assert (run.user, run.plan, run.retry_of) == ("ada", "{}", "r0")
        assert run.environment is not None
        (listed,) = reading.running(connection)
        assert (listed.run_id, listed.plan) == ("r1", None)
        record = reading.slice_(connection, "main.a", "2026-01-01")
        assert record is not None
        assert (record.slicing, record.keys, record.made_in) == ("daily", ("id",), 3)
        assert record.read_id == "x1"
        (check,) = reading.last_checks(connection)
        assert check.result.severity == "warn"
        assert set(reading.reads(connection, ["x1"])) == {"x1"}
        assert reading.lacked(connection, ["main.a"]) == {"x1": "main.raw"}


def test_what_old_records_do_not_have_is_not_known() -> None:
    with tables() as connection:
        nothing: dict[str, Any] = dict.fromkeys(("slicing", "keys", "made_in", "read_id"))
        put(connection, SLICE, a_slice(**nothing))
        put(connection, CHECK, a_check(0, 0, "unique id") | {"severity": None, "query": None})
        record = reading.slice_(connection, "main.a", "2026-01-01")
        assert record is not None
        assert (record.slicing, record.keys, record.read_id) == (None, None, None)
        assert record.made_in == record.snapshot_id, "where it is recorded"
        (check,) = reading.last_checks(connection)
        assert (check.result.severity, check.result.query) == ("error", "")


READERS: Mapping[str, Callable[[Connection], object]] = {
    "running": lambda c: len(reading.running(c)),
    "slices": lambda c: [each.slice for each in reading.slices(c, "main.a", unless="hourly")],
    "is_recorded": lambda c: reading.is_recorded(c, "main.a", 4),
    "unpublished_attempts": lambda c: [
        attempt.state for attempt in reading.unpublished_attempts(c, ["main.a"])
    ],
    "slices_of": lambda c: {t: len(found) for t, found in reading.slices_of(c, ["main.a"]).items()},
    "slices_named": lambda c: len(reading.slices_named(c, ["main.a"], ["2026-01-01"])),
    "slices_alike": lambda c: [each.last for each in reading.slices_alike(c, ["main.a"])["main.a"]],
    "publications": lambda c: [each[0] for each in reading.publications(c, "main.a")],
    "built": lambda c: reading.built(c, "main.a"),
    "schema_versions": lambda c: [v.version for v in reading.schema_versions(c, "main.a")],
}
EXPECTED = {
    "running": 1,
    "slices": ["2026-01-01"],
    "is_recorded": True,
    "unpublished_attempts": ["failed"],
    "slices_of": {"main.a": 1},
    "slices_named": 1,
    "slices_alike": [4],
    "publications": ["2026-01-01"],
    "built": to_text(START),
    "schema_versions": [1],
}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read_without_a_migration(version: int) -> None:
    columns = json.dumps([["id", "int32"]])
    shape = {"target": "main.a", "version": 1, "run_id": "r1", "snapshot_id": 4, "lineage": None}
    with tables(version) as connection:
        put(connection, RUN, a_run())
        put(connection, SLICE, a_slice())
        put(connection, STEP, a_step(), a_step(minute=5, state="failed", snapshot_id=None))
        put(connection, SCHEMA_VERSION, {**shape, "columns": columns, "created_at": to_text(START)})
        assert {name: read(connection) for name, read in READERS.items()} == EXPECTED


def test_slices_come_in_the_order_of_their_values_and_those_alike_are_left_out() -> None:
    with tables() as connection:
        put(connection, SLICE, a_slice("2026-01-02"), a_slice(), a_slice("x", slicing="hourly"))
        put(connection, SLICE, a_slice("y", slicing=None), a_slice(target="main.b"))
        values = [each.slice for each in reading.slices(connection, "main.a")]
        assert values == ["2026-01-01", "2026-01-02", "x", "y"]
        others = [each.slice for each in reading.slices(connection, "main.a", unless="daily")]
        assert others == ["x", "y"], "what is not known is not left out"
        assert len(reading.slices(connection)) == 5
        assert not reading.is_recorded(connection, "main.a", 5)
        assert list(reading.slices_of(connection, ["main.b"])) == ["main.b"]


def test_rows_of_a_slice_are_none_where_they_were_not_counted() -> None:
    with tables() as connection:
        put(connection, SLICE, a_slice(row_count=UNCOUNTED), a_slice("none", made_in=NONE_NEEDED))
        put(connection, SLICE, a_slice("old", made_in=None))
        found = {each.slice: each for each in reading.slices(connection)}
        assert found["2026-01-01"].rows is None
        assert (found["none"].rows, found["none"].made_in) == (3, None)
        assert found["old"].made_in == found["old"].snapshot_id


def test_the_last_attempt_is_the_newest_however_it_ended() -> None:
    with tables() as connection:
        put(connection, STEP, a_step(minute=1), a_step(minute=2, state="failed"))
        put(connection, STEP, a_step(minute=3, state="cancelled"))
        put(connection, STEP, a_step(minute=4, state="abandoned"), a_step("b", 5, state="skipped"))
        attempts = reading.unpublished_attempts(connection, ["main.a"])
        states = {attempt.slice: (attempt.state, attempt.run_id) for attempt in attempts}
        assert states == {"2026-01-01": ("abandoned", "r4"), "b": ("skipped", "r5")}
        assert reading.unpublished_attempts(connection) == attempts
        assert not reading.unpublished_attempts(connection, ["main.b"])
        put(connection, STEP, a_step(minute=6))
        (skipped,) = reading.unpublished_attempts(connection)
        assert skipped.slice == "b"


def test_of_a_model_by_time_what_failed_counts_whatever_was_published_since() -> None:
    with tables() as connection:
        put(connection, STEP, a_step(minute=1, state="failed"), a_step(minute=2, state="failed"))
        put(connection, STEP, a_step(minute=3))
        (failed,) = reading.unpublished_attempts(connection, by_time=["main.a"])
        assert failed.run_id == "r2"
        assert reading.unpublished_attempts(connection, by_time=["main.b"]) == []


@pytest.mark.parametrize("dropped", ["2026-01-01", ""])
def test_attempts_of_before_a_drop_do_not_count(dropped: str) -> None:
    of = {"target": "main.a", "slice": dropped, "dropped_at": to_text(at(3)), "snapshot_id": 9}
    with tables() as connection:
        put(connection, STEP, a_step(minute=1), a_step(minute=2, state="failed"))
        put(connection, DROPPED, of)
        assert reading.unpublished_attempts(connection, ["main.a"]) == []
        assert reading.unpublished_attempts(connection, by_time=["main.a"]) == []
        left = [each.slice for each in reading.publications(connection, "main.a")]
        assert left == ([dropped] if dropped else [])  # a rollback may have undone the drop
        drops = [SliceDrop(dropped, to_text(at(3)), 9)] if dropped else []
        assert reading.slice_drops(connection, "main.a") == drops
        assert reading.dropped(connection) == {"main.a": {dropped: 9}}
        assert reading.dropped(connection, ["main.b"]) == {}
        put(connection, STEP, a_step(minute=4, state="failed"))
        (failed,) = reading.unpublished_attempts(connection, ["main.a"])
        assert (failed.run_id, failed.started_at) == ("r4", at(4))


def test_a_drop_whose_snapshot_is_not_known_is_not_told() -> None:
    of = {"target": "main.a", "slice": "", "dropped_at": to_text(START), "snapshot_id": None}
    with tables() as connection:
        put(connection, DROPPED, of)
        assert reading.dropped(connection) == {}


def test_publications_are_each_of_them_with_rows_in_a_snapshot() -> None:
    with tables() as connection:
        put(connection, STEP, a_step(minute=1), a_step(minute=2, state="unchanged", snapshot_id=6))
        put(connection, STEP, a_step(minute=3, state="failed"), a_step(minute=4, snapshot_id=None))
        found = reading.publications(connection, "main.a")
        assert sorted(each.snapshot_id for each in found) == [4, 6]


def test_kinds_of_slices_are_told_apart_by_slicing_and_definition() -> None:
    with tables() as connection:
        put(connection, SLICE, a_slice(), a_slice("b", snapshot_id=8), a_slice("c", slicing="x"))
        put(connection, SLICE, a_slice("d", definition_hash="d2"))
        assert set(reading.slices_alike(connection, ["main.a"])["main.a"]) == {
            SlicesAlike("daily", "d1", 8),
            SlicesAlike("x", "d1", 4),
            SlicesAlike("daily", "d2", 4),
        }


def test_reads_are_those_of_slices_that_exist() -> None:
    with tables() as connection:
        put(connection, SLICE, a_slice())
        put(connection, READ, a_read(), a_read(read_id="x2", lakes='{"main": 9}', missing="raw"))
        assert set(reading.reads_of(connection, ["main.a"])) == {"x1"}
        assert reading.lakes_read(connection, ["main.a"]) == {"x1": {"main": 7}, "x2": {"main": 9}}
        assert reading.lacked(connection, ["main.a"]) == {"x2": "raw"}
        many = [f"y{number}" for number in range(1200)]
        assert set(reading.reads(connection, [*many, "x2", "x1", "x2"])) == {"x1", "x2"}
        found = reading.read(connection, "x1")
        assert found is not None
        assert [each.name for each in found.inputs] == ["main.raw"]
        assert reading.read(connection, "x3") is None


def test_a_table_was_built_when_that_is_recorded_and_else_when_a_slice_was_published() -> None:
    with tables() as connection:
        assert reading.built(connection, "main.a") is None
        put(connection, SLICE, a_slice(), a_slice("b", published_at=to_text(at(7))))
        assert reading.built(connection, "main.a") == to_text(at(7))
        put(connection, BUILT, {"target": "main.a", "built_at": to_text(at(2))})
        assert reading.built(connection, "main.a") == to_text(at(2))


def test_the_last_checks_are_in_the_order_of_the_script() -> None:
    with tables() as connection:
        put(connection, CHECK, a_check(1, 0, "old"), a_check(2, 1, "second"))
        put(connection, CHECK, a_check(2, 0, "first"))
        found = [each.result for each in reading.last_checks(connection, ["main.a"])]
        assert [each.name for each in found] == ["first", "second"]
        assert (found[0].passed, found[0].failures, found[0].samples) == (False, 2, ({"id": 1},))
        assert reading.last_checks(connection, ["main.b"]) == []
