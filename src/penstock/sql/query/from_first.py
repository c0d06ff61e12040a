"""Write out queries that begin with FROM or TABLE with SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.sql.identifiers import fold
from penstock.sql.query.edits import Edit
from penstock.sql.tokens import NAME, NOT_CALLED, WORD, Token, depth_of

_SET_WORDS = ("UNION", "EXCEPT", "INTERSECT", "MINUS", "ALL", "DISTINCT")
_STRUCTURE = frozenset({*_SET_WORDS, "(", ")", "WITH", "SELECT", "FROM", "TABLE"})


@dataclass(slots=True)
class _Level:
    """A bracket level: whether a query begins here, and whether a WITH waits for its query."""

    fresh: bool = True
    after_with: bool = False


def from_first(tokens: Sequence[Token]) -> list[Edit]:
    """Write ``FROM x ...`` without SELECT, and ``TABLE x``, as ``SELECT * FROM x``.

    ``FROM x SELECT y`` is Spark's own and stays.
    """
    return [
        Edit(token.start, token.end, "SELECT * FROM")
        for index, token in query_starts(tokens)
        if token.upper == "TABLE" or not has_clause(tokens, index + 1, "SELECT")
    ]


def table_first(tokens: Sequence[Token]) -> list[Edit]:
    """Write ``TABLE x`` as ``SELECT * FROM x``, unless it is an argument of a function."""
    return [
        Edit(token.start, token.end, "SELECT * FROM")
        for index, token in query_starts(tokens)
        if token.upper == "TABLE" and tokens[index + 1].kind in {WORD, NAME}
        if not _is_argument(tokens, index)
    ]


def query_starts(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Yield FROM and TABLE where a query begins with them, ``f(TABLE t)`` among them."""
    levels = [_Level()]
    for index, token in enumerate(tokens):
        level = levels[-1]
        if token.upper not in _STRUCTURE:
            level.fresh = False
            continue
        begins = level.fresh or (level.after_with and tokens[index - 1].text == ")")
        if begins and _begins_query(tokens, index):
            yield index, token
        if token.text == "(":
            level.fresh = False
            levels.append(_Level())
            continue
        if token.text == ")" and len(levels) > 1:
            levels.pop()
            continue
        level.after_with = token.upper == "WITH" or (level.after_with and token.upper != "SELECT")
        level.fresh = token.upper in _SET_WORDS and (token.upper in _SET_WORDS[:4] or level.fresh)


def _begins_query(tokens: Sequence[Token], index: int) -> bool:
    if tokens[index].upper == "FROM":
        return True
    following = tokens[index + 1 : index + 2]
    return tokens[index].upper == "TABLE" and bool(following) and following[0].text != "("


def _is_argument(tokens: Sequence[Token], index: int) -> bool:
    """Return whether it is the first word in the brackets of a function."""
    opened = index > 1 and tokens[index - 1].text == "("
    caller = tokens[index - 2]
    return opened and caller.kind in {WORD, NAME} and fold(caller.text) not in NOT_CALLED


def has_clause(tokens: Sequence[Token], start: int, word: str) -> bool:
    """Return whether the SELECT around ``tokens[start]`` has this clause from there on."""
    depth = 0
    for token in tokens[start:]:
        depth += depth_of(token)
        if depth < 0 or (depth == 0 and token.upper in _SET_WORDS[:4]):
            return False
        if depth == 0 and token.upper == word:
            return True
    return False
