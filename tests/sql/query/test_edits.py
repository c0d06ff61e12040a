"""Edits of a text, and the way back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.query.edits import Edit, edited, template

TEXT = "abcdefghijkl"


@given(st.lists(st.integers(0, len(TEXT)), max_size=6, unique=True), st.text("XY", max_size=3))
def test_what_stays_leads_back_to_itself(places: list[int], new: str) -> None:
    bounds = sorted(places)
    edits = [Edit(*pair, new) for pair in zip(bounds[::2], bounds[1::2], strict=False)]
    mapped = edited(TEXT, edits)
    for at, letter in enumerate(mapped.text):
        origin = mapped.back(at)
        starts = letter in "XY" and any(origin == edit.start for edit in edits)
        assert starts or TEXT[origin] == letter
    assert mapped.back(len(mapped.text)) == len(TEXT)


def test_a_template_keeps_braces() -> None:
    assert template("a {b} c", [Edit(6, 7, "{t0}")]) == "a {{b}} {t0}"
