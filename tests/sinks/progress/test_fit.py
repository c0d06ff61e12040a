"""Tables in the width of a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from penstock.sinks.progress.fit import GAP, fit
from penstock.sinks.progress.live import Picture
from penstock.sinks.progress.view import Progress
from tests.sinks.progress.events import RUN

MODEL = ["model", "clean/flights_of_the_day", "marts/delays_daily"]
TABLE = ["table", "main.flights_of_the_day", "main.delays_daily"]
STATE = ["slices", "12 materialized, 1 failed, 2 changed outside (snapshot 4)", "missing"]


def widths(width: int) -> dict[int, int] | None:
    found = fit([MODEL, TABLE, STATE], width, [1])
    return None if found is None else dict(found)


def test_all_columns_stay_where_they_fit() -> None:
    assert widths(200) == {0: 24, 1: 23, 2: 57}


def test_long_cells_are_wrapped_first_and_use_what_is_left() -> None:
    assert widths(80) == {0: 24, 1: 23, 2: 80 - 24 - 23 - 2 * GAP}


def test_the_least_needed_column_goes_then_cells_are_wrapped_to_their_words() -> None:
    assert widths(60) == {0: 24, 2: 60 - 24 - GAP}
    assert widths(40) == {0: 24, 2: 40 - 24 - GAP}
    assert widths(30) is None


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_run_breaks_no_word_and_is_no_wider_than_the_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, record=True)
    progress = Progress(clock=lambda: 100.0)
    for event in RUN:
        progress.apply(event)
    picture = Picture(progress)
    picture.final = True
    console.print(picture)
    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert {"raw", "done,", "failed:", "unique", "skipped", "(clean"} <= set(text.split())
