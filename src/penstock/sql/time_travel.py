"""Time travel in a query's text: ``t AT (VERSION => 3)``, ``t VERSION AS OF 3``, ..."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.errors import UnsupportedFeature
from penstock.lazy import exp
from penstock.sql.text import Unreadable, parse_query
from penstock.sql.tokens import (
    ARGUMENT,
    MARKER,
    NAME,
    NUMBER,
    STRING,
    WORD,
    Token,
    closing,
    may_be_alias,
)

_KINDS = {
    "VERSION": "version",
    "SYSTEM_VERSION": "version",
    "TIMESTAMP": "timestamp",
    "SYSTEM_TIME": "timestamp",
}
_FIRST = frozenset({"AT", "FOR", *_KINDS})
_OPERATORS = ("+", "-", "*", "/", "%", "||")
_VALUES = (ARGUMENT, MARKER, NUMBER, STRING)
_TYPES = ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE")
_UNITS = frozenset(
    f"{unit}{plural}"
    for unit in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH")
    for plural in ("", "S")
) | {"QUARTER", "QUARTERS", "YEAR", "YEARS"}


@dataclass(frozen=True, slots=True)
class Clause:
    """The clause from token ``first`` to token ``last``; ``value`` are the tokens of its value.

    ``kind`` is ``version`` or ``timestamp``; another word of an AT as it is written.
    """

    kind: str
    first: int
    last: int
    value: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Travel:
    """``AT (VERSION => 3)`` or ``TIMESTAMP AS OF '...'``. ``parameter`` is the name of a marker.

    Of what is neither a literal nor a marker, ``node`` is the tree and ``text`` as it was written.
    """

    kind: str  # "version" or "timestamp"
    value: str | None = None
    parameter: str | None = None
    node: exp.Expr | None = field(default=None, compare=False, repr=False)
    text: str = ""

    @property
    def is_version(self) -> bool:
        """Return whether it names a version that needs no computing."""
        return self.kind == "version" and self.node is None


def find_clauses(tokens: Sequence[Token]) -> Iterator[Clause]:
    """Every clause that may follow a table's name."""
    for index, token in enumerate(tokens):
        if token.kind == WORD and token.upper in _FIRST and index:
            clause = _at(tokens, index) or _as_of(tokens, index)
            if clause is not None:
                yield clause


def travel(clause: Clause, text: str, reference: str) -> Travel:
    """Return what a clause of ``text`` says of the table that is written as ``reference``.

    Raises UnsupportedFeature for what names no snapshot.
    """
    written = text[clause.value[0].start : clause.value[-1].end]
    if clause.kind not in _KINDS.values():
        raise UnsupportedFeature(
            f"AT ({clause.kind} => {written}) is not understood",
            hint="write AT (VERSION => 3)",
            data={"reference": reference},
        )
    plain = without_type(clause.value)
    if len(plain) == 1 and plain[0].kind == MARKER:
        return Travel(clause.kind, parameter=plain[0].value)
    if len(plain) == 1 and plain[0].kind in {NUMBER, STRING}:
        return Travel(clause.kind, value=plain[0].value)
    node = expression(written)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return Travel(clause.kind, value=node.this.name)
    if node is None or node.find(exp.Column, exp.Query, exp.AggFunc) is not None:
        raise UnsupportedFeature(
            f"{written} names a column or asks a query",
            hint="a snapshot is a number, a time, a :marker or an expression of these",
            data={"reference": reference},
        )
    return Travel(clause.kind, node=node, text=written)


def without_type(value: Sequence[Token]) -> Sequence[Token]:
    """``TIMESTAMP '...'`` and ``'...'::TIMESTAMP`` without their types."""
    typed = len(value) == 2 and value[0].upper in _TYPES
    casts = [at for at, token in enumerate(value) if token.text == "::"]
    plain = value[1:] if typed else value
    return plain[: casts[0]] if casts and not typed else plain


def expression(text: str) -> exp.Expr | None:
    """The tree of what a moment or version is computed by; ``None`` where only Spark reads it."""
    try:
        return parse_query(text)
    except Unreadable:
        return None


def _words(tokens: Sequence[Token], start: int, count: int) -> tuple[str, ...]:
    return tuple(token.upper for token in tokens[start : start + count])


def _at(tokens: Sequence[Token], index: int) -> Clause | None:
    """``AT (VERSION => n)``."""
    said = _words(tokens, index, 4)
    if len(said) < 4 or said[:2] != ("AT", "(") or said[3] != "=>":
        return None
    last = closing(tokens, index + 1)
    if last is None or last == index + 4:
        return None
    return Clause(_KINDS.get(said[2], said[2]), index, last, tuple(tokens[index + 4 : last]))


def _as_of(tokens: Sequence[Token], index: int) -> Clause | None:
    """``[FOR] VERSION AS OF n``."""
    start = index + (_words(tokens, index, 1) == ("FOR",))
    said = _words(tokens, start, 3)
    if len(said) < 3 or said[0] not in _KINDS or said[1:] != ("AS", "OF"):
        return None
    if start == index and tokens[index - 1].upper == "FOR":
        return None
    end = _expression_end(tokens, start + 3)
    if end is None:
        return None
    return Clause(_KINDS[said[0]], index, end - 1, tuple(tokens[start + 3 : end]))


def _expression_end(tokens: Sequence[Token], at: int) -> int | None:
    """Past the expression that begins at ``at``; ``None`` where none does."""
    end = _operand_end(tokens, at)
    while end is not None and _words(tokens, end, 1) == ("::",):
        end = _operand_end(tokens, end + 1)
    if end is None or end >= len(tokens) or tokens[end].text not in _OPERATORS:
        return end
    return _expression_end(tokens, end + 1)


def _operand_end(tokens: Sequence[Token], at: int) -> int | None:
    """Past a literal, a marker, a name, a call or what is in brackets."""
    token, following = (tokens[i] if i < len(tokens) else _NOTHING for i in (at, at + 1))
    word, end = token.upper, at + 1
    if word in {"-", "+"} or (_is_name(token) and following.text == "."):
        return _operand_end(tokens, at + (1 if word in {"-", "+"} else 2))
    if word == "INTERVAL":  # INTERVAL 1 DAY
        unit = _operand_end(tokens, at + 1)
        has_unit = unit is not None and unit < len(tokens) and tokens[unit].upper in _UNITS
        return unit + 1 if unit is not None and has_unit else unit
    if word == "(" or (_is_name(token) and following.text == "("):
        close = closing(tokens, at if word == "(" else at + 1)
        return None if close is None else close + 1
    if word in _TYPES and following.kind in _VALUES:
        end += 1
    return end if token.kind in _VALUES or _is_name(token) else None


_NOTHING = Token("end", "", 0)


def _is_name(token: Token) -> bool:
    return token.kind in {NAME, WORD} and may_be_alias(token)
