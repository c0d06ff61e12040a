"""Numbered migrations lead to the tables that the code expects."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect, update

from penstock.engine.state.migrations.apply import MIGRATIONS, migrate, version_of
from penstock.engine.state.store import State
from penstock.engine.state.tables import META, METADATA
from penstock.errors import CatalogVersionUnsupported
from penstock.lake.catalog.catalog import Catalog
from tests.engine.state.builders import run_record


def test_all_migrations_make_the_tables_of_today(catalog: Catalog) -> None:
    with catalog.writing() as connection:
        migrate(connection)
        inspector = inspect(connection)
        for table in METADATA.sorted_tables:
            made = {column["name"]: column for column in inspector.get_columns(table.name)}
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
