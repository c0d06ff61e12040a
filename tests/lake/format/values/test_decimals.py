"""Decimals rounded and as floats, the latter beside DuckDB's own casts."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from itertools import product

import pytest

from penstock.lake.format.values.decimals import float_of, nearest, rounded, single
from tests import duck

# Digits before and after the point, some next to the middle between two floats.
DIGITS = ("0", "1", "5", "16777217", "33554433", "900719925474099", "123456789012345")
SCALES = (0, 1, 3)


@pytest.mark.parametrize(("kind", "name"), [("float32", "FLOAT"), ("float64", "DOUBLE")])
def test_floats_are_duckdbs(kind: str, name: str) -> None:
    duck.required()
    pairs = [
        (scale, Decimal(f"{sign}{digits}.{part[:scale] or '0'}"))
        for scale, digits, part, sign in product(SCALES, DIGITS, ("267", "500", "999"), ("", "-"))
    ]
    wanted = [f"CAST({value}::DECIMAL(18,{scale}) AS {name})::DOUBLE" for scale, value in pairs]
    with closing(duck.connect()) as connection:
        theirs = connection.execute(f"SELECT {', '.join(wanted)}").fetchall()[0]
    assert [float_of(scale, kind)(value) for scale, value in pairs] == list(theirs)


def test_a_whole_number_is_rounded_once() -> None:
    number = (1 << 60) + (1 << 36) + 1  # just above the middle, on which it is as 64 bits
    assert nearest(number, "float32") == float((1 << 60) + (1 << 37))
    assert nearest(-number, "float32") == -float((1 << 60) + (1 << 37))
    assert nearest(number, "float64") == float(number)
    assert single(Decimal("0.1")) == 0.10000000149011612


def test_more_digits_than_python_keeps() -> None:
    assert rounded(Decimal("1" * 36 + ".005"), 2) == Decimal("1" * 36 + ".01")
