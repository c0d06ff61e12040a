"""Values of the scheduler come back from the tables as they were."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from sqlalchemy import Table, create_engine, insert, select

from penstock.engine.state.agenda_tables import EVENT, FIRING, OUTCOME, create_agenda
from penstock.engine.state.tables import to_text
from penstock.lakes.catalog.catalog import Catalog
from penstock.scheduler.values import Decision, Firing, Outcome, OutcomeKind, TriggerEvent
from penstock.server.agenda_rows import (
    as_event,
    as_firing,
    as_outcome,
    event_values,
    firing_values,
    outcome_values,
    storable,
)
from penstock.server.agenda_store import AgendaStore
from tests.server.agenda import NOON, event, events, firing, firings


def through(table: Table, values: dict[str, object]) -> object:
    """The row that a table returns of these values."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        create_agenda(connection)
        connection.execute(insert(table).values(**values))
        row = connection.execute(select(table)).one()
    engine.dispose()
    return {EVENT: as_event, FIRING: as_firing, OUTCOME: as_outcome}[table](row)


@given(events())
def test_an_event_comes_back(drawn: TriggerEvent) -> None:
    assert through(EVENT, {**event_values(drawn), "recorded_at": to_text(NOON)}) == drawn


@given(firings())
def test_a_firing_comes_back(drawn: Firing) -> None:
    assert through(FIRING, firing_values(drawn)) == drawn


@given(events(), firings())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_come_back_from_each_database(
    any_catalog: Catalog, drawn: TriggerEvent, drawn_firing: Firing
) -> None:
    store = AgendaStore(any_catalog)
    with any_catalog.writing() as connection:
        create_agenda(connection)
        connection.execute(EVENT.delete())
        connection.execute(FIRING.delete())
    assert store.record([drawn], Decision(firings=(drawn_firing,)), fence=None)
    record = store.read_firing(drawn_firing.id)
    assert record is not None
    assert record.firing == drawn_firing
    assert store.read_event(drawn.id) == drawn


def test_an_empty_payload_is_one() -> None:
    payloads: list[dict[str, object] | None] = [{}, None]
    for payload in payloads:
        assert through(FIRING, firing_values(firing(payload=payload))) == firing(payload=payload)
        values = {**event_values(event(payload=payload)), "recorded_at": to_text(NOON)}
        assert through(EVENT, values) == event(payload=payload)


def test_an_outcome_has_a_reason_that_databases_take() -> None:
    outcome = Outcome("e1", "daily", OutcomeKind.IGNORED, reason="a\0b\ud800")
    read = through(OUTCOME, outcome_values(outcome))
    assert read == Outcome("e1", "daily", OutcomeKind.IGNORED, reason="a?b?")
    assert storable(None) is None
