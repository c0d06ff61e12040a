"""Which models an event concerns, and what keeps chains from running in circles."""

from __future__ import annotations

import pytest

from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.matching import (
    MAX_DEPTH,
    Index,
    Match,
    asset_name,
    explain_no_match,
    find_matches,
    find_obstacle,
)
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import EventKind, TriggerEvent
from tests.scheduler.building import NOON, by_model, change, due, message, reads

DAILY = PartitionSpec("daily")
SLASHES = PartitionSpec("daily", format="%Y/%m/%d")
FILES = "s3://lake/raw/{partition}/orders.json"
READERS = by_model(
    Subscription("orders", target="main.main.Orders", partition=DAILY),
    Subscription("totals", sources=reads("orders")),
    Subscription("mails", messages=("sent", "sent", "opened")),
    Subscription("files", partition=DAILY, sources=(Source(FILES, is_partitioned=True),)),
    Subscription("deep_files", partition=SLASHES, sources=(Source(FILES, is_partitioned=True),)),
    Subscription("any_file", sources=(Source(FILES),)),
)


def file_event(uri: str, partition: str | None = None) -> TriggerEvent:
    return TriggerEvent("e", EventKind.ASSET, uri, NOON, partition)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (change("e", "ORDERS", "2026-05-16"), {"totals": "2026-05-16"}),
        (change("e", "orders", ""), {"totals": None}),
        (change("e", "other"), {}),
        (message("e", "sent", {}), {"mails": None}),
        (message("e", "Sent", {}), {}),
        (due("e", "orders"), {"orders": None}),
        (due("e", "orders", kind=EventKind.BACKFILL, partition="p"), {"orders": "p"}),
        (due("e", "mails", kind=EventKind.FRESHNESS), {"mails": None}),
        (due("e", "nothing"), {}),
        (
            file_event("s3a://lake/raw/2026-05-16/orders.json"),
            {"files": "2026-05-16", "any_file": "2026-05-16"},
        ),
        (
            file_event("s3://lake/raw/2026/05/16/orders.json"),
            {"deep_files": "2026/05/16", "any_file": "2026/05/16"},
        ),
        (
            file_event(FILES, "2026-05-16"),
            {"files": "2026-05-16", "deep_files": "2026-05-16", "any_file": "2026-05-16"},
        ),
        (file_event("s3://lake/raw//orders.json"), {}),
        (file_event("s3://lake/raw/2026-05-16/orders_json"), {}),
        (file_event("s3://other/raw/2026-05-16/orders.json"), {}),
    ],
)
def test_an_event_concerns_its_readers(
    event: TriggerEvent, expected: dict[str, str | None]
) -> None:
    matches = find_matches(Index.of(READERS), event)
    assert {match.reader.model: match.partition for match in matches} == expected


def test_a_value_that_is_in_a_path_twice_must_be_the_same() -> None:
    pattern = Source("raw/{partition}/part-{partition}.csv")
    index = Index.of(by_model(Subscription("files", partition=DAILY, sources=(pattern,))))
    assert find_matches(index, file_event("raw/2026-05-16/part-2026-05-16.csv"))
    assert not find_matches(index, file_event("raw/2026-05-16/part-2026-05-17.csv"))


def test_a_match_knows_how_the_slices_of_its_source_are_named() -> None:
    index = Index.of(READERS)
    assert [match.origin for match in find_matches(index, change("e", "orders"))] == [DAILY]
    assert find_matches(index, due("e", "orders"))[0].origin is None


def test_a_model_matches_once_by_its_partitioned_source() -> None:
    sources = (Source("main.main.a"), Source("main.main.A", is_partitioned=True))
    index = Index.of(by_model(Subscription("reader", sources=sources)))
    (match,) = find_matches(index, change("e", "a"))
    assert match.source == sources[1]


def test_an_index_is_a_mapping_of_its_models() -> None:
    index = Index.of(READERS)
    assert Index.of(index) is index
    assert (list(index), len(index)) == (list(READERS), len(READERS))
    assert index["mails"] is READERS["mails"]
    assert "nothing" not in index


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (change("e", "other"), "no model is triggered by main.main.other"),
        (message("e", "snet", {}), "no model has the message snet: did you mean sent?"),
        (message("e", "zzz", {}), "no model has the message zzz"),
        (due("e", "order"), "no model order: did you mean orders?"),
    ],
)
def test_an_event_without_a_model_has_a_reason(event: TriggerEvent, expected: str) -> None:
    assert explain_no_match(Index.of(READERS), event) == expected


READER = Subscription("totals", target="main.main.totals", sources=reads("orders", "totals"))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (change("e", "orders"), None),
        (change("e", "orders", models=("orders",)), None),
        (change("e", "orders", depth=MAX_DEPTH - 1), None),
        (change("e", "Totals"), "its own change"),
        (change("e", "files", models=("orders", "totals")), "its own change"),
        (change("e", "orders", models=("totals", "orders")), "totals is in the chain already"),
        (change("e", "orders", depth=MAX_DEPTH), f"{MAX_DEPTH} is the limit"),
    ],
)
def test_a_chain_does_not_run_in_a_circle(event: TriggerEvent, expected: str | None) -> None:
    obstacle = find_obstacle(event, Match(READER))
    assert obstacle == expected or (expected is not None and expected in (obstacle or ""))


def test_letters_of_paths_are_not_folded() -> None:
    assert asset_name("Main.Main.T") == asset_name("main.main.t")
    assert asset_name("s3://lake/A.csv") != asset_name("s3://lake/a.csv")
