"""Time travel in a query's text: ``t AT (VERSION => 3)``, ``t VERSION AS OF 3``, ..."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import UnsupportedFeature
from penstock.sql.tokens import Token

_AT = re.compile(r"\s*AT\s*\(\s*\w+\s*=>", re.I)
_LONGEST = 40  # tokens of a time that is computed
_AS_OF = re.compile(r"\s*(?:FOR\s+)?\w+\s+AS\s+OF\b", re.I)


@dataclass(frozen=True, slots=True)
class Travel:
    """``AT (VERSION => 3)`` or ``TIMESTAMP AS OF '...'``. ``parameter`` is the name of a marker.

    Of what is neither a literal nor a marker, ``node`` is the tree and ``text`` as it was written.
    """

    kind: str  # "version" or "timestamp"
    value: str | None = None
    parameter: str | None = None
    node: exp.Expression | None = field(default=None, compare=False, repr=False)
    text: str = ""

    @property
    def is_version(self) -> bool:
        """Whether it names a version that needs no computing."""
        return self.kind == "version" and self.node is None


def after(
    table: exp.Table, start: int, end: int, tokens: Sequence[Token], text: str
) -> tuple[Travel | None, int]:
    """What follows the table named at ``text[start:end]``, and where it ends."""
    clause = table.args.get("when") or table.args.get("version")
    if clause is None:
        return None, end
    value = clause.args.get("expression")
    last = _value_end(end, tokens, text, value) or _clause_end(end, tokens)
    return _travel(clause, text[end:last], text[start:last]), last


def _travel(clause: exp.Expression, written: str, reference: str) -> Travel:
    """From ``HistoricalData`` (``AT (VERSION => 3)``) or ``Version`` (``VERSION AS OF 3``), as it
    was written after the table of ``reference``.
    """
    is_at = isinstance(clause, exp.HistoricalData)
    kind = clause.args.get("kind") if is_at else clause.this
    value = clause.args.get("expression")
    name = str(kind).lower()
    if name not in {"version", "timestamp"}:
        raise UnsupportedFeature(
            f"{clause.sql('spark')} is not understood",
            hint="write AT (VERSION => 3)",
            data={"reference": reference},
        )
    if isinstance(value, exp.Placeholder):
        return Travel(name, parameter=value.name)
    inner = value.this if isinstance(value, exp.Cast) else value
    if isinstance(inner, exp.Literal):
        return Travel(name, value=inner.name)
    if value is None or value.find(exp.Column, exp.Query, exp.AggFunc) is not None:
        raise UnsupportedFeature(
            f"{written.strip()} names a column or asks a query",
            hint="a snapshot is a number, a time, a :marker or an expression of these",
            data={"reference": reference},
        )
    start = _AT.match(written) if is_at else _AS_OF.match(written)
    text = "" if start is None else written[start.end() :]
    return Travel(name, node=value, text=text.rstrip()[:-1] if is_at else text)


def _value_end(start: int, tokens: Sequence[Token], text: str, value: Any) -> int | None:
    """Where the value of an ``AS OF`` that follows ``start`` ends; ``None`` for an AT, whose
    bracket says it.

    Trees have no ends: it is the longest text after the words that reads as the value.
    """
    found = _AS_OF.match(text, start)
    if found is None or not isinstance(value, exp.Expression):
        return None
    end: int | None = None
    for token in [token for token in tokens if token.start >= found.end()][:_LONGEST]:
        try:
            read = sqlglot.parse_one(text[found.end() : token.end], read="spark")
        except SqlglotError:
            continue
        if read == value and token.text.upper() != "AS":  # which begins an alias
            end = token.end
    return end


def _clause_end(start: int, tokens: Sequence[Token]) -> int:
    """Where a time travel clause that follows ``start`` ends: at its ``)`` or after its value."""
    rest = [token for token in tokens if token.start >= start]
    depth = 0
    after_of = False
    for at, token in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == ")" and depth == 0:
            return token.end
        if after_of and depth == 0 and not _is_type_word(rest, at):
            return token.end
        after_of = after_of or token.text.upper() in {"OF"}
    return rest[-1].end if rest else start


def _is_type_word(tokens: Sequence[Token], at: int) -> bool:
    """``TIMESTAMP`` or ``DATE`` in front of a literal."""
    return tokens[at].text.upper() in {"TIMESTAMP", "DATE"} and at + 1 < len(tokens)
