"""An ASOF JOIN found in Spark's text: its two sides, its conditions, and the query around it.

All that is known here is what the text tells; which side an unqualified column is of, and what
types there are, `penstock.model.asof.asof_plan` is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.asof.asof import comparison, starts
from penstock.sql.query.nesting import Unclear, conjuncts, outermost
from penstock.sql.query.reading import Cte, Select, Source, read_query, selects
from penstock.sql.text import Span
from penstock.sql.tokens import NAME, WORD, Token, tokenize

PAIR = "penstock_asof_"  # what the pairs of rows are called in the text


class NotPlanned(Exception):
    """The reason why an ASOF JOIN is left to Spark."""


@dataclass(frozen=True, slots=True)
class AsofJoin:
    """``text[start:end]`` is the join without its left side.

    ``left`` and ``right`` are the spans of its sides, ``lefts`` and ``right_name`` the names that
    their columns are qualified with. ``match`` is the comparison, ``on`` what else has to hold,
    ``using`` the columns of USING, the last of which is the time where ``match`` is empty.
    ``stars`` are places in the SELECT list where each column of the join is meant, ``items`` the
    offsets of items of three words, as a column and its table are; ``where`` are
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
    items: tuple[int, ...]
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
    if skip >= len(places):
        return None
    try:
        return _join(text, tokens, _around(tokens, places[skip]))
    except Unclear as reason:
        raise NotPlanned(str(reason)) from None


Found = tuple[Select, int, tuple[Cte, ...], bool]


def _around(tokens: Sequence[Token], asof: int) -> Found:
    """The SELECT of the join, which of its sources that adds, the common tables it sees, and
    whether they are recursive.
    """
    reason = "it is inside of brackets with other joins"
    for part, seen, recursive in selects(tokens, read_query(tokens, whole=False)):
        if not part.understood and part.first <= asof < part.last:
            reason = "its query does not begin with SELECT"
        for number, source in enumerate(part.sources):
            if source.joined <= asof < source.first:
                return part, number, seen, recursive
    raise NotPlanned(reason)


def _join(text: str, tokens: Sequence[Token], found: Found) -> AsofJoin:
    select, number, seen, recursive = found
    source, before = select.sources[number], select.sources[:number]
    first = max(n for n, each in enumerate(before) if not n or tokens[each.joined].text == ",")
    left = (tokens[before[first].first].start, tokens[source.joined - 1].end)
    if not (source.on or source.using or source.match):
        raise NotPlanned("it has no condition")
    right = (tokens[source.first].start, tokens[source.last - 1].end)
    match = tokens[slice(*source.match)] if source.match else ()
    if match and comparison(match) is None:
        raise NotPlanned("its MATCH_CONDITION is not one comparison")
    where = _where(tokens, select, number)
    lefts = _names(tokens, before[first:], source.joined)
    (right_name,) = _names(tokens, [source], source.last)
    if right_name in lefts:
        raise NotPlanned("two tables of it have one name")
    stars = [each for each in select.stars(tokens) if not each[1] and each[0] < before[0].joined]
    if not all(listed for _, _, listed in stars):
        raise NotPlanned("a * stands in a call")
    if recursive:
        raise NotPlanned("it is beside a recursive common table")
    using = tokens[slice(*source.using)] if source.using else ()
    return AsofJoin(
        text,
        tokens,
        tokens[source.joined].start,
        tokens[source.end - 1].end,
        tokens[source.joined].upper == "LEFT",
        left,
        right,
        lefts,
        right_name,
        match,
        conjuncts(tokens[slice(*source.on)]) if source.on else (),
        tuple(token.value for token in using if token.kind in {WORD, NAME}),
        tuple(at for at, _, _ in stars),
        tuple(tokens[first].start for first, last in select.items(tokens) if last == first + 3),
        where,
        (tokens[select.first].start, tokens[select.last - 1].end),
        tuple((tokens[cte.first].start, tokens[cte.last - 1].end) for cte in seen),
    )


def _where(tokens: Sequence[Token], select: Select, number: int) -> list[Sequence[Token]]:
    """The conditions of WHERE, unless a join after this one makes rows whose left side is NULL."""
    following = {
        tokens[at].upper for at in outermost(tokens, select.sources[number].end, select.last)
    }
    for word in ("PIVOT", "UNPIVOT", "|>", "NATURAL"):
        if word in following:
            raise NotPlanned(f"{word} follows it")
    joins = [tokens[each.joined : each.first] for each in select.sources[number + 1 :]]
    where = select.clause("WHERE")
    if where is None or any(word.upper in {"RIGHT", "FULL"} for join in joins for word in join):
        return []
    return conjuncts(tokens[slice(*where)])


def _names(tokens: Sequence[Token], sources: Sequence[Source], end: int) -> tuple[str, ...]:
    """Return what columns of a side are qualified with, in small letters; it ends at ``end``."""
    side = {tokens[at].upper for at in outermost(tokens, sources[0].first, end)}
    if "LATERAL" in side:
        raise NotPlanned("one of its sides is not a table or a subquery")
    if "NATURAL" in side or any(source.using for source in sources[1:]):
        raise NotPlanned("a join before it has USING or is NATURAL")
    if "ASOF" in side:  # one that is not planned, or not yet
        raise NotPlanned("one of its sides cannot be read")
    shown = [source for source in sources if source.join != "half"]
    names = tuple(source.name.strip("`").lower() for source in shown)
    bare = any(source.name.upper() == "VALUES" for source in shown)
    if bare or not all(names) or not side.isdisjoint({"PIVOT", "UNPIVOT"}):
        raise NotPlanned("a subquery in it has no name")
    if len(set(names)) < len(names):
        raise NotPlanned("two tables of it have one name")
    return names
