"""The slices of a backfill are events that a served project takes up."""

from __future__ import annotations

from pathlib import Path

from penstock.scheduler.values import EventKind
from penstock.server.backfilling import find_slices, queue_backfill
from penstock.server.opening import open_agenda
from tests.engine.planning.test_reasons import Shop, days

RANGE = {"from_": "2026-01-01", "to": "2026-01-04"}


def test_missing_slices_are_queued(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.made("days", *days(2))
    context, model = shop.project.context, shop.project.model("days")
    store = open_agenda(context)
    backfill_id, number = queue_backfill(context, store, model, RANGE, all_=False)
    assert number == 3
    events = store.list_undecided(10)
    assert [event.partition for event in events] == ["2026-01-01", "2026-01-03", "2026-01-04"]
    assert {(event.kind, event.source, event.backfill) for event in events} == {
        (EventKind.BACKFILL, "days", backfill_id)
    }
    (progress,) = store.backfills()
    assert (progress.backfill.start, progress.backfill.end) == ("2026-01-01", "2026-01-04")


def test_all_slices_are_forced(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.made("days", *days(1, 2, 3, 4))
    context, model = shop.project.context, shop.project.model("days")
    store = open_agenda(context)
    assert find_slices(context, model, RANGE, all_=False) == []
    assert queue_backfill(context, store, model, RANGE, all_=False)[1] == 0
    assert store.backfills() == []
    assert queue_backfill(context, store, model, RANGE, all_=True)[1] == 4
    assert {str(event.payload) for event in store.list_undecided(10)} == {"{'force': True}"}
