"""The selection language as values: what each text says, and what is wrong with others."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.planning.selectors import (
    Around,
    Complement,
    Hops,
    Intersection,
    Property,
    Selector,
    Union,
    Word,
    parse,
    states_in,
)
from penstock.errors import ArgumentError

A, B, C = Word("a"), Word("b"), Word("c")
FAILED = Property("state", "failed")


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("a", A),
        ("marts/orders.sql", Word("marts/orders.sql")),
        ("lake.main.orders", Word("lake.main.orders")),
        ("raw/*", Word("raw/*")),
        ("s3://bucket/x.csv", Word("s3://bucket/x.csv")),
        ("tag:nightly", Property("tag", "nightly")),
        ("tag:team/*", Property("tag", "team/*")),
        ("+a", Hops(A, None, 0)),
        ("a+", Hops(A, 0, None)),
        ("+a+", Hops(A, None, None)),
        ("2+a", Hops(A, 2, 0)),
        ("a+1", Hops(A, 0, 1)),
        ("1+a+2", Hops(A, 1, 2)),
        ("0+a+0", Hops(A, 0, 0)),
        ("1+", Hops(Word("1"), 0, None)),
        ("+2013", Hops(Word("2013"), None, 0)),
        ("1+2013", Hops(Word("2013"), 1, 0)),
        ("@a", Around(A)),
        ("state:failed+", Hops(FAILED, 0, None)),
        ("+tag:x+1", Hops(Property("tag", "x"), None, 1)),
        ("a b", Union((A, B))),
        ("  a \t b\n", Union((A, B))),
        ("a|b", Union((A, B))),
        ("a | b", Union((A, B))),
        ("a,b", Intersection((A, B))),
        ("a, b", Intersection((A, B))),
        ("a & b,c", Intersection((A, B, C))),
        ("a b,c", Union((A, Intersection((B, C))))),
        ("a+ b", Union((Hops(A, 0, None), B))),
        ("a +b", Union((A, Hops(B, None, 0)))),
        ("^a", Complement(A)),
        ("^ a", Complement(A)),
        ("^^a", A),
        ("^+a", Complement(Hops(A, None, 0))),
        ("(a b),c", Intersection((Union((A, B)), C))),
        ("( a | b ) & c", Intersection((Union((A, B)), C))),
        ("+(a b)+1", Hops(Union((A, B)), None, 1)),
        ("2+(a)", Hops(A, 2, 0)),
        ("@(a b)", Around(Union((A, B)))),
    ],
)
def test_parses(text: str, selector: Selector) -> None:
    assert parse(text) == selector


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty text selects nothing"),
        (" \n", "an empty text selects nothing"),
        ("+", "a name is missing after '+'"),
        ("++", "a name is missing before '+' after '+'"),
        ("@", "a name is missing after '@'"),
        ("^", "a name is missing after '^'"),
        ("+,a", "a name is missing before ',' after '+'"),
        ("a,", "a name is missing after 'a,'"),
        (",a", "a name is missing before ','"),
        ("a||b", "a name is missing before '|' after 'a|'"),
        ("a++", "'+' is not expected after 'a+'"),
        ("a+1+b", "'+' is not expected after 'a+1'"),
        ("a+b", "'b' is not expected after 'a+'"),
        ("a@", "'@' is not expected after 'a'"),
        ("(a", "a parenthesis is not closed after '(a'"),
        ("()", "a name is missing before ')' after '('"),
        ("a)", "')' is not expected after 'a'"),
        ("a(b)", "'(' is not expected after 'a'"),
        ("@a+", "@ selects what is below already, and takes no +"),
        ("@+a", "@ selects what is below already, and takes no +"),
        ("+@a", "a name is missing before '@' after '+'"),
        ("(" * 60 + "a" + ")" * 60, "more than 50 parentheses in a selector"),
        ("tag:", "tag: has no value"),
        ("tag: x", "tag: has no value"),
        ("state:foo", "'foo' is not a state to select by"),
        ("state:FAILED", "'FAILED' is not a state to select by"),
        ("colour:red", "models have no property 'colour' to select by"),
        (":x", "models have no property '' to select by"),
    ],
)
def test_what_is_not_in_the_language(text: str, said: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        parse(text)
    assert raised.value.message == said
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("state:fail", "did you mean state:failed?"),
        ("state:stale", "did you mean state:changed?"),
        ("state:modified", "did you mean state:changed?"),
        ("path:models/a", "write the path alone: models/marts/orders.sql, or marts/ for a folder"),
        ("colour:red", "properties are tag:, owner:, strategy:, state:"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        parse(text)
    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", set()),
        ("tag:state", set()),
        ("state:failed", {"failed"}),
        ("a,+state:failed", {"failed"}),
        ("a ^(@state:missing) state:behind+", {"missing", "behind"}),
        ("+(a b)+", set()),
    ],
)
def test_what_depends_on_states(text: str, words: set[str]) -> None:
    assert states_in(parse(text)) == words


@given(st.text(alphabet="ab1+@,&|^() :*", max_size=12))
def test_a_text_is_read_or_refused(text: str) -> None:
    with suppress(ArgumentError):
        parse(text)
