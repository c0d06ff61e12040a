"""Moments as literals of the types that validity columns may have, whatever zone they come in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.engine.history.load import KINDS, literal_text

AT = datetime(2026, 3, 1, 0, 30, 5, 250, tzinfo=UTC)
LITERALS = {
    "timestamp_ntz": "TIMESTAMP_NTZ '2026-03-01 00:30:05.000250'",
    "timestamp": "TIMESTAMP '2026-03-01 00:30:05.000250Z'",
    "date": "DATE '2026-03-01'",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hours", [-8, 0, 5])
def test_a_moment_is_written_in_utc(kind: str, hours: int) -> None:
    assert literal_text(AT.astimezone(timezone(timedelta(hours=hours))), kind) == LITERALS[kind]
