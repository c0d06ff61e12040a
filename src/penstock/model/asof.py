"""ASOF JOIN as DuckDB writes it, in Spark's words: edits of the text, or an error with a place."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.mapping import Edit
from penstock.sql.tokens import Token

ASOF_SETTING = "spark.sql.join.asofJoin.enabled"


class AsofError(Exception):
    """An ASOF JOIN that has no form in Spark; ``token`` is where it stands."""

    def __init__(self, message: str, token: Token) -> None:
        self.token = token
        super().__init__(message)


_COMPARISONS = (">=", ">", "<=", "<")
_CLAUSES = (
    *("JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "FULL", "NATURAL", "ASOF", "LATERAL", "WHERE"),
    *("GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "WINDOW", "UNION", "EXCEPT"),
    *("INTERSECT", "MINUS", "SORT", "CLUSTER", "DISTRIBUTE", "PIVOT", "UNPIVOT", "TABLESAMPLE"),
    *("SEMI", "ANTI", ",", ")"),
)


def asof_joins(text: str, tokens: Sequence[Token]) -> list[Edit]:
    """``ASOF [LEFT] JOIN t ON k = k AND a >= b`` as Spark writes it:
    ``[LEFT] ASOF JOIN t MATCH_CONDITION (a >= b) ON k = k``. Raises :class:`AsofError`.
    """
    edits: list[Edit] = []
    for index, token in enumerate(tokens):
        if token.upper == "ASOF" and {"JOIN", "LEFT"} & set(_words(tokens, index + 1, 2)):
            edits += _order(tokens, index)
            edits += _condition(text, tokens, index)
    return edits


def _words(tokens: Sequence[Token], start: int, count: int) -> list[str]:
    return [token.upper for token in tokens[start : start + count]]


def _order(tokens: Sequence[Token], index: int) -> list[Edit]:
    """LEFT comes before ASOF in Spark."""
    if _words(tokens, index + 1, 1) != ["LEFT"]:
        return []
    return [Edit(tokens[index].start, tokens[index + 1].end, "LEFT ASOF")]


def _condition(text: str, tokens: Sequence[Token], index: int) -> list[Edit]:
    on = _find_on(tokens, index)
    if on is None:
        return []
    conjuncts = _conjuncts(tokens, on + 1)
    matching = [group for group in conjuncts if _compares(group)]
    if len(matching) != 1:
        raise AsofError(
            f"an ASOF JOIN has one comparison such as a.time >= b.time, here {len(matching)}",
            tokens[on],
        )
    match = matching[0]
    others = [group for group in conjuncts if group is not match]
    start, end = tokens[on].start, conjuncts[-1][-1].end
    keys = " AND ".join(text[group[0].start : group[-1].end] for group in others)
    condition = text[match[0].start : match[-1].end]
    line_ends = "\n" * text.count("\n", start, end)
    lost = line_ends[: len(line_ends) - (condition + keys).count("\n")]
    rewritten = f"MATCH_CONDITION ({condition})" + (f" ON {keys}" if keys else "") + lost
    return [Edit(start, end, rewritten)]


def _find_on(tokens: Sequence[Token], index: int) -> int | None:
    """The ON of the join; ``None`` when Spark's own MATCH_CONDITION stands there."""
    depth = 0
    for position in range(index + 1, len(tokens)):
        token = tokens[position]
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.upper == "MATCH_CONDITION":
            return None
        if depth == 0 and token.upper == "USING":
            raise AsofError("an ASOF JOIN needs its condition after ON, not USING", token)
        if depth == 0 and token.upper == "ON":
            return position
        if depth < 0:
            break
    raise AsofError("an ASOF JOIN needs ON with one comparison", tokens[index])


def _conjuncts(tokens: Sequence[Token], start: int) -> list[list[Token]]:
    """The condition cut at AND; brackets, CASE and BETWEEN keep theirs."""
    groups: list[list[Token]] = [[]]
    depth = pending = 0
    for token in tokens[start:]:
        depth += token.upper in {"(", "CASE"}
        if depth == 0 and token.upper in _CLAUSES:
            break
        depth -= token.upper in {")", "END"}
        pending += depth == 0 and token.upper == "BETWEEN"
        if depth == 0 and token.upper == "AND" and not pending:
            groups.append([])
            continue
        pending -= depth == 0 and token.upper == "AND" and pending > 0
        groups[-1].append(token)
    return [group for group in groups if group]


def _compares(group: Sequence[Token]) -> bool:
    depth = 0
    for token in group:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text in _COMPARISONS:
            return True
    return False
