"""Values in quotes, single or double: they hold blanks and commas; a doubled quote is one."""

from __future__ import annotations

import re

_QUOTES = ("'", '"')
_SINGLE = r"'(?P<single>(?:[^']|'')*)'"
_DOUBLE = r'"(?P<double>(?:[^"]|"")*)"'
_VALUE = re.compile(rf"\s*(?:{_SINGLE}|{_DOUBLE}|(?P<bare>[^,]*?))\s*(?:,|$)")


def split_values(text: str) -> list[str]:
    """The values of a comma list, without blanks around them and without their quotes."""
    values: list[str] = []
    for match in _VALUE.finditer(text):
        if match.start() == len(text) and not text.endswith(","):
            break
        values.append(_value(match))
    return values


def unquote(text: str) -> str:
    """One value without its quotes, or without the opening one where it is never closed."""
    quote = text[:1]
    if quote not in _QUOTES:
        return text
    end = -1 if len(text) > 1 and text.endswith(quote) else None
    return text[1:end].replace(quote * 2, quote)


def is_unclosed(text: str) -> bool:
    """Whether a value of the comma list begins with a quote and does not end with it."""
    bare = (match["bare"] for match in _VALUE.finditer(text))
    return any(value is not None and value[:1] in _QUOTES for value in bare)


def _value(match: re.Match[str]) -> str:
    if match["single"] is not None:
        return match["single"].replace("''", "'")
    if match["double"] is not None:
        return match["double"].replace('""', '"')
    return match["bare"]
