from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.errors import ArgumentError
from penstock.model.arguments import Argument, base_type, bind, declared, unknown
from penstock.model.names import Names
from penstock.model.query import read_query

PATH = Path("m.sql")


def arguments(text: str, *, partitioned: bool = False) -> dict[str, Argument]:
    found, findings = declared(text, PATH, partitioned=partitioned)
    assert findings == ()
    return {argument.name: argument for argument in found}


@pytest.mark.parametrize(
    ("line", "type_name", "default"),
    [
        ("-- $x (text)", "text", None),
        ("-- $x (int) = 5", "int", "5"),
        ("--$x(bigint)=5", "bigint", "5"),
        ("# $x (double) = 1.5", "double", "1.5"),
        ("// $x (boolean) = true", "boolean", "true"),
        ("-- $x (date) = 2026-01-01", "date", "2026-01-01"),
        ("-- $x (decimal(10,2)) = 1.50", "decimal(10,2)", "1.50"),
        ("-- $x (numeric(10, 2))", "decimal(10,2)", None),
        ("-- $x (VARCHAR) = 'a b'", "text", "'a b'"),
        ("-- $x (integer)", "int", None),
        ("   -- $x (timestamp)  ", "timestamp", None),
    ],
)
def test_declarations(line: str, type_name: str, default: str | None) -> None:
    argument = arguments(f"-- pipeline\n{line}\nSELECT $x")["x"]
    assert (argument.type, argument.default) == (type_name, default)
    assert argument.location is not None
    assert argument.location.line == 2


def test_a_wrong_default_is_reported_once() -> None:
    text = "-- $x (int) = five\nSELECT $x"
    _, found = read_query(text, PATH, names=Names(("main",)))
    assert [one.message for one in found] == ["argument x: 'five' is not a valid int"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-- $x (s3object)", "unknown type 's3object'"),
        ("-- $x (txt)", "unknown type 'txt'"),
        ("-- $x text", "declares no argument"),
        ("-- $x: int", "declares no argument"),
        ("-- $x (int) = five", "not a valid int"),
        ("-- $x (int)\n-- $x (text)", "declared twice"),
    ],
)
def test_wrong_declarations(line: str, message: str) -> None:
    _, (finding,) = declared(line, PATH, partitioned=False)
    assert finding.severity == "error"
    assert message in finding.message
    assert finding.hint


@pytest.mark.parametrize(
    "line", ["-- $x is the day", "SELECT $x (text)", "-- costs $5", "-- a $x (int)"]
)
def test_what_declares_nothing(line: str) -> None:
    assert arguments(line) == {}


def test_partition_is_declared_by_itself() -> None:
    assert arguments("", partitioned=True) == {
        "partition": Argument("partition", "text", automatic=True)
    }
    own = arguments("-- $partition (date)", partitioned=True)["partition"]
    assert (own.type, own.automatic) == ("date", False)


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("text", "x' OR '1'='1", "x' OR '1'='1"),
        ("text", "", ""),
        ("int", "-5", -5),
        ("bigint", "3000000000", 3000000000),
        ("double", "1e3", 1000.0),
        ("decimal", "1.50", Decimal("1.50")),
        ("decimal(10,2)", "1.50", Decimal("1.50")),
        ("boolean", "TRUE", True),
        ("boolean", "0", False),
        ("date", "2026-05-16", date(2026, 5, 16)),
        ("timestamp", "2026-05-16 09:30:00", datetime.fromisoformat("2026-05-16T09:30")),
        ("timestamptz", "2026-05-16T09:30:00Z", datetime(2026, 5, 16, 9, 30, tzinfo=UTC)),
    ],
)
def test_values_are_typed(type_name: str, text: str, value: object) -> None:
    found = bind([Argument("x", type_name)], {"x": text})["x"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("int", "1.5"),
        ("int", "3000000000"),
        ("bigint", "x"),
        ("bigint", str(2**63)),
        ("double", "abc"),
        ("decimal", "NaN"),
        ("boolean", "maybe"),
        ("date", "2026-02-30"),
        ("date", "x' OR '1'='1"),
        ("timestamp", "2026-05-16T09:30:00Z"),
        ("timestamptz", "2026-05-16T09:30:00"),
    ],
)
def test_a_wrong_value_names_the_argument(type_name: str, text: str) -> None:
    with pytest.raises(ArgumentError, match="argument day") as error:
        bind([Argument("day", type_name)], {"day": text})
    assert error.value.hint is not None
    assert "day=" in error.value.hint


def test_a_missing_value_names_the_argument() -> None:
    (argument,) = arguments("-- $cutoff (date)").values()
    with pytest.raises(ArgumentError, match=r"argument cutoff \(date\) has no value") as error:
        bind([argument], {})
    assert error.value.hint == "give it: --arg cutoff=VALUE"
    assert error.value.location == argument.location


@pytest.mark.parametrize(
    ("default", "value"), [("'it''s'", "it's"), ("plain", "plain"), ("null", None), ("''", "")]
)
def test_defaults(default: str, value: str | None) -> None:
    assert bind([Argument("x", "text", default)], {}) == {"x": value}


@pytest.mark.parametrize(
    ("given", "partition", "value"),
    [
        ({}, "2013-01-02", date(2013, 1, 2)),
        ({"partition": "2013-01-03"}, "2013-01-02", date(2013, 1, 3)),
    ],
)
def test_partition_is_bound_with_its_type(
    given: dict[str, str], partition: str, value: date
) -> None:
    assert bind([Argument("partition", "date")], given, partition=partition) == {"partition": value}


def test_the_automatic_partition_may_be_missing() -> None:
    assert bind([Argument("partition", "text", automatic=True)], {}) == {"partition": None}


def test_what_others_declare_is_left_alone() -> None:
    assert bind([Argument("x", "int", "1")], {"y": "2"}) == {"x": 1}


def test_the_partition_is_never_asked_for_as_an_argument() -> None:
    with pytest.raises(ArgumentError, match=r"partition \(text\) has no value") as caught:
        bind([Argument("partition", "text")], {})
    assert "-- partitioned daily" in (caught.value.hint or "")


def test_a_name_that_no_script_declares() -> None:
    known = ["cutoff"]
    unknown({"cutoff": "x"}, known)
    with pytest.raises(ArgumentError, match="'cutof'") as error:
        unknown({"cutof": "x"}, known)
    assert error.value.hint == "did you mean cutoff?"


@pytest.mark.parametrize(
    ("written", "name"), [("STRING", "text"), ("numeric(3,1)", "decimal"), ("struct", None)]
)
def test_type_names(written: str, name: str | None) -> None:
    assert base_type(written) == name
