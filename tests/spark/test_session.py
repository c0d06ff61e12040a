"""What is made once a session: no Spark, a session is whatever has attributes."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.spark.session import SessionCache, cache_of


def test_made_once_for_equal_keys() -> None:
    cache, numbers = SessionCache(), count()
    made = [cache.get(key, lambda: next(numbers)) for key in (("a", 1), ("a", 1), ("a", 2))]
    assert made == [0, 0, 1]


def test_what_was_used_longest_ago_goes() -> None:
    cache, numbers = SessionCache(most=2), count()
    made = [cache.get(key, lambda: next(numbers)) for key in ("a", "b", "a", "c", "a", "b")]
    assert made == [0, 1, 0, 2, 0, 3]


def test_errors_are_not_cached() -> None:
    cache = SessionCache()
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 1) == 1


def test_each_session_has_its_own() -> None:
    first, other = cast(Any, SimpleNamespace()), cast(Any, SimpleNamespace())
    assert cache_of(first) is cache_of(first)
    assert cache_of(first) is not cache_of(other)
