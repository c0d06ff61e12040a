"""Texts and names in quotes of DuckDB's dialect, as Spark writes them."""

from __future__ import annotations

from penstock.sql.identifiers import quote_identifier
from penstock.sql.tokens import Token, unquoted


def name_in_spark(written: str) -> str:
    """``"a ""b"`` in backticks."""
    return quote_identifier(written[1:-1].replace('""', '"'), mark="`")


def text_in_spark(token: Token) -> str:
    r"""``'a\b'``, ``E'a\nb'`` or ``$$a$$``, whose backslashes and quotes Spark escapes."""
    value = unquoted(token).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{value}'"
