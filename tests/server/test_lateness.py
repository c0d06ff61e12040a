"""Who is told of slices that are past their freshness, and when. A real web server, no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.project.context import ProjectContext
from penstock.server.ages import LOOK
from penstock.server.late_notices import LateNoticeStore
from penstock.server.lateness import LatenessNotifier
from penstock.settings.sink_settings import NotifySettings
from tests.engine.answers.test_ages import HOUR, Shop
from tests.sinks.test_notify import Web, web

__all__ = ["web"]

WAIT = HOUR / 16
LATER = HOUR + timedelta(seconds=1)  # after the build


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Two slices and a table that were made, and have new input since."""
    shop = Shop(tmp_path)
    shop.made("days", "2026-01-01", "2026-01-02", "2026-01-03")
    shop.made("total", "")
    shop.arrives("2026-01-02")
    shop.arrives("2026-01-03")
    with shop.project:
        yield shop


def context_of(shop: Shop, *to: NotifySettings) -> ProjectContext:
    context = shop.project.context
    return replace(context, settings=replace(context.settings, notify=to))


def make_notifier(shop: Shop, *to: NotifySettings) -> LatenessNotifier:
    context = context_of(shop, *to)
    return LatenessNotifier(LateNoticeStore(shop.lake.catalog), lambda: context)


def test_what_stays_late_is_told_once_and_once_that_it_is_fresh(shop: Shop, web: Web) -> None:
    notifier = make_notifier(shop, NotifySettings("oncall", web.url))
    begin = shop.built + LATER
    notifier.notify(shop.built)
    notifier.notify(begin)
    notifier.notify(begin + WAIT / 2)
    assert web.got == [], "the server renews it meanwhile"
    notifier.notify(begin + WAIT)
    notifier.notify(begin + 2 * WAIT)
    (told,) = web.got
    assert (told["event"], told["run_id"]) == ("late", None)
    assert told["text"] == "toy: past the freshness: days (1h, 2 slices), total (1h)"
    days, total = told["models"]
    since = (shop.built + HOUR).isoformat()
    assert total["slices"] == [{"slice": None, "built_at": shop.built.isoformat(), "since": since}]
    assert (total["freshness"], days["model"]) == ("1h", "days")
    assert [each["slice"] for each in days["slices"]] == ["2026-01-02", "2026-01-03"]
    shop.made("total", "", at=begin + WAIT)
    notifier.notify(begin + 3 * WAIT)
    notifier.notify(begin + 4 * WAIT)
    assert [each["event"] for each in web.got] == ["late", "recovery"]
    assert web.got[1]["text"] == "toy: fresh again: total (1h)"


def test_a_slice_that_was_renewed_between_two_looks_is_late_anew(shop: Shop, web: Web) -> None:
    notifier = make_notifier(shop, NotifySettings("oncall", web.url, select=("total",)))
    begin = shop.built + LATER
    notifier.notify(begin)
    shop.made("total", "", at=begin + WAIT / 2)
    shop.arrives("2026-01-03")
    again = begin + WAIT / 2 + LATER
    notifier.notify(again)
    assert web.got == []
    notifier.notify(again + WAIT)
    assert [each["event"] for each in web.got] == ["late"]


def test_another_process_does_not_tell_again(shop: Shop, web: Web) -> None:
    to, begin = NotifySettings("oncall", web.url, select=("total",)), shop.built + LATER
    for _ in range(2):
        notifier = make_notifier(shop, to)
        notifier.notify(begin)
        notifier.notify(begin + WAIT)
    assert [each["text"] for each in web.got] == ["toy: past the freshness: total (1h)"]
    shop.made("total", "", at=begin)
    make_notifier(shop, to).notify(begin + 2 * WAIT)
    assert [each["event"] for each in web.got] == ["late", "recovery"]
    assert LateNoticeStore(shop.lake.catalog).read() == frozenset()


def test_what_cannot_be_told_is_told_at_a_later_look(
    shop: Shop, web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    to, begin = NotifySettings("oncall", web.url, select=("total",)), shop.built + LATER
    notifier = make_notifier(shop, to)
    notifier.notify(begin)
    web.answers = [404]
    notifier.notify(begin + WAIT)
    assert "notify.oncall: the late message was not sent: the webhook answered 404" in caplog.text
    assert LateNoticeStore(shop.lake.catalog).read() == frozenset()
    notifier.notify(begin + 2 * WAIT)
    shop.made("total", "", at=begin)
    web.answers = [404]
    notifier.notify(begin + 3 * WAIT)
    notifier.notify(begin + 4 * WAIT)
    events = [each["event"] for each in web.got]
    assert events == ["late", "late", "recovery", "recovery"]


@pytest.mark.parametrize(
    ("options", "events"),
    [({"late": False}, []), ({"recovery": False}, ["late"]), ({"select": ("other",)}, [])],
)
def test_one_is_told_what_one_asks_for(
    options: dict[str, object], events: list[str], shop: Shop, web: Web
) -> None:
    notifier = make_notifier(shop, NotifySettings("oncall", web.url, **options))  # type: ignore[arg-type] # of any
    begin = shop.built + LATER
    notifier.notify(begin)
    notifier.notify(begin + WAIT)
    shop.made("total", "", at=begin + WAIT)
    notifier.notify(begin + 2 * WAIT)
    assert [each["event"] for each in web.got] == events


def test_notices_of_those_who_are_told_no_more_are_forgotten(shop: Shop, web: Web) -> None:
    begin = shop.built + LATER
    notifier = make_notifier(shop, NotifySettings("oncall", web.url))
    notifier.notify(begin)
    notifier.notify(begin + WAIT)
    notices = LateNoticeStore(shop.lake.catalog)
    assert len(notices.read()) == 3
    make_notifier(shop).notify(begin + WAIT)
    assert notices.read() == frozenset()


def test_a_process_that_leads_no_more_tells_nothing(shop: Shop, web: Web) -> None:
    context = context_of(shop, NotifySettings("oncall", web.url))
    notices = LateNoticeStore(shop.lake.catalog)
    notifier = LatenessNotifier(notices, lambda: context, lambda: False)
    begin = shop.built + LATER
    notifier.notify(begin)
    notifier.notify(begin + WAIT)
    assert (web.got, notices.read()) == ([], frozenset())


def test_the_caller_does_not_wait_and_looks_are_seldom(shop: Shop, web: Web) -> None:
    seconds = [0.0]
    context = context_of(shop, NotifySettings("oncall", web.url, select=("total",)))
    notices = LateNoticeStore(shop.lake.catalog)
    notifier = LatenessNotifier(notices, lambda: context, clock=lambda: seconds[0])
    begin = shop.built + LATER
    for moment in (begin, begin + WAIT):  # the second is within the time of a look
        notifier(moment)
        notifier.wait(60)
    assert web.got == []
    seconds[0] = LOOK
    notifier(begin + WAIT)
    notifier.wait(60)
    assert [each["event"] for each in web.got] == ["late"]
