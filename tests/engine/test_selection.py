"""Selecting steps by name, pattern and direction."""

from __future__ import annotations

import pytest

from penstock.engine.plan import select_steps
from penstock.errors import ArgumentError

NAMES = ("raw/a", "raw/b", "clean/c", "marts/d")
UP = {"raw/a": (), "raw/b": (), "clean/c": ("raw/a", "raw/b")}
UP["marts/d"] = ("raw/a", "raw/b", "clean/c")
DOWN = {name: tuple(other for other in NAMES if name in UP[other]) for name in NAMES}


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ((), set(NAMES)),
        (("raw/a",), {"raw/a"}),
        (("raw/*",), {"raw/a", "raw/b"}),
        (("+clean/c",), {"raw/a", "raw/b", "clean/c"}),
        (("clean/c+",), {"clean/c", "marts/d"}),
        (("+clean/c+",), set(NAMES)),
        (("raw/a", "marts/d"), {"raw/a", "marts/d"}),
        (("raw/b+",), {"raw/b", "clean/c", "marts/d"}),
    ],
)
def test_selects(expressions: tuple[str, ...], expected: set[str]) -> None:
    assert select_steps(expressions, NAMES, UP.__getitem__, DOWN.__getitem__) == expected


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(ArgumentError, match="did you mean 'clean/c'"):
        select_steps(("claen/c",), NAMES, UP.__getitem__, DOWN.__getitem__)


def test_a_strange_name_is_told_all() -> None:
    with pytest.raises(ArgumentError, match="steps are: clean/c, marts/d"):
        select_steps(("zzzzz",), NAMES, UP.__getitem__, DOWN.__getitem__)
