"""Keep ``${...}`` in SQL as written: Spark replaces it by variables before it parses a text.

With its setting ``spark.sql.variable.substitute``, on by default, ``'${env:HOME}'`` becomes the
environment's value and ``'${unknown}'`` an empty text, in queries and in expressions of
DataFrames alike. Texts are rewritten rather than the setting switched, which other threads of the
session and the user's own queries share, and which Spark Connect reads when a query runs.
"""

from __future__ import annotations

from penstock.errors import UnsupportedFeature
from penstock.sql.text import place
from penstock.sql.tokens import COMMENT, STRING, Token, scan

_OPENS = "${"


def unsubstituted(text: str) -> str:
    """Return SQL of Spark's dialect in which Spark finds nothing to substitute::

        unsubstituted("SELECT '${env:HOME}'") == "SELECT '$' '{env:HOME}'"

    Adjacent texts are one text. Raises UnsupportedFeature where ``${`` is not in a text, as in a
    name, which cannot be written in two parts.
    """
    if _OPENS not in text:
        return text
    parts: list[str] = []
    before = ""
    for token in scan(text):
        if before.endswith("$") and token.text.startswith("{"):
            raise _refusal(text, token.start - 1)
        parts.append(_apart(text, token) if _OPENS in token.text else token.text)
        before = token.text
    return "".join(parts)


def _apart(text: str, token: Token) -> str:
    """The token without ``${``."""
    if token.kind == COMMENT:
        return token.text.replace(_OPENS, "$ {")
    if token.kind != STRING:
        raise _refusal(text, token.start)
    quote = token.text[-1]
    prefix = token.text[: token.text.index(quote)]
    return token.text.replace(_OPENS, f"${quote} {prefix}{quote}{{")


def _refusal(text: str, at: int) -> UnsupportedFeature:
    line, column = place(text, at)
    return UnsupportedFeature(
        f"${{...}} outside of a text, which Spark would replace, at line {line}:{column}",
        hint="write the value, or bind it as an argument (:name); a name cannot hold ${",
        data={"line": line, "column": column},
    )
