"""Values as JSON: which form each type has."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import pytest

from penstock.errors import Diagnostic, Location, ModelError, QueryFailed
from penstock.events import SCHEMA_VERSION, Notice
from penstock.rendering.wire import plain, plain_error, to_json, versioned


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
        ({Colour.RED: 1}, {"red": 1}),
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


def test_a_document_begins_with_the_version() -> None:
    document = versioned({"notice": Notice("late", "orders")})
    assert list(document) == ["schema_version", "notice"]
    assert document == {
        "schema_version": SCHEMA_VERSION,
        "notice": {"message": "late", "step": "orders"},
    }


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("no"), ("ValueError", "no", None, None, {})),
        (click.BadParameter("no"), ("BadParameter", "Invalid value: no", None, None, {})),
        (
            QueryFailed("no", hint="yes", location=Location("a.sql", 2), data={"n": {1}}),
            ("QueryFailed", "no", "yes", "a.sql:2", {"n": [1]}),
        ),
    ],
)
def test_an_error_has_its_message_hint_and_place(error: Exception, shown: tuple[Any, ...]) -> None:
    assert tuple(plain_error(error).values()) == shown
    assert list(plain_error(error)) == ["type", "message", "hint", "location", "data"]


def test_an_error_of_scripts_has_their_findings() -> None:
    error = ModelError([Diagnostic("error", "no key", Location("a.sql", 1))])
    (finding,) = plain_error(error)["data"]["diagnostics"]
    assert (finding["message"], finding["location"]["path"]) == ("no key", "a.sql")


def test_no_command_is_needed_for_the_json_of_answers() -> None:
    code = (
        "import sys, penstock.project.planning, penstock.engine.answers.runs\n"
        "import penstock.rendering.wire\n"
        "print({'penstock.cli', 'click', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
