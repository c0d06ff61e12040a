"""Who was told of which late slices, in the catalog."""

from __future__ import annotations

from penstock.lakes.catalog.catalog import Catalog
from penstock.server.late_notices import LateNotice, LateNoticeStore


def test_notices_are_there_until_they_are_removed(catalog: Catalog) -> None:
    store = LateNoticeStore(catalog)
    assert store.read() == frozenset()
    first, second = LateNotice("oncall", "orders", ""), LateNotice("pager", "days", "2026-01-01")
    store.change(added=[first, second])
    store.change(added=[first])
    assert LateNoticeStore(catalog).read() == {first, second}
    store.change(removed=[first])
    assert store.read() == {second}
