"""UUIDs: of version 7, distinct, in the order of time."""

from __future__ import annotations

import uuid

from penstock.uuid7 import new_uuid7


def test_uuid7() -> None:
    made = [uuid.UUID(new_uuid7()) for _ in range(100)]
    assert {(u.version, u.variant) for u in made} == {(7, uuid.RFC_4122)}
    assert len(set(made)) == 100
    stamps = [u.int >> 80 for u in made]
    assert stamps == sorted(stamps)
