"""Data tests proven without Spark: true only where Spark would let the test pass.

Tests the proofs of ``engine/checks/not_null.py``, ``engine/checks/unique.py``,
``engine/checks/relationships.py`` and ``engine/checks/accepted_values.py``.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.checks import accepted_values, not_null, relationships, unique
from penstock.engine.checks.check import Check, Proof
from penstock.engine.checks.run import proven

INTS = st.lists(st.none() | st.integers(-3, 3), max_size=6)
TEXTS = st.lists(st.none() | st.sampled_from(["", "a", "A", "a ", "é", "1"]), max_size=6)


def column(values: list[Any], kind: pa.DataType) -> pa.ChunkedArray:
    """In two chunks, as rows of two files."""
    half = len(values) // 2
    return pa.chunked_array([pa.array(values[:half], kind), pa.array(values[half:], kind)])


def rows_of(values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"a": column(values, kind)})


def present(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


@given(INTS | TEXTS)
def test_not_null(values: list[Any]) -> None:
    kind = pa.string() if any(isinstance(value, str) for value in values) else pa.int32()
    assert not_null.holds(rows_of(values, kind)) == (None not in values)


@given(INTS)
def test_unique_numbers(values: list[int | None]) -> None:
    once = all(count == 1 for count in Counter(present(values)).values())
    assert unique.holds(rows_of(values, pa.int64())) == once


@given(TEXTS)
def test_unique_texts(values: list[str | None]) -> None:
    once = all(count == 1 for count in Counter(present(values)).values())
    assert unique.holds(rows_of(values, pa.string())) == once


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.int32()), pa.struct({"a": pa.int8()})])
def test_unique_is_not_seen_where_arrow_compares_otherwise(kind: pa.DataType) -> None:
    assert not unique.holds(rows_of([], kind))


@given(TEXTS, st.lists(st.sampled_from(["", "a", "A", "a ", "é", "1"])))
def test_accepted_texts(values: list[str | None], accepted: list[str]) -> None:
    expected = set(present(values)) <= set(accepted)
    assert accepted_values.holds(column(values, pa.string()), accepted) == expected


@given(INTS, st.lists(st.integers(-3, 3)))
def test_accepted_numbers(values: list[int | None], accepted: list[int]) -> None:
    expected = set(present(values)) <= set(accepted)
    passes = accepted_values.holds(column(values, pa.int16()), [str(value) for value in accepted])
    assert passes == expected


@pytest.mark.parametrize("written", ["1.0", " 1", "+1", "1e0", "", "one", "１"])
def test_numbers_that_are_not_plainly_written_are_left_to_spark(written: str) -> None:
    assert not accepted_values.holds(column([1], pa.int32()), [written])


@pytest.mark.parametrize("kind", [pa.float64(), pa.date32(), pa.decimal128(4, 1), pa.bool_()])
def test_other_types_are_left_to_spark(kind: pa.DataType) -> None:
    assert not accepted_values.holds(column([None], kind), ["1"])


@given(INTS, INTS)
def test_relationships(values: list[int | None], referenced: list[int | None]) -> None:
    expected = set(present(values)) <= set(present(referenced))
    kind = pa.int64()
    assert relationships.holds(column(values, kind), column(referenced, kind)) == expected


def test_relationships_of_two_types_are_left_to_spark() -> None:
    assert not relationships.holds(column([1], pa.int32()), column([1], pa.int64()))
    assert not relationships.holds(column([1.0], pa.float64()), column([1.0], pa.float64()))
    assert not relationships.holds(column([1], pa.int32()), None)


def test_only_what_is_proven_is_left_out() -> None:
    rows = pa.table({"a": [1, None], "b": [1, 1]})
    checks = [
        Check("null", "", proof=Proof(("a",), not_null.holds)),
        Check("twice", "", proof=Proof(("b",), unique.holds)),
        Check("sql", ""),
        Check("there", "", proof=Proof(("b",), not_null.holds)),
    ]
    assert proven(checks, rows.select) == [False, False, False, True]
    assert proven(checks, lambda _: None) == [False] * 4
    assert proven(checks[2:3], lambda _: pytest.fail("no column is asked for")) == [False]
