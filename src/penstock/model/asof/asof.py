"""ASOF JOIN as DuckDB writes it, in Spark's words; and its parts, found in Spark's text.

An ASOF JOIN found in Spark's text: its two sides, its conditions, and the query around it.

All that is known here is what the text tells; which side an unqualified column is of, and what
types there are, `penstock.model.asof.asof_plan` is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from penstock.sql.query.edits import Edit, edited
from penstock.sql.query.nesting import Unclear, and_parts, conjuncts, end_around, outermost, symbols
from penstock.sql.query.reading import Cte, Select, Source, read_query, selects
from penstock.sql.text import Span
from penstock.sql.tokens import MARKER, NAME, NUMBER, STRING, SYMBOL, WORD, Token, closing, tokenize

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
    on = condition_at(tokens, index + 1)
    if on is None:
        raise AsofError("an ASOF JOIN needs ON with one comparison", tokens[index])
    if tokens[on].upper != "ON":  # USING, or Spark's own MATCH_CONDITION
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
