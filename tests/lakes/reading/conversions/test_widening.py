"""Which types a column may be changed to; differential/test_widening.py asks DuckDB for all."""

from __future__ import annotations

import pytest

from penstock.lakes.reading.conversions.widening import can_become, can_become_text

YES = {
    "int8": "int16 int64 int128 decimal(3,0) decimal(38,0)",
    "int64": "int128 decimal(19,0)",
    "uint8": "int16 int64 uint64 uint128",
    "uint16": "int32 uint32",
    "uint32": "int64 uint64",
    "uint64": "int128 decimal(20,0)",
    "float32": "float64",
    "decimal(9,3)": "decimal(10,3) decimal(38,3)",
    "date": "timestamptz",
    "timestamp": "timestamptz",
    "timestamp_s": "timestamp timestamp_ms",
}
NO = {
    "boolean": "int8 int64 json",
    "int8": "float32 decimal(4,1) decimal(2,0)",
    "int16": "int8 uint16 uint64 boolean varchar decimal(6,2)",
    "int64": "decimal(18,0) float64 json",
    "int128": "float64 decimal(38,0)",
    "uint8": "int8",
    "uint32": "int32",
    "uint64": "int64",
    "float64": "float32 decimal(38,10)",
    "decimal(9,3)": "decimal(9,3) decimal(18,2) decimal(38,10) int64 float64",
    "date": "timestamp timestamp_ms timestamp_ns varchar",
    "timestamp": "timestamp_ns timestamp_s date",
    "timestamptz": "timestamp",
    "varchar": "json",
}


@pytest.mark.parametrize("old", YES)
def test_what_a_column_can_become(old: str) -> None:
    assert [new for new in YES[old].split() if not can_become(old, new)] == []
    assert can_become_text(old)


@pytest.mark.parametrize("old", NO)
def test_what_it_cannot(old: str) -> None:
    assert [new for new in NO[old].split() if can_become(old, new)] == []
