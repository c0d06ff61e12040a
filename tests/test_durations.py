from __future__ import annotations

import pytest

from penstock.durations import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 0), ("30", 30), ("+5s", 5), ("5m", 300), ("1h", 3600), ("delay=5s", 0), ("soon", 0)],
)
def test_a_text_that_is_not_a_duration_has_no_length(text: str | None, seconds: float) -> None:
    assert seconds_of(text) == seconds
