"""An ASOF JOIN found in Spark's text: its two sides, its conditions, and the query around it.

All that is known here is what the text tells; which side an unqualified column is of, and what
types there are, `penstock.model.asof.asof_plan` is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.asof.asof import clause, comparison, condition_at, conjuncts, level, starts
from penstock.sql.text import Span, Unreadable, parse_query
from penstock.sql.tokens import NAME, WORD, Token, closing, depth_of, tokenize
from penstock.sql.trees import exp

PAIR = "penstock_asof_"  # what the pairs of rows are called in the text
_SET_WORDS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
_HIDING = ("SEMI", "ANTI")


class NotPlanned(Exception):
    """Why an ASOF JOIN is left to Spark."""


@dataclass(frozen=True, slots=True)
class AsofJoin:
    """``text[start:end]`` is the join without its left side.

    ``left`` and ``right`` are the spans of its sides, ``lefts`` and ``right_name`` the names that
    their columns are qualified with. ``match`` is the comparison, ``on`` what else has to hold,
    ``using`` the columns of USING, the last of which is the time where ``match`` is empty.
    ``stars`` are places in the SELECT list where each column of the join is meant; ``where`` are
    the conditions of the query that rows of the left side can be left out by; ``scope`` is the
    query's span; ``tables`` are the common tables that it sees.
    """

    text: str
    tokens: Sequence[Token]
    start: int
    end: int
    outer: bool
    left: Span
    right: Span
    lefts: tuple[str, ...]
    right_name: str
    match: Sequence[Token]
    on: Sequence[Sequence[Token]]
    using: tuple[str, ...]
    stars: tuple[int, ...]
    where: Sequence[Sequence[Token]]
    scope: Span
    tables: tuple[Span, ...]

    @property
    def with_tables(self) -> str:
        """The WITH that a query of its own needs to read its sides."""
        named = ", ".join(self.text[start:end] for start, end in self.tables)
        return f"WITH {named} " if named else ""

    def within(self, span: Span) -> list[Token]:
        return [token for token in self.tokens if span[0] <= token.start < span[1]]


def find_join(text: str, skip: int) -> AsofJoin | None:
    """The first ASOF JOIN but ``skip``; ``None`` where there are no more. Raises NotPlanned."""
    tokens = tokenize(text)
    places = list(starts(tokens))
    return _read(text, tokens, places[skip]) if skip < len(places) else None


def _read(text: str, tokens: Sequence[Token], asof: int) -> AsofJoin:
    before = asof - 1 if tokens[asof - 1].upper in {"LEFT", "INNER"} else asof
    from_, comma = _from(tokens, before - 1)
    left = (tokens[comma + 1].start, tokens[before - 1].end)
    after = condition_at(tokens, asof + 2)
    if after is None:
        raise NotPlanned("it has no condition")
    right = (tokens[asof + 2].start, tokens[after - 1].end)
    match, on, using, end = _conditions(tokens, after)
    rest = _rest(tokens, end)
    select = _select(tokens, from_)
    lefts, (right_name,) = _names(text[slice(*left)]), _names(text[slice(*right)], single=True)
    if right_name in lefts:
        raise NotPlanned("two tables of it have one name")
    return AsofJoin(
        text,
        tokens,
        tokens[before].start,
        tokens[end - 1].end,
        tokens[before].upper == "LEFT",
        left,
        right,
        lefts,
        right_name,
        match,
        on,
        using,
        _stars(tokens, select, from_),
        _where(rest),
        (tokens[select].start, rest[-1].end if rest else tokens[end - 1].end),
        tuple(_visible(tokens, select)),
    )


def _from(tokens: Sequence[Token], last: int) -> tuple[int, int]:
    """The FROM of the join, and what its left side comes after: that or a comma."""
    comma = None
    depth = 0
    for at in range(last, -1, -1):
        token = tokens[at]
        depth -= level(token)
        if depth < 0:
            break
        if depth == 0 and token.text == "," and comma is None:
            comma = at
        if depth == 0 and token.upper == "VALUES":
            comma = None  # it was between rows
        if depth == 0 and token.upper == "FROM" and tokens[at - 1].upper != "DISTINCT":
            return at, at if comma is None else comma
    raise NotPlanned("it is inside of brackets with other joins")


def _select(tokens: Sequence[Token], from_: int) -> int:
    depth = 0
    for at in range(from_ - 1, -1, -1):
        depth -= level(tokens[at])
        if depth < 0:
            break
        if depth == 0 and tokens[at].upper == "SELECT":
            return at
    raise NotPlanned("its query does not begin with SELECT")


def _conditions(
    tokens: Sequence[Token], at: int
) -> tuple[Sequence[Token], Sequence[Sequence[Token]], tuple[str, ...], int]:
    """The comparison, what else has to hold, the columns of USING, and where all that ends."""
    match: Sequence[Token] = ()
    if tokens[at].upper == "MATCH_CONDITION":
        close = _close(tokens, at + 1)
        match, at = tokens[at + 2 : close], close + 1
        if comparison(match) is None:
            raise NotPlanned("its MATCH_CONDITION is not one comparison")
    following = tokens[at].upper if at < len(tokens) else ""
    if following == "USING":
        close = _close(tokens, at + 1)
        names = [t.value for t in tokens[at + 2 : close] if t.kind in {WORD, NAME}]
        return match, (), tuple(names), close + 1
    if following == "ON":
        condition = clause(tokens, at + 1)
        return match, conjuncts(condition), (), at + 1 + len(condition)
    return match, (), (), at


def _close(tokens: Sequence[Token], opening: int) -> int:
    close = closing(tokens, opening)
    if close is None:
        raise NotPlanned("a bracket is not closed")
    return close


def _rest(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """What follows the join in its query."""
    depth = 0
    for at in range(start, len(tokens)):
        depth += depth_of(tokens[at])
        if depth < 0 or (depth == 0 and tokens[at].upper in _SET_WORDS):
            return tokens[start:at]
    return tokens[start:]


def _outside(tokens: Sequence[Token], word: str) -> int | None:
    """Where a word stands outside of brackets."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += level(token)
        if depth == 0 and token.upper == word:
            return at
    return None


def _where(rest: Sequence[Token]) -> list[Sequence[Token]]:
    """The conditions of WHERE, unless a join after this one makes rows whose left side is NULL."""
    for word in ("PIVOT", "UNPIVOT", "|>", "NATURAL"):
        if _outside(rest, word) is not None:
            raise NotPlanned(f"{word} follows it")
    where = _outside(rest, "WHERE")
    joins = rest if where is None else rest[:where]
    if where is None or any(_outside(joins, word) is not None for word in ("RIGHT", "FULL")):
        return []
    return conjuncts(clause(rest, where + 1))


def _names(text: str, *, single: bool = False) -> tuple[str, ...]:
    """What columns of a side are qualified with, in small letters."""
    try:
        tree = parse_query(f"SELECT * FROM {text}", "databricks")
    except Unreadable:
        raise NotPlanned("one of its sides cannot be read") from None
    if not isinstance(tree, exp.Select):
        raise NotPlanned("one of its sides cannot be read")
    joins: list[exp.Join] = tree.args.get("joins") or []
    start = tree.args.get("from_")
    if start is None or tree.args.get("laterals") or (single and joins):
        raise NotPlanned("one of its sides is not a table or a subquery")
    for join in joins:
        if join.args.get("using") or join.method == "NATURAL":
            raise NotPlanned("a join before it has USING or is NATURAL")
    visible = [start.this, *(join.this for join in joins if join.kind not in _HIDING)]
    names = tuple(_name(item) for item in visible)
    if len(set(names)) < len(names):
        raise NotPlanned("two tables of it have one name")
    return names


def _name(item: exp.Expr) -> str:
    name = item.alias_or_name if isinstance(item, exp.Table) else item.alias
    if not name or item.args.get("joins") or item.args.get("pivots"):
        raise NotPlanned("a subquery in it has no name")
    return str(name).lower()


def _stars(tokens: Sequence[Token], select: int, from_: int) -> tuple[int, ...]:
    """Where ``*`` stands for all columns in a SELECT list. Raises NotPlanned for one in a call."""
    stars = []
    depth = 0
    for at in range(select + 1, from_):
        depth += level(tokens[at])
        before = tokens[at - 1]
        if tokens[at].text != "*" or (before.text not in {",", "("} and not _opens(before)):
            continue
        if depth == 0:
            stars.append(at)
        elif tokens[at - 2].upper not in {"COUNT", "SELECT"} and before.upper != "SELECT":
            raise NotPlanned("a * stands in a call")
    return tuple(stars)


def _opens(token: Token) -> bool:
    return token.upper in {"SELECT", "DISTINCT", "ALL"}


def _visible(tokens: Sequence[Token], end: int) -> list[Span]:
    """The common tables that a query sees which begins at ``end``, outer ones first."""
    levels: list[list[Span]] = [[]]
    at = 0
    while at < end:
        at = _step(tokens, at, end, levels)
    return [span for spans in levels for span in spans]


def _step(tokens: Sequence[Token], at: int, end: int, levels: list[list[Span]]) -> int:
    token = tokens[at]
    if token.upper == "WITH" or (token.text == "," and tokens[at - 1].text == ")" and levels[-1]):
        if tokens[at + 1].upper == "RECURSIVE":
            raise NotPlanned("it is beside a recursive common table")
        opening = _body(tokens, at + 1)
        close = None if opening is None else closing(tokens, opening)
        if opening is not None and close is not None:
            if close < end:
                levels[-1].append((tokens[at + 1].start, tokens[close].end))
                return close + 1
            levels.append([])
            return opening + 1
    if depth_of(token) > 0:
        levels.append([])
    elif depth_of(token) < 0 and len(levels) > 1:
        levels.pop()
    return at + 1


def _body(tokens: Sequence[Token], at: int) -> int | None:
    """The bracket that opens a common table's query: ``name [(columns)] AS (``."""
    if at >= len(tokens) or tokens[at].kind not in {WORD, NAME}:
        return None
    opening = at + 1
    if tokens[opening].text == "(":
        close = closing(tokens, opening)
        opening = opening if close is None else close + 1
    if tokens[opening].upper != "AS":
        return None
    opening += 1
    return opening if tokens[opening].text == "(" else None
