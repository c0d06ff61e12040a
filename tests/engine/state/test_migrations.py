"""Numbered migrations lead to the tables that the code expects.

Tests ``engine/state/migrations.py`` and ``engine/state/tables.py``.
"""

from __future__ import annotations

import pytest
from sqlalchemy import insert, inspect, update

from penstock.engine.results import CheckResult
from penstock.engine.state import reading
from penstock.engine.state.migrations import MIGRATIONS, definitions, first, migrate, version_of
from penstock.engine.state.store import State
from penstock.engine.state.tables import CHECK, META, METADATA, SLICE, to_text
from penstock.errors import CatalogVersionUnsupported
from penstock.lake.catalog.catalog import Catalog
from tests.engine.state.builders import START, run_record


def test_all_migrations_make_the_tables_of_today(catalog: Catalog) -> None:
    with catalog.writing() as connection:
        migrate(connection)
        inspector = inspect(connection)
        for table in METADATA.sorted_tables:
            columns = inspector.get_columns(table.name)
            made = {column["name"]: column for column in columns if "computed" not in column}
            assert set(made) == set(table.columns.keys()), table.name
            for column in table.columns:
                assert made[column.name]["nullable"] == column.nullable, column
                assert str(made[column.name]["type"]) == str(column.type), column
            keys = inspector.get_pk_constraint(table.name)["constrained_columns"]
            assert set(keys) == {column.name for column in table.primary_key}, table.name


def test_migrating_twice_changes_nothing(catalog: Catalog) -> None:
    for _ in range(2):
        with catalog.writing() as connection:
            migrate(connection)
    with catalog.reading() as connection:
        assert version_of(connection) == len(MIGRATIONS)


def test_a_newer_state_is_refused(state: State, catalog: Catalog) -> None:
    state.begin_run(run_record())
    with catalog.writing() as connection:
        connection.execute(update(META).where(META.c.key == "state_version").values(value="99"))
    with pytest.raises(CatalogVersionUnsupported, match="has version 99"):
        state.begin_run(run_record("r2"))
    assert state.slices("main.a") == []  # a run that has begun does not ask for the version again
    with pytest.raises(CatalogVersionUnsupported, match="has version 99"):
        State(catalog).slices("main.a")


def test_records_of_version_1_are_read_as_they_are_and_migrated(catalog: Catalog) -> None:
    state = State(catalog)
    with catalog.writing() as connection:
        META.create(connection)
        first(connection)
        connection.execute(insert(META).values(key="state_version", value="1"))
        values = {"step": "a", "strategy": "replace", "definition_hash": "d", "run_id": "r0"}
        numbers = {"snapshot_id": 4, "row_count": 3}
        old = {**values, **numbers, "published_at": to_text(START), "target": "main.a"}
        connection.execute(insert(SLICE).values(slice="2026-01-01", **old))
    before = state.slices("main.a")
    with state.reading() as connection:
        assert connection is not None
        assert reading.unpublished_attempts(connection) == []
    state.begin_run(run_record())
    assert state.slices("main.a") == before
    (record,) = before
    assert (record.slicing, record.keys, record.snapshot_id, record.made_in) == (None, None, 4, 4)


def test_results_of_version_2_are_of_errors_and_have_no_query(catalog: Catalog) -> None:
    state = State(catalog)
    with catalog.writing() as connection:
        META.create(connection)
        first(connection)
        definitions(connection)
        connection.execute(insert(META).values(key="state_version", value="2"))
        old = {"run_id": "r0", "target": "main.a", "slice": "", "position": 0, "samples": "[]"}
        found = {"name": "unique id", "passed": 0, "failures": 3, "checked_at": to_text(START)}
        connection.execute(insert(CHECK).values(**old, **found))
    for run_id in ("r1", "r2"):
        with state.reading() as connection:
            assert connection is not None
            (check,) = reading.last_checks(connection, "main.a")
        assert check.result == CheckResult("unique id", False, 3, severity="error", query="")
        state.begin_run(run_record(run_id))
