"""A query that stops at one of its common table expressions: for tests that look at that alone."""

from __future__ import annotations

from dataclasses import replace

from penstock.model.query.query import Query
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.query.edits import Edit
from penstock.sql.query.reading import leading_heads


def of_cte(query: Query, name: str) -> Query | None:
    """The rows of a temporary table of the script, or of a table that its WITH names.

    ``None`` where it has none of that name.
    """
    body = query.parts[-1]
    tokens = body.statement.tokens
    start = tokens[0].start
    if fold(name) not in {fold(part.name or "") for part in query.parts[:-1]}:
        named = leading_heads(tokens)
        if fold(name) not in {head.name for head in named}:
            return None
        start = tokens[named[-1].closing + 1].start
    mark = "`" if query.dialect == SPARK else '"'
    select = Edit(start, tokens[-1].end, f"SELECT * FROM {quote_identifier(name, mark=mark)}")
    sources = tuple(source for source in body.sources if source.end <= start)
    edits = (*(edit for edit in body.edits if edit.end <= start), select)
    return replace(query, parts=(*query.parts[:-1], replace(body, sources=sources, edits=edits)))
