"""Statistics as the log has them, from a file's bounds as a lake's catalog has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.delta.schema import table_schema
from penstock.delta.statistics import loosened, parsed, stats_of
from penstock.lake.format.files import ColumnStats, DataFile
from tests.delta.tables import schema_text


def described(kind: Any, low: str | None, high: str | None, **more: Any) -> dict[str, Any]:
    schema = table_schema(schema_text([("c", kind)]))
    stats = ColumnStats(1, 10, 3, 1, low, high, more.get("nan", False))
    found: dict[str, Any] = json.loads(stats_of(DataFile("a", 4, 9, 0, stats=(stats,)), schema))
    return found


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        ("long", "-3", "9", (-3, 9)),
        ("double", "0.5", "1e300", (0.5, 1e300)),
        ("decimal(20,2)", "-0.10", "123456789012345678.25", (-0.1, 123456789012345678.25)),
        ("date", "2026-05-01", "2026-05-02", ("2026-05-01", "2026-05-02")),
        (
            "timestamp",
            "2026-05-01 10:00:00.000001+00",
            "2026-05-01 11:00:00+00",
            ("2026-05-01T10:00:00.000001Z", "2026-05-01T11:00:00Z"),
        ),
        (
            "timestamp_ntz",
            "2026-05-01 10:00:00",
            "2026-05-01 11:00:00",
            ("2026-05-01T10:00:00", "2026-05-01T11:00:00"),
        ),
        ("string", "a" * 40, "b" * 40, ("a" * 32, "b" * 32 + "\U0010ffff")),
    ],
)
def test_bounds(kind: str, low: str, high: str, expected: tuple[Any, Any]) -> None:
    found = described(kind, low, high)
    assert (found["minValues"]["c"], found["maxValues"]["c"]) == expected
    assert (found["numRecords"], found["nullCount"]) == (4, {"c": 1})


def test_a_decimal_keeps_its_digits() -> None:
    schema = table_schema(schema_text([("c", "decimal(38,2)")]))
    stats = ColumnStats(1, 10, 3, 1, "-1.50", "123456789012345678901234567890.25", None)
    text = stats_of(DataFile("a", 4, 9, 0, stats=(stats,)), schema)
    assert '"c":123456789012345678901234567890.25' in text
    assert '"c":123456789012345678901234567890.25' in loosened(text, 4)


@pytest.mark.parametrize(
    ("kind", "low"), [("boolean", "true"), ("binary", "00"), ("double", "inf")]
)
def test_values_without_bounds(kind: str, low: str) -> None:
    assert described(kind, low, low)["minValues"] == {}


def test_no_bounds_where_there_is_a_nan() -> None:
    assert described("double", "1", "2", nan=True)["maxValues"] == {}
    assert described("double", "1", "2", nan=None)["maxValues"] == {}, "not known of others' files"


def test_loosened() -> None:
    found = json.loads(loosened('{"numRecords":4,"minValues":{"c":1}}', 4))
    assert found == {"numRecords": 4, "minValues": {"c": 1}, "tightBounds": False}
    assert json.loads(loosened(None, 7)) == {"numRecords": 7, "tightBounds": False}
    assert json.loads(loosened("no", 7))["numRecords"] == 7


def test_only_the_first_columns() -> None:
    schema = table_schema(schema_text([(f"c{at}", "long") for at in range(40)]))
    stats = tuple(ColumnStats(at + 1, 1, 1, 0, "1", "1", None) for at in range(40))
    found = json.loads(stats_of(DataFile("a", 1, 9, 0, stats=stats), schema))
    assert list(found["nullCount"]) == [f"c{at}" for at in range(32)]


def test_fields_of_structs() -> None:
    field = {"name": "x", "type": "long", "nullable": True, "metadata": {}}
    schema = table_schema(schema_text([("s", {"type": "struct", "fields": [field]})]))
    stats = ColumnStats(2, 1, 1, 0, "1", "2", None)
    found = json.loads(stats_of(DataFile("a", 1, 9, 0, stats=(stats,)), schema))
    assert found["maxValues"] == {"s": {"x": 2}}


def test_what_is_no_json() -> None:
    assert parsed("[1]") == parsed("x") == parsed(None) == {}
