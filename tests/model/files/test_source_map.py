"""Places of a script's text."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.files.source_map import Source


@given(st.text(alphabet="ab\n", max_size=40), st.integers(min_value=0, max_value=40))
def test_locations_lead_back(text: str, offset: int) -> None:
    source = Source(Path("m.sql"), text)
    offset = min(offset, len(text))
    where = source.location(offset)
    assert where.line is not None
    assert where.column is not None
    assert source.offset(where.line, where.column) == offset
