from __future__ import annotations

import pytest

from penstock.sql.types import spark_type


@pytest.mark.parametrize(
    ("written", "spark"),
    [
        ("VARCHAR", "STRING"),
        ("TIMESTAMP", "TIMESTAMP_NTZ"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP"),
        ("UTINYINT", "SMALLINT"),
        ("USMALLINT", "INT"),
        ("UINTEGER", "BIGINT"),
        ("UBIGINT", "DECIMAL(20, 0)"),
        ("HUGEINT", "DECIMAL(38, 0)"),
        ("DECIMAL(10,2)", "DECIMAL(10, 2)"),
        ("JSON", "STRING"),
        ("UUID", "STRING"),
        ("BLOB", "BINARY"),
        ("STRUCT(a UINTEGER, b VARCHAR[])", "STRUCT<a: BIGINT, b: ARRAY<STRING>>"),
        ("MAP(VARCHAR, INT)", "MAP<STRING, INT>"),
    ],
)
def test_types(written: str, spark: str) -> None:
    assert spark_type(written) == spark
