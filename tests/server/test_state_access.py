"""The first transaction that writes makes the tables; before it there is an empty agenda."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, select, update

from penstock.engine.state.agenda_tables import AGENDA_TABLES, EVENT
from penstock.engine.state.columns import METADATA
from penstock.engine.state.store import State
from penstock.engine.state.tables import META, VERSION_KEY
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.recovery.backup import backup, restore
from penstock.scheduler.values import Agenda
from penstock.server.agenda_store import AgendaStore
from penstock.server.state_access import StateAccess, rows_in
from tests.engine.state.builders import run_record
from tests.server.agenda import decide, event, firing


def test_reading_makes_no_tables(any_catalog: Catalog) -> None:
    store = AgendaStore(any_catalog)
    assert store.load() == Agenda()
    assert store.list_undecided(10) == []
    assert store.positions() == {}
    assert store.count().firings == {}
    with any_catalog.reading() as connection:
        assert not inspect(connection).has_table(EVENT.name)


def test_a_catalog_of_an_earlier_version_is_read_and_then_migrated(any_catalog: Catalog) -> None:
    State(any_catalog).begin_run(run_record())
    with any_catalog.writing() as connection:
        METADATA.drop_all(connection, tables=AGENDA_TABLES)
        connection.execute(update(META).where(META.c.key == VERSION_KEY).values(value="15"))
    store = AgendaStore(any_catalog)
    assert store.read_firing("f1") is None
    assert store.accept(event())
    assert AgendaStore(any_catalog).list_undecided(10) == [event()]
    assert State(any_catalog).run("r1") is not None


@pytest.mark.parametrize("end", ["copy.sqlite", "copy.ducklake"])
def test_a_backup_has_the_agenda(any_catalog: Catalog, tmp_path: Path, end: str) -> None:
    store = AgendaStore(any_catalog)
    store.accept(event(payload={"n": 1}))
    store.record([event("e2")], decide(event("e2"), firing()), fence=None)
    backup(any_catalog, tmp_path / "saved")
    uri = f"ducklake:{'sqlite:' if end.endswith('sqlite') else ''}{tmp_path / end}"
    restore(tmp_path / "saved", uri)
    with Catalog.open(uri) as catalog:
        restored = AgendaStore(catalog)
        assert restored.load() == store.load()
        assert restored.read_outcomes("e2") == store.read_outcomes("e2")
        (pending,) = restored.list_undecided(10)
        assert pending == event(payload={"n": 1})
        assert restored.record([pending], decide(pending, firing("f2")), fence=None)


def test_an_error_leaves_nothing(catalog: Catalog) -> None:
    access = StateAccess(catalog)

    def act(connection: Connection) -> None:
        connection.execute(update(META).values(value="0"))
        raise KeyError("stop")

    for _ in range(2):
        try:
            access.write(act)
        except KeyError:
            assert access.read(lambda _: "there", "no tables") == "no tables"
    assert access.write(lambda connection: connection.execute(select(META)).all()) != []


def test_any_number_of_rows_is_read(catalog: Catalog) -> None:
    store = AgendaStore(catalog)
    ids = [f"e{number:04}" for number in range(1_234)]
    assert store.accept_all([event(event_id) for event_id in ids]) == [True] * len(ids)

    def ask(connection: Connection) -> list[str]:
        return [row.event_id for row in rows_in(connection, EVENT.c.event_id, ["x", *ids])]

    no_ids: list[str] = []
    assert sorted(StateAccess(catalog).read(ask, no_ids)) == ids
