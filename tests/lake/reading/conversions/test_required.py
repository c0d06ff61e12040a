"""NULL in fields that take none, found in Arrow's values; Spark's are in tests/delta."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.lake.format.schema import Column
from penstock.lake.reading.conversions.required import missing_field, required_fields

X = Column("x", "int64", nullable=False)
STRUCT = Column("s", "struct", children=(X, Column("y", "int64")))
LIST = Column("l", "list", children=(Column("element", "int64", nullable=False),))
STRUCTS = Column("n", "list", children=(Column("element", "struct", children=STRUCT.children),))
VALUE = Column("value", "struct", children=STRUCT.children)
MAP = Column("m", "map", children=(Column("key", "varchar"), VALUE))
STRUCT_TYPE = pa.struct([("x", pa.int64()), ("y", pa.int64())])
FULL, EMPTY = {"x": 1, "y": None}, {"x": None, "y": 1}


def test_required_fields() -> None:
    assert list(required_fields(Column("o", "struct", children=(STRUCT, MAP, LIST)))) == [
        "o.s.x",
        "o.m.value.x",
        "o.l.element",
    ]
    assert list(required_fields(X)) == []


@pytest.mark.parametrize(
    ("column", "kind", "right", "wrong", "path"),
    [
        (STRUCT, STRUCT_TYPE, [FULL, None], EMPTY, "s.x"),
        (LIST, pa.list_(pa.int64()), [[1], [], None], [1, None], "l.element"),
        (STRUCTS, pa.list_(STRUCT_TYPE), [[FULL, None], None], [FULL, EMPTY], "n.element.x"),
        (
            MAP,
            pa.map_(pa.string(), STRUCT_TYPE),
            [{"a": FULL, "b": None}, None],
            {"a": EMPTY},
            "m.value.x",
        ),
    ],
    ids=["struct", "list", "structs in a list", "map"],
)
def test_values(column: Column, kind: Any, right: list[Any], wrong: Any, path: str) -> None:
    values = pa.array([wrong, *right], kind)
    assert missing_field(pa.chunked_array([values]), column) == path
    assert missing_field(pa.chunked_array([values[1:]]), column) is None  # part of another array
    assert missing_field(pa.chunked_array([], kind), column) is None
