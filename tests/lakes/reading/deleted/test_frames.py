"""Masks of deleted positions give the same positions back, whatever the order."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.lakes.reading.deleted.frames import masks

_PLACES = st.lists(st.integers(0, 400) | st.integers(0, 2**62), max_size=200)


def places_of(table: pa.Table) -> list[int]:
    """The places, by looking at each bit."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted(word * 64 + bit for word, mask in rows for bit in range(64) if (mask >> bit) & 1)


@given(_PLACES)
def test_masks_hold_the_places_and_no_others(places: list[int]) -> None:
    masked = masks(pa.array(places, pa.int64()))
    assert places_of(masked) == sorted(set(places))


@given(_PLACES)
def test_each_word_is_there_once(places: list[int]) -> None:
    words = masks(pa.array(places, pa.int64())).column(0).to_pylist()
    assert len(words) == len(set(words))


def test_all_64_places_of_a_word() -> None:
    masked = masks(pa.array(range(64, 128), pa.int64()))
    assert masked.to_pydict() == {"_penstock_word": [1], "_penstock_mask": [-1]}
