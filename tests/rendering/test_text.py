"""Numbers, lengths of time, names and states in lines of text."""

from __future__ import annotations

import pytest

from penstock.rendering.text import (
    count,
    line,
    listed,
    one_line,
    past_freshness,
    seconds,
    slice_state,
    state_text,
    step_counts,
    visible,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.04, "0.0 s"), (9.94, "9.9 s"), (12.3, "12 s"), (185, "3 min 05 s")],
)
def test_seconds(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_numbers_have_their_noun() -> None:
    assert [count(1, "row"), count(1842, "row"), count(None, "row")] == ["1 row", "1,842 rows", ""]


def test_a_line_names_the_class_and_leaves_out_what_is_empty() -> None:
    assert line(3, "a", None, "", 0) == "int(a, 0)"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"


def test_control_characters_are_visible() -> None:
    assert visible("a\x1b\n\u202eb") == "a\\u001b\\n\\u202eb"
    assert visible("a\nb", keep="\n") == "a\nb"
    assert one_line("no\n  → write id") == "no → write id"


def test_states_of_slices_say_more_than_their_word() -> None:
    assert slice_state("changed outside", 7) == "changed outside (snapshot 7)"
    assert step_counts({"done": 1200, "skipped": 1}) == "1,200 done, 1 skipped: upstream failed"


def test_a_state_has_the_first_line_of_its_reason() -> None:
    assert state_text("done", None) == "done"
    assert state_text("failed", "no\nat line 3") == "failed: no"
    assert state_text("waiting", "for days") == "waiting (for days)"
    assert state_text("2 skipped, 1 done", "as it is", "skipped") == "2 skipped, 1 done (as it is)"


def test_how_many_slices_are_past_their_freshness() -> None:
    assert past_freshness(0, "1h", has_many=True) == ""
    assert past_freshness(1, "1h", has_many=False) == "past its freshness (1h)"
    assert past_freshness(1_200, "1h", has_many=True) == "1,200 past their freshness (1h)"
