"""Casts of structs: by the names of their fields, inside of lists and maps too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import SchemaMismatch
from penstock.spark.struct_casts import cast_columns, reordered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
POINT = "named_struct('x', 1, 'y', 2)"
TURNED = "struct<y: bigint, X: bigint>"


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (POINT, TURNED, {"y": 2, "X": 1}),
        (f"array({POINT}, NULL)", f"array<{TURNED}>", [{"y": 2, "X": 1}, None]),
        (f"map('k', {POINT})", f"map<string, {TURNED}>", {"k": {"y": 2, "X": 1}}),
        (f"named_struct('p', {POINT})", f"struct<p: {TURNED}>", {"p": {"y": 2, "X": 1}}),
        (POINT, "struct<x: string, y: string>", {"x": "1", "y": "2"}),
    ],
)
def test_fields_match_by_name(spark: SparkSession, value: str, kind: str, expected: Any) -> None:
    df = spark.sql(f"SELECT {value} AS s")
    (row,) = df.select(*cast_columns(df, {"s": kind})).collect()
    assert row.asDict(recursive=True)["s"] == expected
    assert reordered(df, {"s": kind}) == ([] if "string, y" in kind else ["s"])


def test_other_fields_are_refused(spark: SparkSession) -> None:
    df = spark.sql(f"SELECT {POINT} AS s")
    with pytest.raises(SchemaMismatch, match=r"column s is cast to struct<x:int,z:int>"):
        cast_columns(df, {"s": "struct<x: int, z: int>"})
