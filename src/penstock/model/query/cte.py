"""A query that stops at one of its common table expressions: for tests that look at that alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.model.files.source_map import Edit
from penstock.model.query.query import Query
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.tokens import Token, closing


def of_cte(query: Query, name: str) -> Query | None:
    """The rows of a temporary table of the script, or of a table that its WITH names.

    ``None`` where it has none of that name.
    """
    body = query.parts[-1]
    tokens = body.statement.tokens
    start = tokens[0].start
    if fold(name) not in {fold(part.name or "") for part in query.parts[:-1]}:
        named = _after_with(tokens)
        if named is None or fold(name) not in named[0]:
            return None
        start = tokens[named[1]].start
    mark = "`" if query.dialect == SPARK else '"'
    select = Edit(start, tokens[-1].end, f"SELECT * FROM {quote_identifier(name, mark=mark)}")
    sources = tuple(source for source in body.sources if source.end <= start)
    edits = (*(edit for edit in body.edits if edit.end <= start), select)
    return replace(query, parts=(*query.parts[:-1], replace(body, sources=sources, edits=edits)))


def _after_with(tokens: Sequence[Token]) -> tuple[set[str], int] | None:
    """The names that a leading WITH gives, folded, and the index of the query behind it."""
    if tokens[0].upper != "WITH":
        return None
    names: set[str] = set()
    at = 1 + (tokens[1].upper == "RECURSIVE")
    while True:
        names.add(fold(tokens[at].value))
        opening = next((n for n in range(at, len(tokens)) if tokens[n].upper == "AS"), None)
        bracket = None if opening is None else _bracket(tokens, opening)
        close = None if bracket is None else closing(tokens, bracket)
        if close is None or close + 1 >= len(tokens):
            return None
        if tokens[close + 1].text != ",":
            return names, close + 1
        at = close + 2


def _bracket(tokens: Sequence[Token], opening: int) -> int | None:
    """The bracket behind AS, perhaps after [NOT] MATERIALIZED."""
    return next(
        (n for n in range(opening, min(opening + 4, len(tokens))) if tokens[n].text == "("), None
    )
