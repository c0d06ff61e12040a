"""State tables are created as the code expects them, and those of an earlier version migrated.

Tests ``engine/state/tables.py``, ``engine/state/columns.py`` and ``engine/state/agenda_tables.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Column, Connection, MetaData, Table, insert, inspect, select, update

from penstock.engine.state import agenda_tables, reading
from penstock.engine.state.agenda_tables import AGENDA_TABLES, EVENT, FIRING
from penstock.engine.state.columns import METADATA, number_column, text_column
from penstock.engine.state.store import State
from penstock.engine.state.tables import (
    META,
    OLDEST,
    SLICE,
    SLICE_COLUMNS,
    STEP_STATES,
    VERSION,
    VERSION_KEY,
    migrate,
    version_of,
)
from penstock.errors import CatalogVersionUnsupported
from penstock.lakes.catalog.catalog import Catalog
from tests.engine.state.builders import publication, run_record, step_record


def test_the_tables_are_those_of_this_version(catalog: Catalog) -> None:
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
        assert version_of(connection) == VERSION


def test_a_newer_state_is_refused(state: State, catalog: Catalog) -> None:
    state.begin_run(run_record())
    with catalog.writing() as connection:
        connection.execute(update(META).where(META.c.key == "state_version").values(value="99"))
    with pytest.raises(CatalogVersionUnsupported, match="has version 99"):
        state.begin_run(run_record("r2"))
    assert state.slices("main.a") == []  # a run that has begun does not ask for the version again
    with pytest.raises(CatalogVersionUnsupported, match="has version 99"):
        State(catalog).slices("main.a")


@pytest.mark.parametrize("version", ["1", str(OLDEST - 1)])
def test_a_state_of_before_the_first_release_is_refused(
    version: str, state: State, catalog: Catalog
) -> None:
    state.begin_run(run_record())
    with catalog.writing() as connection:
        connection.execute(update(META).where(META.c.key == VERSION_KEY).values(value=version))
    with pytest.raises(CatalogVersionUnsupported, match=f"has version {version}") as caught:
        State(catalog).slices("main.a")
    assert "penstock adopt" in (caught.value.hint or "")


def test_the_oldest_version_is_read_and_migrated(state: State, catalog: Catalog) -> None:
    state.begin_run(run_record())
    state.begin_step(step_record())
    state.confirm(publication(), 4)
    before = state.slices("main.a")
    with catalog.writing() as connection:
        _make_oldest(connection)
    old = State(catalog)
    assert old.slices("main.a") == before
    with old.reading() as connection:
        assert connection is not None
        assert not reading.has_stamps(connection)
        assert reading.unpublished_attempts(connection) == []
    old.begin_run(run_record("r2"))
    assert old.slices("main.a") == before
    with catalog.reading() as connection:
        assert version_of(connection) == VERSION
        assert connection.execute(select(SLICE.c.stamp)).scalars().all() == [None]
        assert table_names(connection) == {table.name for table in AGENDA_TABLES}


def table_names(connection: Connection) -> set[str]:
    return {table.name for table in AGENDA_TABLES if inspect(connection).has_table(table.name)}


def test_each_table_of_the_agenda_is_among_those_that_a_migration_adds() -> None:
    every = {each for each in vars(agenda_tables).values() if isinstance(each, Table)}
    assert every == set(AGENDA_TABLES)


def test_the_tables_of_the_agenda_are_added_to_version_15(state: State, catalog: Catalog) -> None:
    state.begin_run(run_record())
    state.confirm(publication(), 4)
    with catalog.writing() as connection:
        METADATA.drop_all(connection, tables=AGENDA_TABLES)
        connection.execute(update(META).where(META.c.key == VERSION_KEY).values(value="15"))
    before = State(catalog).slices("main.a")
    assert len(before) == 1  # version 15 is read without a migration
    with catalog.writing() as connection:
        assert table_names(connection) == set()
        migrate(connection)
        assert version_of(connection) == VERSION
        assert table_names(connection) == {table.name for table in AGENDA_TABLES}
    assert State(catalog).slices("main.a") == before


def test_a_state_changes_in_the_transaction_that_inserts_it(catalog: Catalog) -> None:
    """The column has an index, and DuckDB updates such a row by removing it."""
    row = {"firing_id": "f1", "model": "a", "slice_key": "", "kind": "asset", "state": "queued"}
    row |= {"fire_time": "t", "events": "[]", "arrived": "[]", "missing": "[]", "models": "[]"}
    with catalog.writing() as connection:
        migrate(connection)
        connection.execute(insert(FIRING).values(row | {"depth": 0}))
        for state_name in ("running", "queued", "done"):
            connection.execute(update(FIRING).values(state=state_name))
    with catalog.reading() as connection:
        assert connection.execute(select(FIRING.c.state)).scalars().all() == ["done"]


@pytest.mark.parametrize("make", [text_column, number_column])
def test_a_key_is_never_null(make: Callable[..., Column[Any]]) -> None:
    assert not make("a", key=True).nullable
    assert make("a").nullable
    assert not make("a", null=False).nullable
    assert [column.name for column in EVENT.primary_key] == ["event_id"]


def _make_oldest(connection: Connection) -> None:
    """Record the slices in a table without stamps, as the oldest version has it."""
    rows = connection.execute(select(*SLICE_COLUMNS)).all()
    METADATA.drop_all(connection, tables=AGENDA_TABLES)
    SLICE.drop(connection)
    columns = [Column(c.name, c.type, primary_key=c.primary_key) for c in SLICE_COLUMNS]
    old = Table(SLICE.name, MetaData(), *columns)
    old.create(connection)
    connection.execute(insert(old), [row._asdict() for row in rows])
    if connection.dialect.name != "sqlite":  # there it is a constraint of its table
        STEP_STATES.drop(connection)
    connection.execute(update(META).where(META.c.key == VERSION_KEY).values(value=str(OLDEST)))
