"""Statistics from footers, and the table's as a whole: never a bound that could be wrong."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from penstock.lakes.format.files import ColumnStats
from penstock.lakes.format.schema import Column, TableSchema, assign_ids
from penstock.lakes.format.statistics import TableColumnStats, from_footer, merge
from penstock.lakes.format.values.bounds import bound_from_text


def footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return pq.read_metadata(io.BytesIO(sink.getvalue()))


def stats_of(kind: str, values: pa.Array, **options: Any) -> ColumnStats:
    schema = assign_ids(TableSchema((Column("c", kind),)))
    (stats,) = from_footer(footer(pa.table({"c": values}), **options), schema, frozenset())
    return stats


TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "uint32": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "varchar": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
    "blob": (pa.binary(), st.binary(max_size=5)),
    "decimal(9,2)": (
        pa.decimal128(9, 2),
        st.decimals(-9999, 9999, places=2, allow_nan=False),
    ),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
}


@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
def test_bounds_hold_all_values(kind: str, data: st.DataObject) -> None:
    arrow, strategy = TYPES[kind]
    values = data.draw(st.lists(st.none() | strategy, max_size=8))
    stats = stats_of(kind, pa.array(values, arrow), row_group_size=3)
    present = [value for value in values if value is not None]
    assert (stats.value_count, stats.null_count) == (len(present), len(values) - len(present))
    if stats.min_value is None or stats.max_value is None:
        odd = any("\x00" in value for value in present if isinstance(value, str))
        assert odd or not present
        return
    low, high = (bound_from_text(kind, text) for text in (stats.min_value, stats.max_value))
    for value in present:
        text = str(value) if kind != "blob" else value.hex()
        assert low <= bound_from_text(kind, text) <= high


def test_the_files_type_may_be_narrower_than_the_columns() -> None:
    stats = stats_of("int64", pa.array([1, 2], pa.int16()))
    assert (stats.min_value, stats.max_value) == ("1", "2")
    from_spark = pa.array([1, 2**64 - 1], pa.decimal128(20, 0))
    assert stats_of("uint64", from_spark).max_value == "18446744073709551615"


def test_floats_have_bounds_only_where_nan_is_settled() -> None:
    schema = assign_ids(TableSchema((Column("c", "float64"),)))
    plain = footer(pa.table({"c": [1.5, -2.5]}))
    (unknown,) = from_footer(plain, schema)
    assert (unknown.min_value, unknown.max_value, unknown.contains_nan) == (None, None, None)
    (known,) = from_footer(plain, schema, frozenset())
    assert (known.min_value, known.max_value, known.contains_nan) == ("-2.5", "1.5", False)
    (nan,) = from_footer(footer(pa.table({"c": [float("nan")]})), schema, frozenset({1}))
    assert (nan.min_value, nan.max_value, nan.contains_nan) == (None, None, True)


def test_a_row_group_that_does_not_say_makes_all_unknown() -> None:
    table = pa.table({"c": ["a", "b"]})
    schema = assign_ids(TableSchema((Column("c", "varchar"),)))
    (stats,) = from_footer(footer(table, write_statistics=False), schema)
    assert (stats.min_value, stats.max_value, stats.null_count) == (None, None, None)
    assert stats.value_count == 2


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("uuid", pa.array(["AA112233-4455-6677-8899-aabbccddeeff"])),  # letter case is free
        ("timestamptz", pa.array([1], pa.timestamp("us"))),  # the zone is not known
        ("timestamp", pa.array([1], pa.timestamp("us", "UTC"))),
        ("timestamp", pa.array([2**62], pa.timestamp("us"))),  # beyond the year 9999
        ("varchar", pa.array([b"\xff"], pa.binary())),
        ("int32", pa.array(["1"])),
    ],
)
def test_doubtful_bounds_are_left_out(kind: str, values: pa.Array) -> None:
    stats = stats_of(kind, values)
    assert (stats.min_value, stats.max_value) == (None, None)


def test_int96_has_no_bounds() -> None:
    values = pa.array([1, 2], pa.timestamp("ns"))
    assert stats_of("timestamp", values, use_deprecated_int96_timestamps=True).min_value is None


def test_leaves_are_found_by_id_before_name() -> None:
    schema = assign_ids(TableSchema((Column("a", "int32"), Column("b", "int32"))))
    swapped = pa.schema(
        [
            pa.field("a", pa.int32(), metadata={b"PARQUET:field_id": b"2"}),
            pa.field("b", pa.int32(), metadata={b"PARQUET:field_id": b"1"}),
            pa.field("extra", pa.int32(), metadata={b"PARQUET:field_id": b"9"}),
        ]
    )
    file = footer(pa.table({"a": [1], "b": [2], "extra": [3]}).cast(swapped))
    minima = {s.column_id: s.min_value for s in from_footer(file, schema)}
    assert minima == {1: "2", 2: "1"}


def test_names_with_dots_are_not_paths() -> None:
    inner = Column("a", "struct", children=(Column("b", "int32"),))
    schema = assign_ids(TableSchema((inner, Column("a.b", "int32"))))
    file = footer(pa.table({"a": [{"b": 1}], "a.b": pa.array([5], pa.int32())}))
    assert {s.column_id: s.min_value for s in from_footer(file, schema)} == {2: "1", 3: "5"}


INT = Column("c", "int32", id=1)
FLOAT = Column("c", "float64", id=1)


def file(low: str | None, high: str | None, values: int = 2, nulls: int | None = 0) -> ColumnStats:
    return ColumnStats(1, None, values, nulls, low, high)


def test_merge_takes_the_outermost() -> None:
    before = TableColumnStats(1, False, None, "-5", "9")
    merged = merge(INT, before, [file("10", "100"), file("-7", "1", nulls=1)])
    assert merged == TableColumnStats(1, True, None, "-7", "100")


def test_merge_of_nulls_only_waits_for_values() -> None:
    nulls = merge(INT, None, [file(None, None, values=0, nulls=3)])
    assert nulls == TableColumnStats(1, True, None, None, None)
    assert merge(INT, nulls, [file("1", "2")]) == TableColumnStats(1, True, None, "1", "2")


@pytest.mark.parametrize(
    ("before", "files"),
    [
        (None, [file("1", "2"), None]),
        (None, [file("1", "2"), file(None, None)]),
        (TableColumnStats(1, False, None, None, None), [file("1", "2")]),
        (TableColumnStats(1, None, None, None, None), [file("1", "2")]),
        (TableColumnStats(1, True, None, "x", "y"), [file("1", "2")]),
    ],
)
def test_unknown_is_no_row(
    before: TableColumnStats | None, files: list[ColumnStats | None]
) -> None:
    assert merge(INT, before, files) is None


def test_nan_is_remembered() -> None:
    before = TableColumnStats(1, False, True, "1.0", "2.0")
    plain = ColumnStats(1, None, 1, 0, "5.0", "5.0", contains_nan=False)
    assert merge(FLOAT, before, [plain]) == TableColumnStats(1, False, True, "1.0", "5.0")
    assert merge(FLOAT, None, [plain]) == TableColumnStats(1, False, False, "5.0", "5.0")
