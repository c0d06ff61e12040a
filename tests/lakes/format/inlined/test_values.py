"""Inlined values as typed columns: what a catalog's text becomes, without Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import CatalogCorrupt, UnsupportedFeature
from penstock.lakes.format.files import InlinedPart
from penstock.lakes.format.inlined.values import batch_schema, batches
from penstock.lakes.format.schema import Column, TableSchema


def _read(stored: Any, source: Column, target: Column | None = None) -> Any:
    """A value of column ``source``, stored as ``stored``, as a value of ``target``."""
    rows = pa.table({"row_id": [0], "begin_snapshot": [1], "end_snapshot": [None], "1": [stored]})
    part = InlinedPart(TableSchema((source,)), rows)
    schema = batch_schema(part, TableSchema((target or source,)))
    (batch,) = batches(part, schema)
    return batch.column(0)[0].as_py()


def _column(kind: str, **more: Any) -> Column:
    return Column("c", kind, id=1, **more)


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        ("time", "24:00:00", "24:00:00"),
        ("timetz", "12:34:56.789012+05:30", "12:34:56.789012+05:30"),
        ("interval", "-00:00:01", {"months": 0, "days": 0, "micros": -1_000_000}),
        ("int128", "-" + "9" * 38, Decimal("-" + "9" * 38)),
        ("uint64", "18446744073709551615", Decimal(2**64 - 1)),
        ("float32", 0.1, 0.10000000149011612),
        ("timestamp_ns", "1970-01-01 00:00:00.000000001", 1),
        ("uuid", "550E8400-E29B-41D4-A716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("decimal(5,2)", "1.50", Decimal("1.50")),
    ],
)
def test_a_value_is_as_users_see_its_type(kind: str, stored: Any, expected: Any) -> None:
    assert _read(stored, _column(kind)) == expected


@pytest.mark.parametrize(
    ("old", "new", "stored", "expected"),
    [
        ("float32", "float64", 0.1, 0.10000000149011612),
        ("int32", "int64", 5, 5),
        ("int64", "float64", 5, 5.0),
        ("decimal(4,2)", "decimal(10,4)", "1.25", Decimal("1.2500")),
        ("boolean", "int32", True, 1),
    ],
)
def test_a_promoted_value_is_read_as_what_it_was_and_then_widened(
    old: str, new: str, stored: Any, expected: Any
) -> None:
    assert _read(stored, _column(old), _column(new)) == expected


def test_fields_are_found_by_their_ids_and_new_ones_have_their_defaults() -> None:
    a, b = Column("a", "int32", id=2), Column("b", "varchar", id=3)
    added = Column("d", "varchar", id=4, initial_default="new")
    source = _column("struct", children=(a, b))
    target = _column("struct", children=(Column("aa", "int64", id=2), added))
    assert _read("{'a': 1, 'b': 'x'}", source, target) == {"aa": 1, "d": "new"}


def test_a_value_that_is_none_of_its_type_is_named() -> None:
    with pytest.raises(CatalogCorrupt, match="'c' is not a valid date"):
        _read("tomorrow", _column("date"))


def test_a_type_that_is_never_inlined_as_text_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="variant"):
        _read("1", _column("variant"))


def test_more_digits_than_spark_has_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="38 digits"):
        _read(str(2**127 - 1), _column("int128"))
