"""What is made once a session: no Spark, a session is whatever has attributes."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.lake.spark.session_objects import Kept, kept_with


def test_made_once_for_equal_keys() -> None:
    kept, numbers = Kept(), count()
    made = [kept.get(key, lambda: next(numbers)) for key in (("a", 1), ("a", 1), ("a", 2))]
    assert made == [0, 0, 1]


def test_what_was_used_longest_ago_goes() -> None:
    kept, numbers = Kept(most=2), count()
    made = [kept.get(key, lambda: next(numbers)) for key in ("a", "b", "a", "c", "a", "b")]
    assert made == [0, 1, 0, 2, 0, 3]


def test_errors_are_not_kept() -> None:
    kept = Kept()
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert kept.get("a", lambda: 1) == 1


def test_each_session_has_its_own() -> None:
    one, other = cast(Any, SimpleNamespace()), cast(Any, SimpleNamespace())
    assert kept_with(one) is kept_with(one)
    assert kept_with(one) is not kept_with(other)
