"""UUIDs: of version 7, distinct, in the order of time."""

from __future__ import annotations

import uuid

from penstock.uuid7 import Uuid7Sequence, new_uuid7


def test_uuid7() -> None:
    made = [uuid.UUID(new_uuid7()) for _ in range(100)]
    assert {(u.version, u.variant) for u in made} == {(7, uuid.RFC_4122)}
    assert len(set(made)) == 100
    stamps = [u.int >> 80 for u in made]
    assert stamps == sorted(stamps)


def test_a_sequence_grows_within_a_millisecond_and_where_the_clock_goes_back() -> None:
    times = [5_000_000] * 5000 + [3_000_000, 9_000_000_000]
    new_id = Uuid7Sequence(iter(times).__next__)
    made = [new_id() for _ in times]
    assert made == sorted(set(made))
    ids = [uuid.UUID(text) for text in made]
    assert {(each.version, each.variant) for each in ids} == {(7, uuid.RFC_4122)}
    assert ids[0].int >> 80 == 5
    assert ids[-1].int >> 80 == 9000
