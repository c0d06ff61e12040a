"""Tables in a pipe."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from penstock.cli.output import cell, print_table
from penstock.progress.view import seconds


def test_columns_line_up_and_numbers_stand_to_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("name", "rows"), [("flights", 842), ("airlines", 16), ("none", None)])
    assert capsys.readouterr().out.splitlines() == [
        "name      rows",
        "flights    842",
        "airlines    16",
        "none",
    ]


def test_no_rows_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a",), [], empty="Nothing yet.")
    assert capsys.readouterr().out == "Nothing yet.\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        (1.5, "1.5"),
        (date(2013, 1, 2), "2013-01-02"),
        ("two\nlines", "two\\nlines"),
        ([1, "a"], '[1, "a"]'),
    ],
)
def test_cell_is_one_line(value: Any, text: str) -> None:
    assert cell(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.04, "0.0 s"), (9.94, "9.9 s"), (12.3, "12 s"), (185, "3 min 05 s")],
)
def test_seconds(value: float | None, text: str) -> None:
    assert seconds(value) == text
