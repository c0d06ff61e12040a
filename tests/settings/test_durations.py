from __future__ import annotations

import pytest

from penstock.errors import ConfigError, Location
from penstock.settings.durations import duration_setting, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 0), ("30", 30), ("+5s", 5), ("5m", 300), ("1h", 3600), ("delay=5s", 0), ("soon", 0)],
)
def test_a_text_that_is_not_a_duration_has_no_length(text: str | None, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("value", "none", "seconds"),
    [
        ("90", "none", 90),
        ("15m", "false", 900),
        ("none", "none", None),
        ("false", "false", None),
        (False, "false", None),
    ],
)
def test_a_setting_is_a_duration_or_none(value: object, none: str, seconds: float | None) -> None:
    assert duration_setting("a.b", value, Location("f"), hint="5m", none=none) == seconds


@pytest.mark.parametrize(
    ("value", "said"), [("soon", "'soon'"), (True, "'true'"), ("0", "'0'"), (False, "'false'")]
)
def test_a_setting_that_is_not_one_is_refused(value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=f"a.b is {said}, which is not an age") as caught:
        duration_setting("a.b", value, Location("f", 2), what="an age", hint="write 5m")
    assert (caught.value.hint, caught.value.location) == ("write 5m", Location("f", 2))
