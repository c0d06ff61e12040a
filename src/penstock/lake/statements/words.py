"""Phrases that several statements have."""

from __future__ import annotations

from penstock.lake.statements.reader import Reader


def if_not_exists(reader: Reader, or_replace: bool = False) -> bool:
    found = reader.accept("IF", "NOT", "EXISTS")
    if found and or_replace:
        raise reader.wrong("OR REPLACE and IF NOT EXISTS exclude each other")
    return found


def if_exists(reader: Reader) -> bool:
    return reader.accept("IF", "EXISTS")


def comment_or_null(reader: Reader) -> str | None:
    """``'text'`` or NULL, which takes a comment away."""
    return None if reader.accept("NULL") else reader.string("a comment")
