"""Records for tests, with what a test does not care about filled in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from penstock.engine.results import CheckResult, ColumnInfo
from penstock.engine.state.agenda_tables import AGENDA_TABLES
from penstock.engine.state.columns import METADATA
from penstock.engine.state.records import Publication, RunRecord, StepRecord, this_process
from penstock.engine.state.tables import SLICE, SLICE_STAMPS, STEP_STATES

START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def make_oldest(connection: Connection) -> None:
    """Make the state tables of this version those of the oldest that is migrated."""
    METADATA.drop_all(connection, tables=AGENDA_TABLES)
    SLICE_STAMPS.drop(connection)
    STEP_STATES.drop(connection)
    connection.execute(text(f"ALTER TABLE {SLICE.name} DROP COLUMN stamp"))


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def run_record(run_id: str = "r1", **changes: Any) -> RunRecord:
    run = RunRecord(run_id, "running", "2026-01-01", {"n": "1"}, START, this_process())
    return replace(run, **changes)


def step_record(run_id: str = "r1", **changes: Any) -> StepRecord:
    step = StepRecord(run_id, "clean/a", "main.a", "2026-01-01", "running", START)
    return replace(step, **changes)


def publication(run_id: str = "r1", **changes: Any) -> Publication:
    made = Publication(
        run_id=run_id,
        step="clean/a",
        state="done",
        target="main.a",
        slice="2026-01-01",
        strategy="replace",
        rows=3,
        fingerprint="3:abc",
        definition_hash="d1",
        columns=(ColumnInfo("id", "int32"), ColumnInfo("name", "varchar")),
        checks=(CheckResult("unique id", True, 0),),
        at=START,
    )
    return replace(made, **changes)
