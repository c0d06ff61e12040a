"""Amounts of memory in settings and for people."""

from __future__ import annotations

import pytest

from penstock.errors import ConfigError, Location
from penstock.settings.quantities import (
    GIB,
    MIB,
    bytes_of,
    duration_setting,
    seconds_of,
    size_setting,
    size_text,
)

HERE = Location("penstock.toml", 3)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("3g", 3 * GIB),
        ("3G", 3 * GIB),
        ("3 GiB", 3 * GIB),
        ("3gb", 3 * GIB),
        ("1500m", 1500 * MIB),
        ("1.5g", 1536 * MIB),
        ("2048k", 2 * MIB),
        ("1t", 1024 * GIB),
        ("3", None),
        ("g", None),
        ("-3g", None),
        ("50%", None),
        ("", None),
    ],
)
def test_bytes_of_a_text(text: str, size: int | None) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(3 * GIB, "3 GiB"), (1700 * MIB, "1.7 GiB"), (512 * MIB, "512 MiB"), (GIB, "1 GiB")],
)
def test_the_text_of_bytes(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize("value", ["much", "0g", "", 3, "3"])
def test_a_setting_that_is_none(value: object) -> None:
    with pytest.raises(ConfigError, match="is not an amount of memory") as caught:
        size_setting("spark.memory", value, HERE)
    assert caught.value.location == HERE
    assert '"3g"' in str(caught.value)


def test_a_setting() -> None:
    assert size_setting("spark.memory", "3g", HERE) == 3 * GIB


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
