"""DuckDB's lists, structs and maps in Spark's words: ``[1]``, ``{'a': 1}``, ``MAP {'k': 1}``.

Where they stand Spark has no bracket of its own, so that nothing changes its meaning: ``l[1]``
stays what it is. What is not understood (``[x FOR x IN l]``) stays as well, for Spark to refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError

# What a value may follow: after these a bracket opens one and does not index one.
_BEFORE = frozenset(
    {"", "L_PAREN", "L_BRACKET", "COMMA", "COLON", "SELECT", "DISTINCT", "ALL", "WHERE", "ON"}
    | {"HAVING", "CASE", "WHEN", "THEN", "ELSE", "AND", "OR", "NOT", "IN", "BETWEEN", "FROM"}
    | {"EQ", "NEQ", "NULLSAFE_EQ", "LT", "LTE", "GT", "GTE", "DPIPE", "PLUS", "FARROW", "COLON_EQ"}
)
_KEYS = frozenset({"VAR", "IDENTIFIER", "STRING"})


class _Other(Exception):
    """Brackets that mean something else."""


@dataclass(slots=True)
class _Writing:
    """``edits`` are spans of the text with what comes in their place."""

    tokens: Sequence[Any]
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def kind(self, at: int) -> str:
        return str(self.tokens[at].token_type.name) if 0 <= at < len(self.tokens) else ""

    def put(self, at: int, text: str) -> None:
        token = self.tokens[at]
        self.edits.append((token.start, token.end + 1, text))

    def value(self, at: int) -> int:
        """Past the token at ``at``, or past the literal that it opens."""
        opens, before = self.kind(at), self.kind(at - 1)
        if opens == "L_BRACKET":
            return self._list(at) if before in _BEFORE else self._inside(at, "R_BRACKET")
        if opens == "L_PAREN":
            return self._inside(at, "R_PAREN")
        if opens == "L_BRACE" and before in {*_BEFORE, "MAP"}:
            return self._pairs(at, of_map=before == "MAP")
        if opens == "L_BRACE":
            raise _Other
        return at + 1

    def _inside(self, at: int, close: str) -> int:
        at += 1
        while self.kind(at) != close:
            if self.kind(at) in {"", "FOR"}:
                raise _Other
            at = self.value(at)
        return at + 1

    def _list(self, at: int) -> int:
        self.put(at, "array(")
        end = self._inside(at, "R_BRACKET")
        self.put(end - 1, ")")
        return end

    def _pairs(self, at: int, *, of_map: bool) -> int:
        self.put(at, "(" if of_map else "named_struct(")
        at += 1
        while self.kind(at) != "R_BRACE":
            at = self._key(at, of_map=of_map)
            if self.kind(at) != "COLON":
                raise _Other
            self.put(at, ",")
            at += 1
            while self.kind(at) not in {"COMMA", "R_BRACE"}:
                if not self.kind(at):
                    raise _Other
                at = self.value(at)
            at += self.kind(at) == "COMMA"
        self.put(at, ")")
        return at + 1

    def _key(self, at: int, *, of_map: bool) -> int:
        if of_map:
            start = at
            while self.kind(at) != "COLON" or at == start:  # a marker begins with one
                if self.kind(at) in {"", "COMMA", "R_BRACE"}:
                    raise _Other
                at = self.value(at)
            return at
        if self.kind(at) not in _KEYS:
            raise _Other
        if self.kind(at) != "STRING":
            name = self.tokens[at].text.replace("\\", "\\\\").replace("'", "\\'")
            self.put(at, f"'{name}'")
        return at + 1


def in_spark(text: str) -> str:
    """The text with such literals in Spark's words; lines stay lines."""
    if "[" not in text and "{" not in text:
        return text
    try:
        writing = _Writing(sqlglot.tokenize(text, read="spark"))
        at = 0
        while writing.kind(at):
            at = writing.value(at)
    except (SqlglotError, _Other):
        return text
    for start, end, new in sorted(writing.edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
