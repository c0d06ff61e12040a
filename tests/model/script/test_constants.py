from __future__ import annotations

from datetime import date, datetime

import pytest

from penstock.errors import ArgumentError, PartitionError
from penstock.model.script.constants import Bindings, Constant, NotConstant, as_text, read_constant
from penstock.sql.tokens import tokenize

BINDINGS = Bindings("2013-01-02", {"x": "a'b", "n": 3, "d": date(2013, 1, 2), "none": None})


def constant(text: str) -> Constant:
    return read_constant(tokenize(text, "spark"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ("5", 5),
        ("-5", -5),
        ("1.5", 1.5),
        ("true", True),
        ("FALSE", False),
        ("NULL", None),
        ("'{partition}'", "2013-01-02"),
        ("$x", "a'b"),
        ("'data/' || '{partition}' || '.csv'", "data/2013-01-02.csv"),
        ("('a' || ('b' || $n))", "ab3"),
        ("'d=' || $d", "d=2013-01-02"),
        ("'a' || $none", None),
        ("['a', 'b' || 'c']", ["a", "bc"]),
        ("[]", []),
        ("{'a': 'INTEGER', 'b': ['x']}", {"a": "INTEGER", "b": ["x"]}),
        ("MAP {'a': 1}", {"a": 1}),
        ("{a = 1}", {"a": 1}),
        ("/* why */ 'a' -- because\n", "a"),
    ],
)
def test_values(text: str, value: object) -> None:
    assert constant(text).evaluate(BINDINGS) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "`a` is not a constant"),
        ("upper('a')", "not a constant"),
        ("'a' + 'b'", "not a constant"),
        ("'x/{partition}/y'", "concatenate"),
        ("'a' || ", "a value is missing"),
        ("(SELECT 1)", "not a constant"),
        ("{'a'}", "a field is written"),
        ("", "a value is missing"),
    ],
)
def test_what_is_no_constant(text: str, message: str) -> None:
    with pytest.raises(NotConstant, match=message):
        constant(text)


def test_what_a_run_lacks() -> None:
    with pytest.raises(PartitionError):
        constant("'{partition}'").evaluate(Bindings())
    with pytest.raises(ArgumentError, match="argument x"):
        constant("$x").evaluate(Bindings())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.5, "1.5"),
        (datetime.fromisoformat("2013-01-02T03:04"), "2013-01-02 03:04:00"),
        ("x", "x"),
    ],
)
def test_text_of_values(value: object, text: str) -> None:
    assert as_text(value) == text


def test_constants_are_values() -> None:
    assert constant("'a' || '{partition}'") == constant("  'a'||'{partition}' -- x")
    assert len({constant("['a']"), constant("['a']"), constant("{'a': 1}")}) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'data/{partition}.csv'", "data/2013-01-02.csv"),
        ("'{partition}'", "2013-01-02"),
        ("'{partition}/{partition}' || '.csv'", "2013-01-02/2013-01-02.csv"),
        ("['a/{partition}', ('b' || '{partition}x')]", ["a/2013-01-02", "b2013-01-02x"]),
        ("'plain'", "plain"),
        ("$x", "a'b"),
    ],
)
def test_a_path_may_have_the_partition_inside(text: str, value: object) -> None:
    assert read_constant(tokenize(text, "spark"), in_path=True).evaluate(BINDINGS) == value


def test_a_text_with_the_partition_inside_is_as_one_that_is_joined() -> None:
    inside = read_constant(tokenize("'data/{partition}.csv'", "spark"), in_path=True)
    assert inside == constant("'data/' || '{partition}' || '.csv'")
