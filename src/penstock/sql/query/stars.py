"""Tell whether the columns of a query follow from those of the tables that it reads."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sql.identifiers import fold
from penstock.sql.query.nesting import Unclear
from penstock.sql.query.reading import Cte, Select, read_query, selects
from penstock.sql.tokens import Token


def selects_all(tokens: Sequence[Token]) -> bool:
    """Return whether a SELECT has ``*`` of what is not a query of the same text; True in doubt."""
    try:
        query = read_query(tokens)
        return any(_has_star(tokens, select, seen) for select, seen, _ in selects(tokens, query))
    except Unclear:
        return any(token.text == "*" for token in tokens)


def _has_star(tokens: Sequence[Token], select: Select, seen: Sequence[Cte]) -> bool:
    if not select.understood:
        return True
    names = {cte.name for cte in seen}
    own = [each for each in select.sources if each.query is not None or each.table in names]
    known = {fold(each.name) for each in own}
    return any(
        name not in known if name else len(own) < len(select.sources)
        for _, name, _ in select.stars(tokens)
    )
