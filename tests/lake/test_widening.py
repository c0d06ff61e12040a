"""Which types a column may be changed to: of DuckDB's promotions those that lose nothing."""

from __future__ import annotations

import pytest

from penstock.lake.widening import can_become, can_become_text

YES = {
    "int8": "int16 int64 float32 float64 decimal(3,0) decimal(18,3)",
    "int32": "int64 float64 decimal(12,2)",
    "int64": "decimal(19,0) decimal(38,2)",
    "uint8": "int16 int64 uint64 float32 decimal(4,1)",
    "uint32": "int64 uint64 float64 decimal(10,0)",
    "uint64": "decimal(20,0)",
    "float32": "float64",
    "decimal(10,2)": "decimal(11,3) decimal(38,2)",
    "date": "timestamp",
}
NO = {
    "int16": "int8 uint16 uint64 boolean varchar decimal(6,2)",
    "int32": "float32 uint64 int128",
    "int64": "float64 decimal(18,0)",
    "uint8": "int8",
    "uint32": "int32 float32",
    "uint64": "int64 float64",
    "float64": "float32 decimal(38,10)",
    "decimal(10,2)": "decimal(10,2) decimal(10,3) decimal(18,1) float64 int64",
    "date": "timestamptz varchar",
    "timestamp": "timestamptz date",
    "varchar": "json blob",
}


@pytest.mark.parametrize("old", YES)
def test_what_a_column_can_become(old: str) -> None:
    assert [new for new in YES[old].split() if not can_become(old, new)] == []
    assert can_become_text(old)


@pytest.mark.parametrize("old", NO)
def test_what_it_cannot(old: str) -> None:
    assert [new for new in NO[old].split() if can_become(old, new)] == []
