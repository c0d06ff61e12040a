"""Tests ``model/script/arguments.py`` (every type)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from penstock.errors import ArgumentError
from penstock.model.query.query import read_query
from penstock.model.script.arguments import Argument, bind, declared, text_of, type_of, unknown
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import Names

PATH = Path("m.sql")


DAILY = PartitionSpec("daily", tz="America/New_York")


def arguments(text: str, partition: PartitionSpec | None = None) -> dict[str, Argument]:
    found, findings = declared(text, PATH, partition=partition)
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
        ("-- $x (text[])", "text[]", None),
        ("-- $x (INTEGER [ ]) = [1, 2]", "int[]", "[1, 2]"),
        ('-- $x (json) = {"a": [1]}', "json", '{"a": [1]}'),
        ("-- $x (bytea)", "blob", None),
        ("-- $x (s3object)", "s3object", None),
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
        ("-- $x (struct)", "unknown type 'struct'"),
        ("-- $x (int[][])", "unknown type 'int[][]'"),
        ("-- $x (json[])", "unknown type 'json[]'"),
        ("-- $x (int[]) = [1, null]", "not a valid int[]: an element is null"),
        ("-- $partition_start (int)", "is a time, and int is not a type of times"),
        ("-- $x (txt)", "unknown type 'txt'"),
        ("-- $x text", "declares no argument"),
        ("-- $x: int", "declares no argument"),
        ("-- $x (int) = five", "not a valid int"),
        ("-- $x (int)\n-- $x (text)", "declared twice"),
    ],
)
def test_wrong_declarations(line: str, message: str) -> None:
    _, (finding,) = declared(line, PATH, partition=None)
    assert finding.severity == "error"
    assert message in finding.message
    assert finding.hint


@pytest.mark.parametrize(
    "line", ["-- $x is the day", "SELECT $x (text)", "-- costs $5", "-- a $x (int)"]
)
def test_what_declares_nothing(line: str) -> None:
    assert arguments(line) == {}


def test_partition_is_declared_by_itself() -> None:
    assert arguments("", DAILY) == {
        "partition": Argument("partition", "text", automatic=True),
        "partition_start": Argument("partition_start", "timestamptz", automatic=True),
        "partition_end": Argument("partition_end", "timestamptz", automatic=True),
    }
    own = arguments("-- $partition (date)", DAILY)["partition"]
    assert (own.type, own.automatic) == ("date", False)


def test_a_dynamic_partition_has_no_bounds() -> None:
    dynamic = PartitionSpec("dynamic", key="$.a")
    assert list(arguments("", dynamic)) == ["partition"]
    (own,) = [a for a in arguments("-- $partition_end (text)", dynamic).values() if a.location]
    with pytest.raises(ArgumentError, match="a dynamic partition has no bounds"):
        bind([own], {}, partition="x", spec=dynamic)


NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("declaration", "start", "end"),
    [
        ("", datetime(2026, 3, 8, tzinfo=NEW_YORK), datetime(2026, 3, 9, tzinfo=NEW_YORK)),
        ("timestamp", datetime.fromisoformat("2026-03-08"), datetime.fromisoformat("2026-03-09")),
        ("date", date(2026, 3, 8), date(2026, 3, 9)),
        ("text", "2026-03-08T00:00:00-05:00", "2026-03-09T00:00:00-04:00"),
    ],
)
def test_bounds_of_the_slice(declaration: str, start: object, end: object) -> None:
    """On that day New York's clocks are put forward: it has 23 hours."""
    names = ("partition_start", "partition_end")
    lines = [f"-- ${name} ({declaration})" for name in names if declaration]
    bound = bind(
        list(arguments("\n".join(lines), DAILY).values()), {}, partition="2026-03-08", spec=DAILY
    )
    assert [bound[name] for name in names] == [start, end]


def test_the_bounds_of_an_hour_are_not_dates() -> None:
    hourly = PartitionSpec("hourly")
    (own,) = arguments("-- $partition_end (date)").values()
    with pytest.raises(ArgumentError, match=r"is 2026-03-08T11:00:00\+00:00, which is not a date"):
        bind([own], {}, partition="2026-03-08T10", spec=hourly)


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
        ("decimal(4,2)", "-99.9900", Decimal("-99.9900")),
        ("decimal(3)", "1.2e2", Decimal("1.2e2")),
        ("decimal(2,2)", "0.00", Decimal("0.00")),
        ("boolean", "TRUE", True),
        ("boolean", "0", False),
        ("date", "2026-05-16", date(2026, 5, 16)),
        ("timestamp", "2026-05-16 09:30:00", datetime.fromisoformat("2026-05-16T09:30")),
        ("timestamptz", "2026-05-16T09:30:00Z", datetime(2026, 5, 16, 9, 30, tzinfo=UTC)),
        ("time", "09:30", "09:30:00"),
        ("time", "09:30:00.250", "09:30:00.25"),
        ("uuid", "550E8400E29B41D4A716446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("json", '{"a": [1, null]}', '{"a": [1, null]}'),
        ("blob", "00ff", b"\x00\xff"),
        ("blob", "X'00FF'", b"\x00\xff"),
        ("blob", "0x", b""),
        ("interval", "1 Day -2 hours 1.5 seconds", "1 day -2 hours 1.5 seconds"),
        ("s3object", "s3://b/a b.csv", "s3://b/a b.csv"),
        ("s3object", '{"s3": "dir/a.csv", "storage": "b"}', "s3://b/dir/a.csv"),
        ("text[]", '["a\'b", "c"]', ["a'b", "c"]),
        ("int[]", "[]", []),
        ("bigint[]", "[3000000000]", [3000000000]),
        ("double[]", "[1.5, 2]", [1.5, 2.0]),
        ("boolean[]", "[true, 0]", [True, False]),
        ("date[]", '["2026-05-16"]', [date(2026, 5, 16)]),
        ("timestamp[]", '["2026-05-16T09:30"]', ["2026-05-16 09:30:00"]),
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
        ("decimal", "1" * 39),
        ("decimal(10,2)", "1.505"),
        ("decimal(4,2)", "123.45"),
        ("decimal(3)", "0.5"),
        ("decimal(3)", "1e3"),
        ("decimal(38)", "1e999999999"),
        ("boolean", "maybe"),
        ("date", "2026-02-30"),
        ("date", "x' OR '1'='1"),
        ("timestamp", "2026-05-16T09:30:00Z"),
        ("timestamptz", "2026-05-16T09:30:00"),
        ("time", "25:00"),
        ("time", "09:30:00+02:00"),
        ("uuid", "550e8400"),
        ("json", "{a: 1}"),
        ("json", "NaN"),
        ("blob", "xyz"),
        ("blob", "abc"),
        ("interval", "tomorrow"),
        ("interval", "1 day, 2 hours"),
        ("interval", "1.5 days"),
        ("s3object", "/etc/passwd"),
        ("s3object", "s3://b/*.csv"),
        ("s3object", '{"s3": "a.csv"}'),
        ("int[]", "1, 2"),
        ("int[]", "[1, null]"),
        ("int[]", "[[1]]"),
        ("int[]", "[3000000000]"),
        ("int[]", '{"a": 1}'),
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


def test_a_decimal_is_never_rounded() -> None:
    with pytest.raises(ArgumentError) as error:
        bind([Argument("rate", "decimal(10,2)")], {"rate": "1.505"})
    assert error.value.message == (
        "argument rate: '1.505' is not a valid decimal(10,2): "
        "it has 3 digits behind the point, and the type 2"
    )
    assert error.value.hint == "write it like rate=0.00"


def test_a_name_that_no_script_declares() -> None:
    known = ["cutoff"]
    unknown({"cutoff": "x"}, known)
    with pytest.raises(ArgumentError, match="'cutof'") as error:
        unknown({"cutof": "x"}, known)
    assert error.value.hint == "did you mean cutoff?"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("STRING", "text"),
        ("numeric(3,1)", "decimal(3,1)"),
        ("struct", None),
        ("decimal(39)", None),
        ("decimal(2,3)", None),
        ("real[]", "double[]"),
    ],
)
def test_type_names(written: str, name: str | None) -> None:
    found = type_of(written)
    assert (None if found is None else found.name) == name


@pytest.mark.parametrize(
    ("type_name", "value", "text"),
    [
        ("int", None, None),
        ("text", "x", "x"),
        ("double", 1.5, "1.5"),
        ("boolean", True, "true"),
        ("json", {"a": ["é"]}, '{"a": ["é"]}'),
        ("text[]", ["a", "b"], '["a", "b"]'),
        ("s3object", {"s3": "k", "storage": "b"}, '{"s3": "k", "storage": "b"}'),
    ],
)
def test_values_of_a_payload(type_name: str, value: object, text: str | None) -> None:
    assert text_of(Argument("x", type_name), value) == text


def test_an_object_for_a_plain_argument() -> None:
    with pytest.raises(ArgumentError, match=r"argument x \(int\) is a list in the payload"):
        text_of(Argument("x", "int"), [1])
