"""Decimals rounded and as floats, the latter beside DuckDB's own casts.

Timestamps in nanoseconds, in the microseconds of Spark: converted exactly, or an error.

Tests ``lakes/rows/given.py`` and ``lakes/format/inlined/literal_rows.py`` as well.
"""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.python.frames import NotRows, to_file
from penstock.errors import SchemaMismatch
from penstock.lakes.format.values.precision import (
    TooFine,
    column_in_micros,
    float_of,
    nearest,
    rounded,
    single,
)
from penstock.lakes.lake import Lake
from penstock.lakes.rows.given import table_in_micros
from tests import duck

# Digits before and after the point, some next to the middle between two floats.
DIGITS = ("0", "1", "5", "16777217", "33554433", "900719925474099", "123456789012345")
SCALES = (0, 1, 3)


@pytest.mark.parametrize(("kind", "name"), [("float32", "FLOAT"), ("float64", "DOUBLE")])
def test_floats_are_duckdbs(kind: str, name: str) -> None:
    duck.required()
    pairs = [
        (scale, Decimal(f"{sign}{digits}.{part[:scale] or '0'}"))
        for scale, digits, part, sign in product(SCALES, DIGITS, ("267", "500", "999"), ("", "-"))
    ]
    wanted = [f"CAST({value}::DECIMAL(18,{scale}) AS {name})::DOUBLE" for scale, value in pairs]
    with closing(duck.connect()) as connection:
        theirs = connection.execute(f"SELECT {', '.join(wanted)}").fetchall()[0]
    assert [float_of(scale, kind)(value) for scale, value in pairs] == list(theirs)


def test_a_whole_number_is_rounded_once() -> None:
    number = (1 << 60) + (1 << 36) + 1  # just above the middle, on which it is as 64 bits
    assert nearest(number, "float32") == float((1 << 60) + (1 << 37))
    assert nearest(-number, "float32") == -float((1 << 60) + (1 << 37))
    assert nearest(number, "float64") == float(number)
    assert single(Decimal("0.1")) == 0.10000000149011612


def test_more_digits_than_python_keeps() -> None:
    assert rounded(Decimal("1" * 36 + ".005"), 2) == Decimal("1" * 36 + ".01")


FINE = [1_000, None, 2_001]  # nanoseconds since 1970: the third is between two microseconds
NESTED = pa.struct([pa.field("at", pa.list_(pa.timestamp("ns")))])


def fine(zone: str | None = None) -> Any:
    return pa.array(FINE, pa.timestamp("ns", zone))


def test_a_column_is_converted_exactly_or_refused() -> None:
    whole = pa.chunked_array([fine().slice(0, 2)])
    assert column_in_micros(whole).cast(pa.int64()).to_pylist() == [1, None]
    with pytest.raises(TooFine, match=r"1970-01-01 00:00:00\.000002001") as caught:
        column_in_micros(pa.chunked_array([fine("UTC")]))
    assert caught.value.row == 3


def test_nested_values_are_converted_exactly_or_refused() -> None:
    whole, part = ([{"at": [count]}] for count in (1_000, 1))
    column = column_in_micros(pa.chunked_array([whole], NESTED))
    assert column.to_pylist() == [{"at": [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]}]  # noqa: DTZ001 - no zone
    with pytest.raises(SchemaMismatch, match="row 1, column 's': a nested value holds nano"):
        table_in_micros(pa.table({"s": pa.array(part, NESTED)}))


@pytest.mark.parametrize(("kind", "zone"), [("TIMESTAMP", None), ("TIMESTAMPTZ", "UTC")])
def test_an_append_refuses_nanoseconds(tmp_path: Path, kind: str, zone: str | None) -> None:
    with Lake.attach(f"ducklake:sqlite:{tmp_path}/m.sqlite", data_path=f"{tmp_path}/d") as lake:
        lake.sql(f"CREATE TABLE t (t {kind})")
        table = lake.table("t")
        with pytest.raises(SchemaMismatch, match=r"row 3, column 't' of main.t: .*2001.* holds"):
            table.append(pa.table({"t": fine(zone)}))
        table.append(pa.table({"t": fine(zone).slice(0, 2)}))
        assert [row["t"] and row["t"].microsecond for row in table.to_arrow().to_pylist()] == [
            1,
            None,
        ]


def test_a_column_in_nanoseconds_keeps_them(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with Lake.attach(uri, data_path=f"{tmp_path}/d") as lake:
        lake.sql("CREATE TABLE t (t TIMESTAMP_NS)")
        lake.table("t").append(pa.table({"t": fine()}))
    counts = duck.rows(uri, "SELECT epoch_ns(t) FROM t")
    assert sorted(counts, key=str) == [(1000,), (2001,), (None,)]


def test_a_step_does_not_cut_nanoseconds(tmp_path: Path) -> None:
    with pytest.raises(NotRows, match=r"row 3, column 't': .* \.dt\.floor"):
        to_file(pa.table({"t": fine()}), str(tmp_path))
