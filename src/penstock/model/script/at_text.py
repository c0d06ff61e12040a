"""Texts that SQLMesh's ``@`` macros are made of: arguments, lists, functions, parts of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.sql.dialect import DUCKDB, SPARK
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.query.edits import Edit, edited
from penstock.sql.tokens import (
    ARGUMENT,
    NAME,
    NUMBER,
    STRING,
    WORD,
    Token,
    Unclosed,
    closing,
    split_at,
    words,
)

_PLAIN = re.compile(r"\w+")
_IN_TEXT = re.compile(r"@(?:\{\s*(?P<braced>\w+)\s*\}|(?P<bare>[^\W\d]\w*))")
MARKS = {SPARK: "`", DUCKDB: '"'}


class MacroError(Exception):
    """A fault of a macro at ``at``, an offset, and what would be right.

    ``missing`` is the name of a variable that nothing has.
    """

    def __init__(self, message: str, hint: str, at: int = -1, *, missing: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.at = at
        self.missing = missing


def tokens_of(text: str, dialect: str) -> list[Token]:
    """The words of a part of a script. Raises MacroError where a quote or bracket stays open."""
    try:
        return list(words(text, dialect))
    except Unclosed as error:
        raise MacroError(f"`{error.opener}` is never closed in `{text}`", "close it") from None


def arguments(text: str, tokens: Sequence[Token]) -> list[str]:
    """The texts between commas outside of brackets."""
    parts = split_at(tokens, ",") if tokens else []
    return [text[part[0].start : part[-1].end] if part else "" for part in parts]


def unpacked(text: str, dialect: str) -> list[str]:
    """The items of ``[a, b]`` or ``(a, b)``; any other text is one item."""
    tokens = tokens_of(text, dialect)
    if tokens and tokens[0].text in {"[", "("} and closing(tokens, 0) == len(tokens) - 1:
        return arguments(text, tokens[1:-1])
    return [text] if text else []


@dataclass(frozen=True, slots=True)
class Lambda:
    """``x -> body`` or ``(x, y) -> body``."""

    names: tuple[str, ...]
    body: str

    @classmethod
    def of(cls, written: str, dialect: str) -> Lambda | None:
        """Read a function; None where the text is something else."""
        tokens = tokens_of(written, dialect)
        for number, token in enumerate(tokens):
            if token.text == "->":
                names = [each.value for each in tokens[:number] if each.kind in {WORD, NAME}]
                return cls(tuple(names), written[token.end :].strip())
            if token.text not in {"(", ")", ","} and token.kind not in {WORD, NAME}:
                return None
        return None

    def given(self, values: Sequence[str]) -> dict[str, str]:
        """The values by the names of the parameters, folded. Raises MacroError."""
        if len(values) != len(self.names):
            raise MacroError(
                f"{len(values)} values are given for {', '.join(self.names)}", "give one for each"
            )
        return {fold(name): value for name, value in zip(self.names, values, strict=True)}

    def filled(self, given: Mapping[str, str], dialect: str) -> str:
        """The body with its parameters where they are words of their own; ``@x`` stays."""
        tokens = tokens_of(self.body, dialect)
        edits: list[Edit] = []
        for number, token in enumerate(tokens):
            value = given.get(fold(token.value)) if token.kind == WORD else None
            before = tokens[number - 1] if number else None
            after = tokens[number + 1] if number + 1 < len(tokens) else None
            if value is None or _stays(before, token, after):
                continue
            if names_something(before, after):
                value = as_name(value, dialect)
            edits.append(Edit(token.start, token.end, apart(self.body, token.start, value)))
        return edited(self.body, edits).text


def _stays(before: Token | None, token: Token, after: Token | None) -> bool:
    """Return whether a word that is called like a parameter is something else."""
    if after is not None and after.text == "(" and after.start == token.end:
        return True
    if after is not None and after.text in {":=", "=>"}:
        return True
    return before is not None and (
        before.text in {".", "{"} or (before.text == "@" and before.end == token.start)
    )


def names_something(before: Token | None, after: Token | None) -> bool:
    """Return whether what stands between can only be a name: an alias, or a
    part of a dotted name.
    """
    return (before is not None and (before.text == "." or before.upper == "AS")) or (
        after is not None and after.text == "."
    )


def apart(text: str, at: int, value: str) -> str:
    """The value with a space before it where its sign would begin a comment."""
    return f" {value}" if value.startswith("-") and text[:at].endswith("-") else value


def bare(value: str, dialect: str) -> str:
    """Return what a value is inside of a name or a text: a text or a quoted name without its
    quotes.
    """
    tokens = tokens_of(value, dialect)
    return tokens[0].value if len(tokens) == 1 and tokens[0].kind in {STRING, NAME} else value


def part_of_name(value: str, dialect: str) -> str:
    """Return what a value adds to a name that it stands in, ``a`` for ``t.a``.
    Raises MacroError.
    """
    tokens = tokens_of(value, dialect)
    kinds = [token.kind for token in tokens]
    named = all(kind in {WORD, NAME} for kind in kinds[::2])
    dotted = named and all(token.text == "." for token in tokens[1::2]) and len(tokens) % 2 == 1
    if dotted or kinds in ([STRING], [NUMBER]):
        return tokens[-1].value
    if kinds == [ARGUMENT]:
        message = "a value of the run never becomes a part of a name"
        raise MacroError(message, "make the name of something that is written out")
    raise MacroError(f"`{value}` cannot be a part of a name", "give a name or a text")


def as_name(value: str, dialect: str) -> str:
    """A value where a name stands: a text loses its quotes, or gets those of a name."""
    tokens = tokens_of(value, dialect)
    if len(tokens) != 1 or tokens[0].kind not in {STRING, NUMBER}:
        return value
    return quoted_name(bare(value, dialect), dialect)


def quoted_name(name: str, dialect: str) -> str:
    """A name as it is written: quoted where it has to be."""
    plain = _PLAIN.fullmatch(name) and not name[0].isdigit()
    return name if plain else quote_identifier(name, mark=MARKS[dialect])


def substituted(text: str, value_of: Callable[[str], str | None]) -> str:
    """``@{x}`` and ``@x`` in a text with values; those of which ``value_of`` gives None stay."""

    def one(match: re.Match[str]) -> str:
        value = value_of(match["braced"] or match["bare"])
        return match[0] if value is None else value

    return _IN_TEXT.sub(one, text)


def braced(text: str) -> list[str]:
    """The names in ``@{x}`` of a text."""
    return [match["braced"] for match in _IN_TEXT.finditer(text) if match["braced"]]


def mentioned(text: str, dialect: str) -> tuple[str, ...]:
    """The variables that a query names, ``@x`` and ``@{x}``, and not what it calls, ``@x(...)``."""
    try:
        tokens = words(text, dialect)
    except Unclosed:
        return ()
    found: dict[str, None] = {}
    for at, token in enumerate(tokens[:-1]):
        after = tokens[at + 1]
        if "@" in token.text and token.kind in {STRING, NAME}:
            found |= dict.fromkeys(m["braced"] or m["bare"] for m in _IN_TEXT.finditer(token.text))
        elif token.text == "@" and after.start == token.end:
            name = tokens[at + 2] if after.text == "{" and at + 2 < len(tokens) else after
            opening = tokens[at + 2] if at + 2 < len(tokens) else None
            called = opening is not None and opening.text == "(" and opening.start == after.end
            if name.kind in {WORD, NAME} and not called:
                found[name.value.lower()] = None
    return tuple(found)
