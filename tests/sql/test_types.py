"""Types of DuckDB and of the format in Spark's SQL, on their own and in casts."""

from __future__ import annotations

import pytest

from penstock.errors import QueryFailed
from penstock.sql import types
from penstock.sql.types import cast_types, checked, spark_type


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expressions as the name of the type, so that what is cast shows."""
    for name in types.CHECKED:
        monkeypatch.setitem(types.CHECKED, name, f"{name.lower()}[:x]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(f(x, 1) AS UTINYINT)", "utinyint[(f(x, 1) ) ]"),
        ("a.`b c`::UUID = b::Guid", "uuid[a.`b c`] = guid[b]"),
        ("SELECT -1::UINTEGER, a - 1::UINTEGER", "SELECT uinteger[-1], a - uinteger[1]"),
        ("-2.5D::UBIGINT, 1 = :m::HUGEINT", "ubigint[-2.5D], 1 = hugeint[:m]"),
        (
            "(a + b)::UINT8, f(x)::UINT8, l[0].a::UINT8",
            "uint8[(a + b)], uint8[f(x)], uint8[l[0].a]",
        ),
        ("x::INT::UTINYINT, x::DECIMAL(9,2)::UBIGINT::UUID", None),
        ("CAST(x::UUID AS UTINYINT)", "utinyint[(uuid[x] ) ]"),
        ("SELECT DATE '2020-01-01'::UUID, 'x'::UUID", "SELECT uuid[DATE '2020-01-01'], uuid['x']"),
        (
            "WHERE x IN (SELECT uuid() AS uuid) -- ::UUID",
            "WHERE x IN (SELECT uuid() AS uuid) -- ::UUID",
        ),
        ("'x::UUID', g::GEOMETRY(0)", "'x::UUID', g::GEOMETRY(0)"),
    ],
)
def test_what_is_cast(text: str, expected: str | None) -> None:
    wanted = expected or "utinyint[x::INT], uuid[ubigint[x::DECIMAL(9,2)]]"
    assert checked(text) == wanted


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("x::GEOMETRY", 4, "st_geomfromwkb"),
        ("CASE WHEN a THEN b END::UUID", 23, r"CAST\(\.\.\. AS UUID\)"),
        ("sum(x) OVER ()::UBIGINT", 15, r"CAST\(\.\.\. AS UBIGINT\)"),
        ("TRY_CAST(x AS UTINYINT)", 12, "CASE WHEN"),
        ("x::UTINYINT[]", 4, "transform"),
    ],
)
def test_what_is_refused(text: str, column: int, hint: str) -> None:
    with pytest.raises(QueryFailed, match=hint) as caught:
        checked(text)
    assert caught.value.data["column"] == column


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(x AS VARCHAR)", "CAST(x AS STRING )"),
        ("try_cast(f(x) as text)", "try_cast(f(x) as STRING)"),
        ("x::VARCHAR || y::varchar(3)", "x::STRING  || y::varchar(3)"),
        ("x::TIMESTAMPTZ, CAST(y AS DOUBLE PRECISION)", None),
        ("x :: timestamp with  time\nzone", "x :: TIMESTAMP_LTZ           \n"),
        ("x::INT8 + y::BIGINT", "x::BIGINT + y::BIGINT"),
        ("(SELECT a AS text) AS varchar", "(SELECT a AS text) AS varchar"),
        ("CAST((SELECT a AS text) AS TEXT)", "CAST((SELECT a AS text) AS STRING)"),
        ("'x::TEXT' AS a -- x::TEXT", "'x::TEXT' AS a -- x::TEXT"),
        ("x::TIMESTAMP, y::STRING, z::CHARACTER", "x::TIMESTAMP, y::STRING, z::CHARACTER"),
    ],
)
def test_types_of_casts(text: str, expected: str | None) -> None:
    wanted = expected or "x::TIMESTAMP_LTZ, CAST(y AS DOUBLE          )"
    assert cast_types(text) == wanted


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
