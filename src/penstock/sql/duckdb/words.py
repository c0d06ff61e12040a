"""Texts and names in quotes of DuckDB's dialect, as Spark writes them."""

from __future__ import annotations

import re

from penstock.sql.identifiers import quote_identifier

_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def name_in_spark(written: str) -> str:
    """``"a ""b"`` in backticks."""
    return quote_identifier(written[1:-1].replace('""', '"'), mark="`")


def text_in_spark(written: str) -> str:
    r"""``'a\b'``, ``E'a\nb'`` or ``$$a$$``, whose backslashes and quotes Spark escapes."""
    value = text_of(written).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{value}'"


def text_of(written: str) -> str:
    """What a text of DuckDB's says: a backslash escapes where it begins with E."""
    if written[0] == "$":
        mark = written.index("$", 1) + 1
        return written[mark:-mark]
    if written[0] in "eE":
        return _ESCAPE.sub(_escaped, written[2:-1].replace("''", "'"))
    return written[1:-1].replace("''", "'")


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else _ESCAPES.get(code, code)
