"""The words of a statement with their places: enough to see its structure.

Expressions and queries inside are handed on as they were written. sqlglot's tokenizer is not used
here since it takes words together or apart by dialect (``PARTITIONED BY``, ``"a"``, ``92_000``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.sql.text import wrong

WORD, NAME, STRING, NUMBER, MARKER, SYMBOL = "word", "name", "string", "number", "marker", "symbol"

_SKIPPED = re.compile(r"\s+|--[^\n]*|/\*.*?\*/", re.S)
_SPARK = (
    (STRING, re.compile(r"[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:[^'\\]|\\.|'')*'", re.S)),
    (NAME, re.compile(r"`(?:[^`]|``)*`|\"(?:[^\"\\]|\\.|\"\")*\"", re.S)),
    (NUMBER, re.compile(r"(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?")),
    (WORD, re.compile(r"[^\W\d]\w*|\$\w+")),
    (MARKER, re.compile(r":[^\W\d]\w*")),
    (SYMBOL, re.compile(r"=>|:=|::|<=>|<>|!=|<=|>=|==|->|\|\||\|>|.", re.S)),
)
# A backslash is nothing special in a text or a name, unless the text begins with E.
_DUCKDB = (
    (
        STRING,
        re.compile(r"[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$", re.S),
    ),
    (NAME, re.compile(r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"", re.S)),
    *_SPARK[2:],
)
_KINDS = {"spark": _SPARK, "duckdb": _DUCKDB}
_ENDS_VALUE = re.compile(r"[^\W_]|['\"`]")
_CLOSED = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` is as written at ``start``; a ``name`` is one in quotes (maybe a text)."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind in {WORD, SYMBOL} else ""


def tokenize(text: str, dialect: str = "spark") -> list[Token]:
    """All words of a text, comments and space left out. Raises QueryFailed with the place."""
    return list(_scan(text, dialect))


def _scan(text: str, dialect: str) -> Iterator[Token]:
    at = 0
    before = ""
    while at < len(text):
        skipped = _SKIPPED.match(text, at)
        if skipped is not None:
            at = skipped.end()
            continue
        for kind, pattern in _KINDS[dialect]:
            found = pattern.match(text, at)
            # After a value or a name, as in {'a':b}, the colon is no marker's.
            if found is None or (kind == MARKER and before and _ENDS_VALUE.match(before[-1])):
                continue
            if kind == SYMBOL and found[0] in {"'", '"', "`"}:
                raise wrong(f"the quote {found[0]} is not closed", text, at)
            yield Token(kind, found[0], at)
            at, before = found.end(), found[0]
            break


def split(text: str, dialect: str = "spark") -> list[tuple[int, int]]:
    """Where the statements of a text begin and end; empty ones are left out."""
    parts: list[tuple[int, int]] = []
    start: int | None = None
    end = 0
    for token in tokenize(text, dialect):
        if token.text == ";":
            if start is not None:
                parts.append((start, end))
            start = None
            continue
        start = token.start if start is None else start
        end = token.end
    return parts if start is None else [*parts, (start, end)]


def closing(tokens: Sequence[Token], at: int) -> int | None:
    """Which token closes the bracket that the one at ``at`` opens."""
    depth = 0
    for i in range(at, len(tokens)):
        text = tokens[i].text
        if text in _CLOSED:
            depth += 1
        elif text in {")", "]", "}"}:
            depth -= 1
            if depth == 0:
                return i
    return None


_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


def unquoted(token: Token) -> str:
    """What a name or a text in quotes says; backslashes in texts are as in Spark."""
    text = token.text
    if text[0] in "rR":
        return text[2:-1]
    mark, inside = text[0], text[1:-1]
    inside = inside.replace(mark * 2, mark)
    return inside if mark == "`" else _ESCAPE.sub(_unescaped, inside)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) > 1:
        return chr(int(code[1:], 16) if code[0] in "uU" else int(code, 8))
    if code in {"%", "_"}:
        return found[0]
    return _ESCAPES.get(code, code)
