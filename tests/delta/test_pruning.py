"""Files are left out only where it is certain that they hold no row of a condition."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.delta.actions import Add
from penstock.delta.pruning import matching, read_value
from penstock.delta.schema import table_schema
from penstock.sql.predicate import of_where
from tests.delta.tables import schema_text

SCHEMA = table_schema(
    schema_text(
        [
            ("id", "long"),
            ("day", "date"),
            ("name", "string"),
            ("price", "decimal(10,2)"),
            ("at", "timestamp"),
            ("f", "double"),
            (
                "s",
                {
                    "type": "struct",
                    "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}],
                },
            ),
        ]
    )
)


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


def kept(add: Add, where: str) -> bool:
    return matching([add], SCHEMA, of_where(where)) == (add,)


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
def test_bounds(where: str, expected: bool) -> None:
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


def test_fields_of_structs() -> None:
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
    assert kept(Add("a", (("day", "2026-05-01"),), 1, 1), where) is expected


def test_a_partition_of_null() -> None:
    add = Add("a", (("day", None),), 1, 1)
    assert kept(add, "day IS NULL")
    assert not kept(add, "day = DATE '2026-05-01'")


def test_values_that_cannot_be_read() -> None:
    assert read_value("date", "+12345-01-01") is None
    assert read_value("blob", "x") is None
    assert read_value("int64", "7") == 7
