"""Values as JSON takes them."""

from __future__ import annotations

import json
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.cli.plain import plain, to_json


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Pair:
    left: Any
    right: Any


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**63, 2**63),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Decimal("1.10"), "1.10"),
        (date(2013, 1, 2), "2013-01-02"),
        (datetime(2013, 1, 2, 3, 4, 5, 6, UTC), "2013-01-02T03:04:05.000006+00:00"),
        (timedelta(seconds=1.5), 1.5),
        (b"\x00\xff", "00ff"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        (Colour.RED, "red"),
        ({1: date(2013, 1, 2)}, {"1": "2013-01-02"}),
        ((1, [Decimal(2)]), [1, ["2"]]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Pair(1, Pair(2, None)), {"left": 1, "right": {"left": 2, "right": None}}),
    ],
)
def test_plain(value: Any, expected: Any) -> None:
    assert plain(value) == expected


def test_text_is_json_and_keeps_what_people_write() -> None:
    assert to_json({"name": "Zoë"}) == '{"name": "Zoë"}'
    assert json.loads(to_json([float("inf")])) == ["inf"]
