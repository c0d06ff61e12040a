"""What is made once a session: no Spark, a session is whatever has attributes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.lake.kept import Kept, kept_with


def test_made_once_for_equal_keys() -> None:
    kept, made = Kept(), []
    for key in (("a", 1), ("a", 1), ("a", 2)):
        assert kept.get(key, lambda key=key: made.append(key) or key) == key
    assert made == [("a", 1), ("a", 2)]


def test_what_was_used_longest_ago_goes() -> None:
    kept, made = Kept(most=2), []
    for key in ("a", "b", "a", "c", "a", "b"):
        kept.get(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "c", "b"]


def test_errors_are_not_kept() -> None:
    kept = Kept()
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert kept.get("a", lambda: 1) == 1


def test_each_session_has_its_own() -> None:
    one, other = cast(Any, SimpleNamespace()), cast(Any, SimpleNamespace())
    assert kept_with(one) is kept_with(one)
    assert kept_with(one) is not kept_with(other)
