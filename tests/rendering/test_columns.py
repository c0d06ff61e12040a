"""The table of an answer: what stands below its headings, for notebooks and for commands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from penstock.engine.answers.comparing import TableDiffs
from penstock.engine.answers.runs import PastRuns, PastStep, StepInput
from penstock.engine.answers.summaries import ModelSummary
from penstock.engine.results import (
    RecordedChecks,
    SliceStatus,
    Snapshots,
    Statuses,
    StepResult,
    StepRun,
)
from penstock.rendering.columns import Answers, Columns, cells, html, html_table, read_columns
from penstock.states import SliceState


@dataclass(frozen=True)
class Visit:
    place: str
    slice: str | None
    seconds: float | None


class Visits(Answers[Visit]):
    __slots__ = ()
    columns = read_columns("place slice=slice_name last_stay=duration")


VISITS = Visits((Visit("<b>", "a", 185.0), Visit("x" * 300, None, None)))


def test_columns_are_headings_with_attributes() -> None:
    assert Visits.columns == {"place": "place", "slice": "slice_name", "last stay": "duration"}
    assert cells(Visits.columns, VISITS[:1]) == [["<b>", "a", timedelta(seconds=185)]]
    assert cells(read_columns("number=state.urgency"), [SliceStatus(None, SliceState.FAILED)])


def test_html_has_no_markup_of_values_and_cuts_long_ones() -> None:
    text = VISITS._repr_html_()
    assert text == html(Visits.columns, VISITS)
    assert "<td>&lt;b&gt;</td><td>a</td><td>3 min 05 s</td>" in text
    assert f"<td>{'x' * 199}…</td><td>whole table</td><td></td>" in text
    assert html_table(("a",), [(1,)], "note").startswith("<p>note</p><table>")


@pytest.mark.parametrize(
    ("columns", "example"),
    [
        (SliceStatus.columns, SliceStatus("a", SliceState.FAILED, 1, tests=2, tests_failed=1)),
        (StepResult.columns, StepResult("a", "main.a", "merge", None, "done")),
    ],
)
def test_every_column_of_an_answer_has_a_value(columns: Columns, example: object) -> None:
    (row,) = cells(columns, [example])
    assert len(row) == len(columns)


def test_each_class_states_its_columns() -> None:
    classes = (
        *(ModelSummary, PastRuns, PastStep, RecordedChecks, SliceStatus, Snapshots),
        *(Statuses, StepInput, StepResult, StepRun, TableDiffs),
    )
    assert all(each.columns for each in classes)
