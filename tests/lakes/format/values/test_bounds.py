"""Values as text and back, checked against DuckDB's casts."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.lakes.format.values.bounds import (
    bound_from_text,
    bound_to_text,
    compare_bounds,
    format_nanoseconds,
    partition_to_text,
)

FLOAT32 = st.floats(width=32, allow_nan=False)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**8)).filter(
    lambda d: abs(d) < 10**8
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
MOMENT = dt.datetime.fromisoformat
INSTANTS = st.datetimes(MOMENT("0001-01-02"), MOMENT("9999-12-30"))

VALUES: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "boolean": ("BOOLEAN", st.booleans()),
    "int64": ("BIGINT", st.integers(-(2**63), 2**63 - 1)),
    "uint64": ("UBIGINT", st.integers(0, 2**64 - 1)),
    "float32": ("FLOAT", FLOAT32),
    "float64": ("DOUBLE", st.floats(allow_nan=False)),
    "decimal(10,2)": ("DECIMAL(10,2)", DECIMALS),
    "date": ("DATE", st.dates()),
    "timestamp": ("TIMESTAMP", INSTANTS),
    "timestamptz": ("TIMESTAMPTZ", INSTANTS.map(lambda d: d.replace(tzinfo=dt.UTC))),
    "varchar": ("VARCHAR", TEXT),
    "uuid": ("UUID", st.uuids()),
}


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_duckdb_reads_the_same_value(
    duck: duckdb.DuckDBPyConnection, kind: str, data: st.DataObject
) -> None:
    cast, strategy = VALUES[kind]
    value = data.draw(strategy)
    text = bound_to_text(kind, value)
    assert text is not None
    (row,) = duck.execute(f"SELECT CAST(? AS {cast}) = CAST(? AS {cast})", [text, value]).fetchall()
    assert row == (True,)


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_texts_compare_as_the_values_do(kind: str, data: st.DataObject) -> None:
    _, strategy = VALUES[kind]
    a, b = data.draw(strategy), data.draw(strategy)
    left, right = bound_to_text(kind, a), bound_to_text(kind, b)
    assert left is not None
    assert right is not None
    assert compare_bounds(kind, left, right) == (a > b) - (a < b)


@given(st.binary(max_size=12), st.binary(max_size=12))
def test_blobs(a: bytes, b: bytes) -> None:
    left, right = bound_to_text("blob", a), bound_to_text("blob", b)
    assert left == a.hex().upper()
    assert right is not None
    assert compare_bounds("blob", left, right) == (a > b) - (a < b)


@given(FLOAT32)
def test_floats_come_back(value: float) -> None:
    assume(not math.isinf(value))
    text = bound_to_text("float32", value)
    assert text is not None
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("float32", struct.unpack("<f", struct.pack("<f", 1.1))[0], "1.1"),
        ("float64", 1e300, "1e+300"),
        ("float64", -0.5, "-0.5"),
        ("float64", math.inf, "inf"),
        ("float64", math.nan, None),
        ("decimal(10,2)", Decimal("-1.1"), "-1.10"),
        ("decimal(10,2)", Decimal("0"), "0.00"),
        ("decimal(4,0)", Decimal("-7"), "-7"),
        ("decimal(10,2)", Decimal("1.234"), None),
        ("timestamp", MOMENT("2013-01-02 03:04:05.12"), "2013-01-02 03:04:05.12"),
        ("timestamptz", MOMENT("2013-01-02"), None),
        ("varchar", "a\x00b", None),
        ("uuid", uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("interval", 5, None),
        ("int32", None, None),
    ],
)
def test_texts(kind: str, value: object, text: str | None) -> None:
    assert bound_to_text(kind, value) == text


def test_nanoseconds() -> None:
    assert format_nanoseconds(1) == "1970-01-01 00:00:00.000000001"
    assert format_nanoseconds(-1) == "1969-12-31 23:59:59.999999999"
    assert format_nanoseconds(2**63 - 1) == "2262-04-11 23:47:16.854775807"
    assert format_nanoseconds(10**30) is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("timestamp", "infinity"),
        ("timestamp", "0044-03-15 (BC) 00:00:00"),
        ("timestamptz", "2013-01-02 03:04:05+01"),
        ("int64", "x"),
        ("boolean", "maybe"),
        ("float64", "nan"),
        ("decimal(4,1)", "x"),
        ("interval", "1 day"),
    ],
)
def test_what_is_not_understood_is_unknown(kind: str, text: str) -> None:
    assert bound_from_text(kind, text) is None
    assert compare_bounds(kind, text, text) is None


def test_partition_values_spell_booleans_out() -> None:
    assert partition_to_text("boolean", True) == "true"
    assert partition_to_text("int32", 5) == "5"
    assert partition_to_text("varchar", None) is None
