"""Files that Arrow writes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.writing.arrow import write
from penstock.lakes.writing.spark import Target

ROWS = 10_000


def encodings(path: Path, kind: str, values: list[object]) -> set[str]:
    """Of a file with one column, which is read back and compared."""
    schema = TableSchema((Column("v", kind, id=1),))
    rows = pa.table([pa.array(values, arrow_schema(schema).field(0).type)], arrow_schema(schema))
    (file,) = write(rows, Target("main.t", f"{path}/", schema)).files
    assert pq.read_table(file.path)["v"].to_pylist() == values
    return set(pq.read_metadata(file.path).row_group(0).column(0).encodings)


@pytest.mark.parametrize(
    ("kind", "values", "coded"),
    [
        ("int64", list(range(ROWS)), False),
        ("int64", [at % 7 for at in range(ROWS)], True),
        ("int64", [None] * ROWS, True),
        ("int64", [at if at % 2 else None for at in range(ROWS)], False),
        ("varchar", [f"a text of its own, {at}" for at in range(ROWS)], False),
        ("varchar", ["one of", "a few"] * (ROWS // 2), True),
    ],
)
def test_values_that_repeat_are_coded(
    tmp_path: Path, kind: str, values: list[object], coded: bool
) -> None:
    """A dictionary of values that are all others costs time and space."""
    assert ("RLE_DICTIONARY" in encodings(tmp_path, kind, values)) == coded
