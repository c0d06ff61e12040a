"""The text of a macro's definition with the arguments in place, all else as it was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from penstock.errors import UnsupportedFeature
from penstock.sql.identifiers import fold
from penstock.sql.tokens import (
    ARGUMENT,
    MARKER,
    NAME,
    NO_VALUE,
    NUMBER,
    STRING,
    WORD,
    Token,
    depth_of,
    tokenize,
)

_KEYWORDS = frozenset({"INTERVAL", "LATERAL", "DATE", "TIMESTAMP", "CAST"})
_NAMED = frozenset({":=", "=>"})  # what follows the name of an argument


def filled(sql: str, values: Mapping[str, str], dialect: str) -> str:
    """``sql`` with a text in place of each parameter; ``values`` are by name, folded.

    Names of columns after a dot, of aliases, of named arguments and of fields stay. Raises
    UnsupportedFeature for a lambda whose parameter is called like one of them.
    """
    tokens = tokenize(sql, dialect)
    parts: list[str] = []
    position = 0
    openings: list[int] = []
    for at, token in enumerate(tokens):
        if depth_of(token) > 0:
            openings.append(at)
        elif depth_of(token) < 0 and openings:
            openings.pop()
        value = _value(tokens, at, values, openings[-1] if openings else None)
        if value is not None:
            parts += [sql[position : token.start], value]
            position = token.end
    return "".join([*parts, sql[position:]])


def bare(value: str, dialect: str) -> str:
    """An argument as it may stand in an expression: in brackets, unless it is one constant."""
    tokens = tokenize(value, dialect)
    constant = len(tokens) == 1 and tokens[0].kind in {STRING, NUMBER, ARGUMENT}
    return value if constant else f"({value})"


def _value(
    tokens: Sequence[Token], at: int, values: Mapping[str, str], opening: int | None
) -> str | None:
    """Return what stands for the word at ``at``, in the bracket at ``opening``; None where it
    stays.
    """
    token = tokens[at]
    value = values.get(fold(token.value)) if token.kind in {NAME, WORD, MARKER} else None
    if value is None:
        return None
    inside = "" if opening is None else tokens[opening].text
    if token.kind == MARKER:  # the end of a slice, [a:b]
        return f":{value}" if inside == "[" else None
    before = tokens[at - 1] if at else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if after is not None and _is_lambda(tokens, at, after):
        raise UnsupportedFeature(
            f"a lambda's parameter is called {token.text}, like the macro's own",
            hint="give one of them another name",
        )
    stays = before is not None and (before.text == "." or before.upper == "AS")
    stays = stays or _is_named(tokens, at)
    stays = stays or (opening is not None and _names_columns(tokens, opening))
    if after is not None:
        stays = stays or after.text == "(" or after.text in _NAMED
        stays = stays or (after.text == ":" and inside == "{")
        stays = stays or (after.text == "." and _is_alias(tokens, token))
    return None if stays else value


def _is_named(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the word is a name that is given without AS: ``FROM t a``,
    ``(SELECT 1) a``.
    """
    if at < 2:
        return False
    before, ahead = tokens[at - 1], tokens[at - 2]
    if before.text == ")":
        return True
    value = before.kind in {NAME, WORD} and before.upper not in NO_VALUE | _KEYWORDS
    return value and ahead.upper in {"FROM", "JOIN", "SELECT", ",", "."}


def _names_columns(tokens: Sequence[Token], opening: int) -> bool:
    """Return whether a bracket follows the name of a table with its columns: ``t(a, b)``."""
    if opening < 2 or tokens[opening - 1].kind not in {NAME, WORD}:
        return False
    before = tokens[opening - 2]
    if before.text == ")" or before.upper in {"AS", "WITH", "RECURSIVE"}:
        return tokens[opening - 1].upper not in NO_VALUE
    return (
        opening > 2
        and before.kind in {NAME, WORD}
        and tokens[opening - 3].upper in {"FROM", "JOIN", ","}
    )


def _is_lambda(tokens: Sequence[Token], at: int, after: Token) -> bool:
    """``x -> x + 1`` or ``lambda x: ...``; what leads to a field of JSON is none."""
    if after.text == "->":
        return at + 2 >= len(tokens) or tokens[at + 2].kind not in {STRING, NUMBER}
    return at > 0 and tokens[at - 1].upper == "LAMBDA" and after.text == ":"


def _is_alias(tokens: Sequence[Token], wanted: Token) -> bool:
    """Return whether a table of the definition is called so."""
    for before, token in pairwise(tokens):
        if token.kind in {NAME, WORD} and fold(token.value) == fold(wanted.value):
            ends = before.text == ")" or (
                before.kind in {NAME, WORD} and before.upper not in NO_VALUE
            )
            if ends or before.upper in {"AS", "FROM", "JOIN"}:
                return True
    return False
