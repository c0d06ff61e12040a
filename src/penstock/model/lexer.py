"""Tokens of a script with their offsets in the file; comments and strings are never code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlglot.dialects import Dialect
from sqlglot.errors import TokenError

from penstock.errors import Location
from penstock.sql.quoting import for_spark, names_in

_QUOTES = {"'": "'", '"': '"', "`": "`", "/*": "*/", "--": "\n"}
_OPENER = re.compile(r"'|\"|`|/\*|--")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text; every offset in the model counts characters of ``text``.

    ``quoted`` are the names in double quotes that the text had, which has them in backticks.
    """

    path: Path
    text: str
    quoted: frozenset[str] = frozenset()

    @classmethod
    def of(cls, path: Path, text: str, dialect: str) -> Source:
        """The source of a script as it is written in its dialect."""
        if dialect != "spark":
            return cls(path, text)
        return cls(path, for_spark(text), names_in(text))

    def location(self, offset: int) -> Location:
        line_start = self.text.rfind("\n", 0, offset) + 1
        line = self.text.count("\n", 0, offset) + 1
        return Location(self.path, line, offset - line_start + 1)

    def offset(self, line: int, column: int) -> int:
        """The offset of a place; both count from 1."""
        start = 0
        for _ in range(line - 1):
            start = self.text.find("\n", start) + 1
        return start + column - 1


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is sqlglot's token type, or ``ARGUMENT`` for ``$name`` (``text`` is the name).

    ``end`` is exclusive. ``text`` of a string is its value.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """Upper case text of a bare word or keyword; empty for strings and quoted names."""
        return "" if self.kind in {"STRING", "RAW_STRING", "IDENTIFIER"} else self.text.upper()


class LexError(Exception):
    """A quote or comment that is never closed, at ``offset``."""

    def __init__(self, offset: int, opener: str) -> None:
        self.offset = offset
        self.opener = opener
        super().__init__(f"unclosed {opener}")


def tokenize(text: str, dialect: str, start: int = 0, end: int | None = None) -> tuple[Token, ...]:
    """The tokens of ``text[start:end]``. Raises :class:`LexError`."""
    piece = text[start:end]
    try:
        raw = Dialect.get_or_raise(dialect).tokenize(piece)
    except TokenError:
        raise _unclosed(piece, start) from None
    found = (
        Token(token.token_type.name, token.text, start + token.start, start + token.end + 1)
        for token in raw
    )
    return tuple(_join_arguments(found))


def _join_arguments(tokens: Iterable[Token]) -> Iterable[Token]:
    dollar: Token | None = None
    for token in tokens:
        if dollar is not None and token.start == dollar.end and token.word:
            yield Token("ARGUMENT", token.text, dollar.start, token.end)
            dollar = None
            continue
        if dollar is not None:
            yield dollar
        dollar = token if token.kind == "PARAMETER" and token.text == "$" else None
        if dollar is None:
            yield token
    if dollar is not None:
        yield dollar


def _unclosed(piece: str, start: int) -> LexError:
    position = 0
    while match := _OPENER.search(piece, position):
        opener = match.group()
        closer = _QUOTES[opener]
        end = piece.find(closer, match.end())
        if end < 0 and opener != "--":
            return LexError(start + match.start(), opener)
        position = len(piece) if end < 0 else end + len(closer)
    return LexError(start, "text")


def match_paren(tokens: Sequence[Token], opening: int) -> int | None:
    """Index of the token that closes the bracket at ``opening``; ``None`` if nothing does."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index].text in _OPENING and tokens[index].word != "") - (
            tokens[index].text in _CLOSING and tokens[index].word != ""
        )
        if depth == 0:
            return index
    return None


_OPENING = ("(", "[", "{")
_CLOSING = (")", "]", "}")


def mask(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """``text`` with each ``(start, end, replacement)`` filled up with blanks; same length.

    Line ends inside a span stay, so that lines and columns do too.
    """
    pieces: list[str] = []
    position = 0
    for start, end, replacement in sorted(spans):
        kept = "".join("\n" if char == "\n" else " " for char in text[start:end])
        pieces += [text[position:start], replacement, kept[len(replacement) :]]
        position = end
    return "".join((*pieces, text[position:]))
