"""What results look like in a notebook: tables in which no value is markup."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock.engine.results import (
    ModelStatus,
    QueryResult,
    RunResult,
    SliceStatus,
    Statuses,
    StepResult,
)
from penstock.states import SliceState

NASTY = "<script>alert('x')</script>\x1b[2J&"
SAFE = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;\\x1b[2J&amp;"


def test_a_query_result_is_a_table() -> None:
    html = QueryResult(((NASTY, "string"), ("k", "int")), ((NASTY, None),), more=True)._repr_html_()
    assert html.startswith("<p>the first 1 row</p><table>")
    assert html.count(SAFE) == 2
    assert "<td></td>" in html
    assert "<script" not in html


def test_runs_and_statuses_are_tables() -> None:
    step = StepResult(NASTY, "main.t", "replace", None, "failed", reason=NASTY)
    assert RunResult(NASTY, "failed", None, (step,), 1.0)._repr_html_().count(SAFE) == 3
    slice_ = SliceStatus(
        NASTY, SliceState.FAILED, time=datetime(2026, 1, 1, tzinfo=UTC), reason=NASTY
    )
    status = ModelStatus(NASTY, "main.t", "replace", "dynamic", (slice_,))
    assert status._repr_html_().count(SAFE) == 3
    assert Statuses((status,))._repr_html_().count(SAFE) == 1
    assert Statuses((status,)) == (status,)


def test_a_long_value_is_cut() -> None:
    html = QueryResult((("c", "string"),), (("x" * 1000,),))._repr_html_()
    assert "x" * 199 + "…" in html
    assert "x" * 200 not in html
