"""Any kind of value, assigned to a column of any type, by Arrow or, where it has none, by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.rows import arrow_finder
from penstock.lake.rows.change import Condition, RowChange

if TYPE_CHECKING:
    pass

DAY = "2026-01-02 03:04:05"
UUID = "0195c1a0-0000-7000-8000-000000000001"
# By DuckDB's type: the name in the catalog, a value in Spark's SQL, and how DuckDB shows that.
ARROWS = {
    "BOOLEAN": ("boolean", "true", "true"),
    "TINYINT": ("int8", "1", "1"),
    "SMALLINT": ("int16", "1", "1"),
    "INTEGER": ("int32", "1", "1"),
    "BIGINT": ("int64", "1", "1"),
    "FLOAT": ("float32", "1.5", "1.5"),
    "DOUBLE": ("float64", "1.5", "1.5"),
    "DECIMAL(10,2)": ("decimal(10,2)", "1.25", "1.25"),
    "VARCHAR": ("varchar", "'a'", "a"),
    "BLOB": ("blob", "X'6162'", "ab"),
    "DATE": ("date", "DATE '2026-01-02'", "2026-01-02"),
    "TIMESTAMP": ("timestamp", f"TIMESTAMP_NTZ '{DAY}'", DAY),
    "TIMESTAMPTZ": ("timestamptz", f"TIMESTAMP '{DAY} UTC'", f"{DAY}+00"),
}
SPARKS = {
    "UBIGINT": ("uint64", "1", "1"),
    "JSON": ("json", "'{}'", "{}"),
    "UUID": ("uuid", f"'{UUID}'", UUID),
    "TIMESTAMP_S": ("timestamp_s", f"TIMESTAMP_NTZ '{DAY}'", DAY),
    "TIMESTAMP_MS": ("timestamp_ms", f"TIMESTAMP_NTZ '{DAY}'", DAY),
}
NESTED = {
    "INTEGER[]": ("", "array(1, 2)", "[1, 2]"),
    "STRUCT(x INTEGER)": ("", "named_struct('x', 1)", "{'x': 1}"),
    "MAP(VARCHAR, INTEGER)": ("", "map('a', 1)", "{a=1}"),
}
TYPES = {**ARROWS, **SPARKS, **NESTED}


@pytest.mark.parametrize("value", [None, "NULL", "'{}'", "e"])
@pytest.mark.parametrize("kind", [*ARROWS, *SPARKS, "HUGEINT", "TIME", "INTERVAL"])
def test_arrow_leaves_what_it_has_no_type_for(kind: str, value: str | None) -> None:
    name = {**ARROWS, **SPARKS}.get(kind, (kind.lower(), "", ""))[0]
    columns = (Column("k", "int32", 1), Column("c", name, 2), Column("e", name, 3))
    change = RowChange.update(Condition.of("k = 1"), {"c": value})
    computed = arrow_finder.compiled(TableSchema(columns), change)
    assert computed is None or kind in ARROWS
    assert computed is not None or kind not in ARROWS or value == "'{}'"
