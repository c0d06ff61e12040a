"""``TABLE t`` as a query: ``SELECT * FROM t``, which it is short for."""

from __future__ import annotations

import re

import sqlglot
from sqlglot.errors import SqlglotError

_WORD = re.compile(r"\btable\b", re.I)
_SETS = frozenset({"R_PAREN", "UNION", "ALL", "DISTINCT", "EXCEPT", "INTERSECT"})
_NAMES = frozenset({"VAR", "IDENTIFIER"})


def in_full(text: str) -> str:
    """The text with every ``TABLE t`` that is a query of its own written out."""
    if not _WORD.search(text):
        return text
    try:
        tokens = sqlglot.tokenize(text, read="spark")
    except SqlglotError:
        return text
    kinds = ["", "", *(str(token.token_type.name) for token in tokens), ""]
    for at in reversed(range(len(tokens))):
        earlier, before, kind, after = kinds[at : at + 4]
        alone = before in {"", *_SETS} or (before == "L_PAREN" and earlier not in _NAMES)
        if kind == "TABLE" and alone and after in _NAMES:
            token = tokens[at]
            text = f"{text[: token.start]}SELECT * FROM{text[token.end + 1 :]}"
    return text
