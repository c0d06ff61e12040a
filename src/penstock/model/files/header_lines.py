"""The lines of a header, with their places (annotations.md, first paragraph), and quoted values.

A value in single or double quotes may hold blanks and commas; a doubled quote is a quote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Location

_COMMENT = re.compile(r"^\s*(--|//|#)[ \t]*(.*?)\s*$")
_WORD = re.compile(r"\S+")
#: a word in which a quote after `=` or `,` holds blanks, closed or not
_OPTION = re.compile(r"""(?:(?<=[=,])(?:'(?:[^']|'')*'?|"(?:[^"]|"")*"?)|\S)+""")


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    location: Location


@dataclass(frozen=True, slots=True)
class CommentLine:
    """A comment line: ``text`` without prefix and outer blanks; places count from 1."""

    path: Path
    number: int
    column: int
    prefix: str
    text: str

    @property
    def keyword(self) -> str:
        return self.text.split(None, 1)[0] if self.text else ""

    @property
    def rest(self) -> str:
        """Return what follows the keyword, stripped."""
        return self.text[len(self.keyword) :].strip()

    @property
    def location(self) -> Location:
        return Location(self.path, self.number, self.column)

    def at(self, offset: int) -> Location:
        """The place of ``text[offset]``."""
        return Location(self.path, self.number, self.column + offset)

    @property
    def words(self) -> tuple[Word, ...]:
        """The words after the keyword."""
        matches = _WORD.finditer(self.text)
        next(matches, None)
        return tuple(Word(match.group(), self.at(match.start())) for match in matches)

    def options(self, after: Word) -> tuple[Word, ...]:
        """The options behind the word ``after``: a value in quotes may hold blanks."""
        start = (after.location.column or 0) - self.column + len(after.text)
        matches = _OPTION.finditer(self.text, start)
        return tuple(Word(match.group(), self.at(match.start())) for match in matches)


@dataclass(frozen=True, slots=True)
class Header:
    """``end`` is the offset of the first code line; ``code_line`` its number."""

    lines: tuple[CommentLine, ...]
    later: tuple[CommentLine, ...]
    end: int
    code_line: int


def read_header(text: str, path: Path) -> Header:
    """Split ``text`` into header lines and comment lines after the header.

    The header stops at the first code line; a ``#!`` line is passed over.
    """
    lines: list[CommentLine] = []
    later: list[CommentLine] = []
    offset, end, code_line = 0, len(text), 0
    for number, raw in enumerate(text.split("\n"), start=1):
        comment = _comment(raw, path, number)
        if comment is not None:
            (later if code_line else lines).append(comment)
        elif not code_line and raw.strip("\ufeff \t\r\f\v") and not _is_shebang(raw, number):
            code_line, end = number, offset
        offset += len(raw) + 1
    return Header(tuple(lines), tuple(later), end, code_line)


def _is_shebang(raw: str, number: int) -> bool:
    return number == 1 and raw.lstrip("\ufeff").startswith("#!")


def _comment(raw: str, path: Path, number: int) -> CommentLine | None:
    if _is_shebang(raw, number):
        return None
    match = _COMMENT.match(raw.lstrip("\ufeff") if number == 1 else raw)
    if match is None:
        return None
    return CommentLine(path, number, match.start(2) + 1, match.group(1), match.group(2))


_QUOTES = ("'", '"')
_SINGLE = r"'(?P<single>(?:[^']|'')*)'"
_DOUBLE = r'"(?P<double>(?:[^"]|"")*)"'
_VALUE = re.compile(rf"\s*(?:{_SINGLE}|{_DOUBLE}|(?P<bare>[^,]*?))\s*(?:,|$)")


def split_values(text: str) -> list[str]:
    """The values of a comma list, without blanks around them and without their quotes."""
    return [value for value, _ in quoted_values(text)]


def quoted_values(text: str) -> list[tuple[str, bool]]:
    """The same, each with whether it is in quotes: an empty text is a value only in those."""
    values: list[tuple[str, bool]] = []
    for match in _VALUE.finditer(text):
        if match.start() == len(text) and not text.endswith(","):
            break
        values.append((_value(match), match["bare"] is None))
    return values


_QUOTED, _PLAIN = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`', r"""[^\s"'`=,][^\s"'=,]*"""
#: the name of a column: plain, or in either kind of quotes; and as short as what follows lets it be
COLUMN, SHORTEST = f"(?:{_QUOTED}|{_PLAIN})", f"(?:{_QUOTED}|{_PLAIN}?)"


def name_of(text: str) -> str:
    """The column that `COLUMN` matches, without its quotes."""
    quote = text[:1]
    return text[1:-1].replace(quote * 2, quote) if quote in {'"', "`"} else text


def unquote(text: str) -> str:
    """One value without its quotes, or without the opening one where it is never closed."""
    quote = text[:1]
    if quote not in _QUOTES:
        return text
    end = -1 if len(text) > 1 and text.endswith(quote) else None
    return text[1:end].replace(quote * 2, quote)


def is_unclosed(text: str) -> bool:
    """Return whether a value of the comma list begins with a quote and does not end with it."""
    bare = (match["bare"] for match in _VALUE.finditer(text))
    return any(value is not None and value[:1] in _QUOTES for value in bare)


def _value(match: re.Match[str]) -> str:
    if match["single"] is not None:
        return match["single"].replace("''", "'")
    if match["double"] is not None:
        return match["double"].replace('""', '"')
    return match["bare"]
