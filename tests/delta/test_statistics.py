"""Statistics as the log has them, from a file's bounds as a lake's catalog has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.delta.actions import Add, Metadata
from penstock.delta.schema import table_schema
from penstock.delta.statistics import loosened, matching, parsed, read_value, stats_of
from penstock.lakes.format.files import ColumnStats, DataFile
from penstock.sql.predicate import of_where
from tests.delta.tables import metadata, schema_text


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


STRUCT = {
    "type": "struct",
    "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}],
}
FIELDS = [
    ("id", "long"),
    ("day", "date"),
    ("name", "string"),
    ("price", "decimal(10,2)"),
    ("at", "timestamp"),
    ("f", "double"),
    ("s", STRUCT),
]
TABLE = metadata(schema_text=schema_text(FIELDS))
BY_DAY = metadata(schema_text=schema_text(FIELDS), partition_by=("day",))


def stats(low: Any, high: Any, nulls: int = 0, column: str = "id", rows: int = 5) -> Add:
    text = json.dumps(
        {
            "numRecords": rows,
            "minValues": {column: low},
            "maxValues": {column: high},
            "nullCount": {column: nulls},
        }
    )
    return Add("a", (), 1, 1, text)


def kept(add: Add, where: str, table: Metadata = TABLE) -> bool:
    return matching([add], table, of_where(where)) == (add,)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 4", False), ("id = 5", True), ("id = 10", True), ("id = 11", False),
        ("id < 5", False), ("id <= 5", True), ("id > 10", False), ("id >= 10", True),
        ("id IN (1, 2)", False), ("id IN (1, 7)", True),
        ("id < 5 OR id > 10", False), ("id < 5 OR id = 7", True),
        ("id > 3 AND id < 5", False), ("ID = 4", False),
        ("id IS NULL", False), ("id IS NOT NULL", True), ("id <> 7", True),
        ("length(name) = 4", True), ("name = 'x'", True), ("other = 4", True),
    ],
)  # fmt: skip
def test_bounds_exclude_files(where: str, expected: bool) -> None:
    assert kept(stats(5, 10), where) is expected


def test_a_file_of_nulls() -> None:
    nulls = Add("a", (), 1, 1, json.dumps({"numRecords": 5, "nullCount": {"id": 5}}))
    assert not kept(nulls, "id = 4")
    assert kept(nulls, "id IS NULL")


def test_no_statistics() -> None:
    assert kept(Add("a", (), 1, 1), "id = 4")
    assert kept(Add("a", (), 1, 1, "no JSON"), "id = 4")


def test_times_of_other_writers_are_cut_to_milliseconds() -> None:
    add = stats("2026-05-01T10:00:00.000Z", "2026-05-01T11:00:00.123Z", column="at")
    assert kept(add, "at = TIMESTAMP '2026-05-01 11:00:00.1235+00:00'")
    assert not kept(add, "at > TIMESTAMP '2026-05-01 11:00:00.2+00:00'")


def test_a_nan_is_above_all_bounds() -> None:
    assert kept(stats(1.0, 2.0, column="f"), "f > 5")
    assert not kept(stats(1.0, 2.0, column="f"), "f = 5")


def test_text_and_its_beginning() -> None:
    add = stats("beech", "birch", column="name")
    assert not kept(add, "name = 'ash'")
    assert not kept(add, "name LIKE 'a%'")
    assert kept(add, "name LIKE 'bi%'")


def test_fields_of_structs_pruning() -> None:
    text = json.dumps({"minValues": {"s": {"x": 3}}, "maxValues": {"s": {"x": 4}}})
    add = Add("a", (), 1, 1, text)
    assert not kept(add, "s.x = 5")
    assert kept(add, "s.x = 4")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("day = DATE '2026-05-01'", True),
        ("day = DATE '2026-05-02'", False),
        ("day <> DATE '2026-05-01'", False),
        ("day <> DATE '2026-05-02'", True),
        ("day < DATE '2026-05-01'", False),
        ("day IS NULL", False),
    ],
)
def test_partition_values(where: str, expected: bool) -> None:
    assert kept(Add("a", (("day", "2026-05-01"),), 1, 1), where, BY_DAY) is expected


def test_a_partition_of_null() -> None:
    add = Add("a", (("day", None),), 1, 1)
    assert kept(add, "day IS NULL", BY_DAY)
    assert not kept(add, "day = DATE '2026-05-01'", BY_DAY)


def test_values_that_cannot_be_read() -> None:
    assert read_value("date", "+12345-01-01") is None
    assert read_value("blob", "x") is None
    assert read_value("int64", "7") == 7


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_the_end_of_the_year_9999(zone: str, kind: str) -> None:
    """The usual open end of a validity; a bound may be cut to milliseconds."""
    suffix = "Z" if kind == "timestamp" else ""
    add = stats(f"2026-05-01T10:00:00{suffix}", f"9999-12-31T23:59:59.999{suffix}", column="v")
    table = metadata(schema_text=schema_text([("v", kind)]))
    for where, expected in (
        ("v > TIMESTAMP '2024-01-01 00:00:00'", True),
        ("v = TIMESTAMP '9999-12-31 23:59:59.999999'", True),
        ("v >= TIMESTAMP '9999-12-31 12:00:00'", True),
        ("v < TIMESTAMP '2024-01-01 00:00:00'", False),
    ):
        predicate = of_where(where, zone=zone)
        assert bool(matching([add], table, predicate)) is expected, where


def mapped(fields: list[tuple[str, Any, str]], **changes: Any) -> Metadata:
    """A table with column mapping by name; each field has a physical name."""
    columns = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": physical},
        }
        for name, kind, physical in fields
    ]
    text = json.dumps({"type": "struct", "fields": columns})
    options = {"delta.columnMapping.mode": "name"}
    return metadata(schema_text=text, options=options, **changes)


def test_statistics_of_a_mapped_table_have_physical_names() -> None:
    swapped = mapped([("a", "long", "b"), ("b", "long", "a")])
    text = {"minValues": {"a": 1, "b": 100}, "maxValues": {"a": 2, "b": 200}, "numRecords": 2}
    add = Add("f", (), 1, 1, json.dumps({**text, "nullCount": {"a": 0, "b": 2}}))
    assert kept(add, "a IS NULL", swapped)
    assert not kept(add, "b IS NULL", swapped)
    add = Add("f", (), 1, 1, json.dumps(text))
    assert kept(add, "a = 100", swapped)
    assert not kept(add, "a = 1", swapped)
    assert not kept(add, "b = 100", swapped)


def test_a_new_column_with_the_old_name_of_another_has_no_statistics() -> None:
    table = mapped([("old_a", "long", "a"), ("a", "long", "col-1"), ("A2", "long", "A")])
    low, high = {"a": 1}, {"a": 2}
    text = json.dumps({"minValues": low, "maxValues": high, "nullCount": {"a": 0}, "numRecords": 2})
    add = Add("f", (), 1, 1, text)
    assert kept(add, "a = 1000", table)
    assert kept(add, "a IS NULL", table)
    assert kept(add, "A2 = 1000", table)
    assert not kept(add, "old_a = 1000", table)


def test_fields_of_a_mapped_table() -> None:
    inner = [("x", "y"), ("y", "x")]
    fields = [
        {
            "name": name,
            "type": "long",
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": physical},
        }
        for name, physical in inner
    ]
    table = mapped([("s", {"type": "struct", "fields": fields}, "c")])
    bounds = {"c": {"x": 1, "y": 100}}
    add = Add("f", (), 1, 1, json.dumps({"minValues": bounds, "maxValues": bounds}))
    assert kept(add, "s.x = 100", table)
    assert not kept(add, "s.x = 1", table)


def test_partition_values_of_a_mapped_table_have_physical_names() -> None:
    table = mapped([("k", "string", "v"), ("v", "string", "k")], partition_by=("v",))
    text = json.dumps({"minValues": {"v": "1"}, "maxValues": {"v": "1"}})
    add = Add("f", (("k", "9"),), 1, 1, text)
    assert kept(add, "k = '1'", table)
    assert not kept(add, "k = '9'", table)
    assert kept(add, "v = '9'", table)
    assert not kept(add, "v = '1'", table)
