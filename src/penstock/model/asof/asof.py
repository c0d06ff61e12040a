"""ASOF JOIN as DuckDB writes it, in Spark's words: edits of the text, or an error with a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from penstock.sql.query.edits import Edit, edited
from penstock.sql.query.nesting import Unclear, and_parts, conjuncts, end_around, outermost, symbols
from penstock.sql.tokens import MARKER, NUMBER, STRING, SYMBOL, Token, closing, tokenize

ASOF_SETTING = "spark.sql.join.asofJoin.enabled"


_HINT = "write ASOF JOIN t ON a.key = t.key AND a.time >= t.time"


class AsofError(Exception):
    """An ASOF JOIN that has no form in Spark; ``token`` is where it stands."""

    def __init__(self, message: str, token: Token, hint: str = _HINT) -> None:
        self.token = token
        self.hint = hint
        super().__init__(message)


# What may stand between ASOF and JOIN, and how Spark writes the two.
_KINDS: Mapping[tuple[str, ...], str] = {
    (): "ASOF JOIN",
    ("INNER",): "ASOF JOIN",
    ("LEFT",): "LEFT ASOF JOIN",
    ("LEFT", "OUTER"): "LEFT ASOF JOIN",
}
_REFUSED: Mapping[str, str] = {
    "RIGHT": "write ASOF LEFT JOIN with the tables swapped, if that is what you mean",
    "FULL": "write ASOF LEFT JOIN, and UNION ALL the rows of the right table that nothing matches",
    "SEMI": "write ASOF JOIN, and select the columns of the left table only",
    "ANTI": "write ASOF LEFT JOIN with WHERE t.key IS NULL",
}
_COMPARISONS = (">=", ">", "<=", "<")
_CLAUSES = (
    *("JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "FULL", "NATURAL", "ASOF", "LATERAL", "WHERE"),
    *("GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "WINDOW", "UNION", "EXCEPT"),
    *("INTERSECT", "MINUS", "SORT", "CLUSTER", "DISTRIBUTE", "PIVOT", "UNPIVOT", "TABLESAMPLE"),
    *("SEMI", "ANTI", "SELECT", ",", "|>", ";"),
)


def asof_joins(text: str, tokens: Sequence[Token]) -> list[Edit]:
    """``ASOF [LEFT] JOIN t ON k = k AND a >= b`` as Spark writes it:
    ``[LEFT] ASOF JOIN t MATCH_CONDITION (a >= b) ON k = k``. Raises :class:`AsofError`.

    Spark has no form of ``USING (k, time)``, which stays for `penstock.model.asof.asof_plan`.
    """
    edits: list[Edit] = []
    for index in starts(tokens):
        join = next(at for at in range(index, len(tokens)) if tokens[at].upper == "JOIN")
        kind = tuple(token.upper for token in tokens[index + 1 : join])
        if kind not in _KINDS:
            hint = _REFUSED.get(kind[0], _HINT)
            raise AsofError(f"ASOF {' '.join(kind)} JOIN is not supported", tokens[index], hint)
        if kind:
            edits.append(Edit(tokens[index].start, tokens[join].end, _KINDS[kind]))
        edits += _condition(text, tokens, join)
    return edits


def plain(text: str) -> str:
    """Spark's text as sqlglot reads it: ``ASOF LEFT JOIN t ON a >= b AND k = k``."""
    tokens = tokenize(text)
    edits: list[Edit] = []
    for at in starts(tokens):
        if tokens[at - 1].upper == "LEFT":
            edits.append(Edit(tokens[at - 1].start, tokens[at].end, "ASOF LEFT"))
    for at, token in enumerate(tokens):
        close = closing(tokens, at + 1) if token.upper == "MATCH_CONDITION" else None
        if close is not None:
            edits.append(Edit(token.start, token.end, "ON"))
            following = tokens[close + 1 : close + 2]
            edits += [Edit(on.start, on.end, "AND") for on in following if on.upper == "ON"]
    return edited(text, edits).text if edits else text


def starts(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield where ASOF is that begins a join, in DuckDB's form or Spark's."""
    for index, token in enumerate(tokens):
        following = [word.upper for word in tokens[index + 1 : index + 4]]
        if token.upper == "ASOF" and "JOIN" in following:
            kind = following[: following.index("JOIN")]
            if all(word in _WORDS for word in kind):
                yield index


_WORDS = frozenset({"INNER", "LEFT", "OUTER", "RIGHT", "FULL", "SEMI", "ANTI"})


def _condition(text: str, tokens: Sequence[Token], index: int) -> list[Edit]:
    on = _find_on(tokens, index)
    if on is None:
        return []
    whole = clause(tokens, on + 1)
    if not whole:
        raise AsofError("an ASOF JOIN needs ON with one comparison", tokens[on])
    groups = conjuncts(whole)
    matching = [group for group in groups if _compares_sides(group)]
    if len(matching) != 1:
        raise AsofError(
            f"an ASOF JOIN has one comparison such as a.time >= b.time, here {len(matching)}",
            tokens[on],
        )
    match = matching[0]
    others = [group for group in groups if group is not match]
    start, end = tokens[on].start, whole[-1].end
    keys = " AND ".join(text[group[0].start : group[-1].end] for group in others)
    condition = text[match[0].start : match[-1].end]
    line_ends = "\n" * text.count("\n", start, end)
    lost = line_ends[: len(line_ends) - (condition + keys).count("\n")]
    rewritten = f"MATCH_CONDITION ({condition})" + (f" ON {keys}" if keys else "") + lost
    return [Edit(start, end, rewritten)]


def _find_on(tokens: Sequence[Token], index: int) -> int | None:
    """The ON of the join; ``None`` when USING or Spark's own MATCH_CONDITION stands there."""
    at = condition_at(tokens, index + 1)
    if at is None:
        raise AsofError("an ASOF JOIN needs ON with one comparison", tokens[index])
    return at if tokens[at].upper == "ON" else None


def condition_at(tokens: Sequence[Token], start: int) -> int | None:
    """Return where the condition of a join begins whose right side begins at ``start``."""
    words = ("MATCH_CONDITION", "USING", "ON")
    return next(
        (at for at in _outside(tokens, start) if at > start and tokens[at].upper in words), None
    )


def clause(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """The words of a condition, up to the next clause of its query."""
    ends = (at for at in _outside(tokens, start) if tokens[at].upper in _CLAUSES)
    return tokens[start : next(ends, end_around(tokens, start))]


def _outside(tokens: Sequence[Token], start: int) -> Iterator[int]:
    """Yield the words from ``start`` on in no brackets and no CASE, up to the end of the query."""
    with suppress(Unclear):
        yield from outermost(tokens, start, end_around(tokens, start))


def comparison(group: Sequence[Token]) -> int | None:
    """Return where the comparison of an ASOF JOIN stands in one of its conditions."""
    plain = and_parts(group, 0, len(group)) is not None
    places = symbols(group, _COMPARISONS) if plain else []
    return places[0] if places else None


def _compares_sides(group: Sequence[Token]) -> bool:
    """Return whether a comparison may be one of the two sides: not with a constant, or inside of
    one.
    """
    at = comparison(group)
    if at is None:
        return False
    halves = (group[:at], group[at + 1 :])
    if any(all(_is_constant(token) for token in half) for half in halves):
        return False
    first, second = (
        {before.value.lower() for before, dot in pairwise(half) if dot.text == "."}
        for half in halves
    )
    return not first or not second or first != second


def _is_constant(token: Token) -> bool:
    return token.kind in {NUMBER, STRING, MARKER, SYMBOL} or token.upper in {"DATE", "TIMESTAMP"}
