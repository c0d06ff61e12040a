"""A ``MODEL (...)`` that is there, laid out in its canonical form; comments and values stay.

A property a line, names in small letters, kinds in capitals. A value in several lines, or with a
comment inside, is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.model.block.syntax import Block
from penstock.model.files.source_map import Source
from penstock.sql.tokens import COMMENT, SPACE, WORD, Token, depth_of, scan

_INDENT = "  "


@dataclass(slots=True)
class _Entry:
    """A property with the comments above it and the one behind it."""

    above: list[str] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


def formatted(source: Source, block: Block) -> str:
    """The block in canonical form, without what is before and after it."""
    entries, below = _entries(source, block)
    lines: list[str] = []
    for number, entry in enumerate(entries):
        lines += [_INDENT + comment for comment in entry.above]
        comma = "," if number + 1 < len(entries) else ""
        behind = "".join(f" {comment}" for comment in entry.behind)
        lines.append(f"{_INDENT}{_property(source, entry.tokens)}{comma}{behind}")
    lines += [_INDENT + comment for comment in below]
    return "\n".join(["MODEL (", *lines, ");"])


def comments(source: Source, block: Block) -> list[str]:
    """The comments inside of the block, as they are written."""
    tokens = scan(source.text, "duckdb", block.start, block.code)
    return [token.text for token in tokens if token.kind == COMMENT]


def _entries(source: Source, block: Block) -> tuple[list[_Entry], list[str]]:
    """The properties, and the comments below the last of them."""
    entries: list[_Entry] = []
    current, depth, end = _Entry(), 0, block.start
    for token in scan(source.text, "duckdb", block.start, block.code):
        if token.kind == SPACE:
            continue
        if token.kind == COMMENT:
            _take_comment(source.text[end : token.start], token, current, entries)
        else:
            depth += depth_of(token)
            if token.text == "," and depth == 1:
                entries.append(current)
                current = _Entry(above=_settle(source, current))
            elif depth > 1 or (depth == 1 and token.text != "(") or _closes(token, depth):
                current.tokens.append(token)
        end = token.end
    if current.tokens:
        entries.append(current)
        current = _Entry(above=_settle(source, current))
    return entries, current.above


def _closes(token: Token, depth: int) -> bool:
    """Return whether it closes a bracket of a value."""
    return depth == 1 and depth_of(token) < 0


def _take_comment(between: str, token: Token, current: _Entry, entries: Sequence[_Entry]) -> None:
    if current.tokens:
        current.tokens.append(token)
    elif entries and "\n" not in between:
        entries[-1].behind.append(token.text)
    else:
        current.above.append(token.text)


def _settle(source: Source, entry: _Entry) -> list[str]:
    """Put a comment between a value and its comma behind it; those on lines of their own are
    returned, for what follows.
    """
    at = len(entry.tokens)
    while entry.tokens[at - 1].kind == COMMENT:
        at -= 1
    trailing, entry.tokens = entry.tokens[at:], entry.tokens[:at]
    later: list[str] = []
    end = entry.tokens[-1].end
    for token in trailing:
        own_line = "\n" in source.text[end : token.start]
        (later if own_line or later else entry.behind).append(token.text)
        end = token.end
    return later


def _property(source: Source, tokens: Sequence[Token]) -> str:
    name, value = tokens[0].value.lower(), tokens[1:]
    written = source.text[value[0].start : value[-1].end]
    if "\n" not in written and not any(token.kind == COMMENT for token in value):
        written = value[0].text
        for before, token in pairwise(value):
            written += (" " if token.start > before.end else "") + token.text
    if name == "kind" and value[0].kind == WORD:
        written = value[0].text.upper() + written[len(value[0].text) :]
    return f"{name} {written}"
