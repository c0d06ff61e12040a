"""Texts of which parts are blanked."""

from __future__ import annotations

from penstock.sql.text import mask


def test_a_mask_keeps_length_and_lines() -> None:
    text = "a (b\nc) d"
    assert mask(text, [(2, 7, "x")]) == "a x \n   d"
    assert len(mask(text, [(2, 7, "")])) == len(text)
    assert mask(text, [(2, 7, "")]).count("\n") == 1
