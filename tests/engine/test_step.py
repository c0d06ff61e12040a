from __future__ import annotations

import pytest

from penstock.engine.step import delay_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 0), ("30", 30), ("+5s", 5), ("5m", 300), ("1h", 3600), ("delay=5s", 0), ("soon", 0)],
)
def test_a_delay_that_is_no_duration_is_none(text: str | None, seconds: float) -> None:
    assert delay_seconds(text) == seconds
