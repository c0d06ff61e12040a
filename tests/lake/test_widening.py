"""Which types a column may be changed to: of DuckDB's promotions those that lose nothing."""

from __future__ import annotations

import pytest

from penstock.lake.widening import can_become, can_become_text

YES = {
    "int8": "int16 int64",
    "uint8": "int16 int64 uint64",
    "uint16": "int32 uint32",
    "uint32": "int64 uint64",
    "float32": "float64",
}
NO = {
    "int16": "int8 uint16 uint64 boolean varchar",
    "int64": "float64 decimal(18,0)",
    "uint8": "int8",
    "uint32": "int32 float32",
    "uint64": "int64",
    "varchar": "json",
}


@pytest.mark.parametrize("old", YES)
def test_what_a_column_can_become(old: str) -> None:
    assert [new for new in YES[old].split() if not can_become(old, new)] == []
    assert can_become_text(old)


@pytest.mark.parametrize("old", NO)
def test_what_it_cannot(old: str) -> None:
    assert [new for new in NO[old].split() if can_become(old, new)] == []
