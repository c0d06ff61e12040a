"""Lists, structs and maps as DuckDB writes them as text in a catalog that has no such types.

There are three forms, and nothing in the catalog says which one a value has:

* `CAST`, the text of ``CAST(value AS VARCHAR)``: ``{'a': x, 'b': ['it\\'s', NULL], 'c': {k=1}}``.
  Text is quoted where it must be, with backslashes before quotes and backslashes.
* `SQL_STRUCTS`, by 1.5 for structs that are at most inside structs: fields as SQL literals,
  ``{'a': 'it''s', 'b': CAST('2024-01-01' AS DATE)}``, values in lists and maps as in `CAST`.
* `SQL_LISTS`, by 1.4 on PostgreSQL: lists hold literals, too, ``['it''s', '2024-01-01'::DATE]``.

DuckDB itself reads all of them as `CAST`: it loses the quotes of ``'it''s'`` and fails on dates
(seen with 1.4.4 and 1.5.5). This module reads every form back as the inserted value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.lake.format.schema import Column

# A leaf is its text; a list or struct a list of its parts, a map one of pairs.
Tree = Any


@dataclass(frozen=True, slots=True)
class Form:
    """Text forms: structs and lists hold SQL literals (as long as they hold nothing but those)."""

    structs: bool = False
    lists: bool = False


CAST = Form()
SQL_STRUCTS = Form(structs=True)
SQL_LISTS = Form(structs=True, lists=True)


def parse(text: str, column: Column, forms: Sequence[Form]) -> Tree:
    """The parts of a nested value by its type, in the first of ``forms`` that fits.

    Raises ValueError when none does.
    """
    for form in forms:
        try:
            return _Reader(text, form).whole(column)
        except _Mismatch:
            continue
    raise ValueError(f"{text[:100]!r} is not a valid {column.type} as DuckDB writes it")


class _Mismatch(Exception):
    """The text is not of the form."""


_QUOTED = re.compile(r"'((?:[^'\\]|\\['\\])*)'")
_BACKSLASHED = re.compile(r"\\(['\\])")
_LITERAL = re.compile(r"'((?:[^']|'')*)'(?:::[A-Z_ ]+)?")
_CAST = re.compile(r"CAST\('((?:[^']|'')*)' AS [A-Z_ ]+\)")
_CONCAT = re.compile(r"CONCAT\(((?:'(?:[^']|'')*'|chr\(0\)|, )+)\)")
_PIECE = re.compile(r"'((?:[^']|'')*)'|chr\(0\)")
_BARE = re.compile(r"[^'\"(){}\[\],:=\s]+")

# What SQL writes without quotes.
_BARE_TYPES = re.compile(r"boolean|u?int\d+|float\d+|decimal\(.*")


class _Reader:
    """A text, and the position up to which it was read."""

    def __init__(self, text: str, form: Form) -> None:
        self._text = text
        self._form = form
        self._at = 0

    def whole(self, column: Column) -> Tree:
        tree = self._value(column, self._form != CAST, "")
        if self._at != len(self._text):
            raise _Mismatch
        return tree

    def _value(self, column: Column, sql: bool, ends: str) -> Tree:
        """A value that is followed by one of ``ends``, or by the end of the text."""
        if self._is_null(ends):
            return None
        nested = _NESTED.get(column.type)
        if nested is not None:
            return nested(self, column, sql)
        return self._literal(column) if sql else self._cast(ends)

    def _is_null(self, ends: str) -> bool:
        after = self._at + 4
        if not self._text.startswith("NULL", self._at):
            return False
        if after < len(self._text) and self._text[after] not in ends:
            return False
        self._at = after
        return True

    def _list(self, column: Column, sql: bool) -> Tree:
        self._expect("[")
        element = column.children[0]
        items: list[Tree] = []
        while not self._skip("]"):
            if items:
                self._expect(", ")
            items.append(self._value(element, sql and self._form.lists, ",]"))
        return items

    def _struct(self, column: Column, sql: bool) -> Tree:
        self._expect("{")
        items: list[Tree] = []
        for field in column.children:
            if items:
                self._expect(", ")
            self._key(field.name)
            items.append(self._value(field, sql and self._form.structs, ",}"))
        self._expect("}")
        return items

    def _map(self, column: Column, sql: bool) -> Tree:  # noqa: ARG002 - maps have one form only
        self._expect("{")
        key, value = column.children
        items: list[Tree] = []
        while not self._skip("}"):
            if items:
                self._expect(", ")
            known = self._value(key, False, "=")
            self._expect("=")
            items.append((known, self._value(value, False, ",}")))
        return items

    def _key(self, name: str) -> None:
        """A field's name: escaped as the form has it, or (by 1.4) not at all."""
        backslashed = name.replace("\\", "\\\\").replace("'", "\\'")
        for shown in (backslashed, name.replace("'", "''"), name):
            if self._skip(f"'{shown}': "):
                return
        raise _Mismatch

    def _cast(self, ends: str) -> str:
        match = _QUOTED.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return _BACKSLASHED.sub(r"\1", match[1])
        end = self._at
        while end < len(self._text) and self._text[end] not in ends:
            end += 1
        text = self._text[self._at : end]
        if not text or text[0] == "'":
            raise _Mismatch
        self._at = end
        return text

    def _literal(self, column: Column) -> str:
        for pattern in (_LITERAL, _CAST):
            if (match := pattern.match(self._text, self._at)) is not None:
                self._at = match.end()
                return match[1].replace("''", "'")
        if (match := _CONCAT.match(self._text, self._at)) is not None:
            self._at = match.end()
            pieces = _PIECE.finditer(match[1])
            return "".join("\0" if p[1] is None else p[1].replace("''", "'") for p in pieces)
        match = _BARE.match(self._text, self._at)
        if match is None or not _BARE_TYPES.fullmatch(column.type):
            raise _Mismatch
        self._at = match.end()
        return match[0]

    def _skip(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            raise _Mismatch


_NESTED: Mapping[str, Callable[[_Reader, Column, bool], Tree]] = {
    "list": _Reader._list,
    "struct": _Reader._struct,
    "map": _Reader._map,
}
