"""The SELECTs of a query as a structure over its words: WITH, set operations, FROM, clauses.

Only what stands in WITH and FROM is taken apart. What it is not sure of is `Unclear`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.sql.identifiers import fold
from penstock.sql.tokens import NAME, WORD, Token, closing, depth_of, may_be_alias

Range = tuple[int, int]  # ``tokens[first:last]``
_CLAUSES = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH"}
    | {"SORT", "CLUSTER", "DISTRIBUTE"}
)
_BEFORE_BY = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
_SETS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_OF_JOIN = frozenset(
    {"NATURAL", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "ASOF"}
)
#: What rows a join keeps, by its words without OUTER, INNER and JOIN.
_JOINS = {"": "inner", "CROSS": "inner", "LEFT": "left", "SEMI": "half", "ANTI": "half"}
_JOINS |= {"LEFT SEMI": "half", "LEFT ANTI": "half"}
_AFTER_TABLE = frozenset({"ON", "USING", "LATERAL", "PIVOT", "UNPIVOT"})


class Unclear(Exception):
    """The structure is not one that is known; the message says what is not."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation in a FROM. ``join`` is how it is joined with those before it: "inner" (or first),
    "left", "half" (SEMI and ANTI, which show none of its columns), or "other".

    ``name`` is what its columns are qualified by, as written; ``table`` is a name of one word,
    folded. ``columns`` is the bracket that closes the list of its columns' names, ``on`` what
    follows ON; ``using``: it is joined by names. ``pivots``, ``lateral``: so it says.
    """

    join: str
    name: str = ""
    table: str = ""
    query: Query | None = None
    columns: int | None = None
    on: Range | None = None
    using: bool = False
    pivots: bool = False
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """``clauses`` are the places of their first words; ``inside`` the brackets of what is a query
    or a join in brackets, and not one of ``relations``.
    """

    first: int
    last: int
    clauses: Mapping[str, int]
    relations: tuple[Relation, ...]
    inside: tuple[Range, ...]

    def clause(self, word: str) -> Range | None:
        """Return what follows the word of a clause."""
        start = self.clauses.get(word)
        if start is None:
            return None
        later = [at for at in self.clauses.values() if at > start]
        return start + 1, min(later, default=self.last)

    def own(self, first: int, last: int) -> Iterator[int]:
        """The words from ``first`` to ``last`` that are of no query inside."""
        at = first
        skipped = dict(self._queries())
        while at < last:
            if at in skipped:
                at = skipped[at]
            else:
                yield at
                at += 1

    def _queries(self) -> Iterator[Range]:
        yield from self.inside
        for relation in self.relations:
            if relation.query is not None:
                yield relation.query.first, relation.query.last


@dataclass(frozen=True, slots=True)
class Named:
    """A query of a WITH, from its name to its closing bracket."""

    name: str
    first: int
    last: int
    columns: int | None
    query: Query


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT, or several that set operations put together; ``terms`` in brackets are
    queries.
    """

    first: int
    last: int
    named: tuple[Named, ...]
    terms: tuple[Select | Query, ...]


def read_query(tokens: Sequence[Token]) -> Query:
    """Raises Unclear."""
    return _query(tokens, 0, len(tokens))


def is_query(tokens: Sequence[Token], opening: int) -> bool:
    """Return whether a bracket opens a query."""
    at = opening + 1
    return at < len(tokens) and tokens[at].upper in {"SELECT", "WITH", "FROM", "TABLE"}


def outermost(tokens: Sequence[Token], first: int, last: int) -> Iterator[int]:
    """The words that are in no brackets, and in no CASE; those that close them are not inside.

    A column may be called ``end``. Raises Unclear for a CASE that never ends.
    """
    level, cases = 0, list[int]()
    for at in range(first, last):
        token = tokens[at]
        level += depth_of(token)
        if token.kind == WORD and tokens[at - 1].text != ".":
            if token.upper == "CASE":
                cases.append(level)
            elif token.upper == "END" and cases and cases[-1] == level:
                cases.pop()
        if not level and not cases:
            yield at
    if cases:
        raise Unclear("a CASE has no END")


def _query(tokens: Sequence[Token], first: int, last: int) -> Query:
    at, named = first, list[Named]()
    if first < last and tokens[first].upper == "WITH":
        named, at = _with(tokens, first + 1, last)
    terms: list[Select | Query] = []
    start = at
    for at in outermost(tokens, start, last):
        if not _is_set(tokens, at):
            continue
        terms.append(_term(tokens, start, at))
        start = at + 1
        if start < last and tokens[start].upper in {"ALL", "DISTINCT"}:
            start += 1
        if start < last and tokens[start].upper == "BY":
            raise Unclear("a set operation is BY NAME")
    terms.append(_term(tokens, start, last))
    return Query(first, last, tuple(named), tuple(terms))


def _is_set(tokens: Sequence[Token], at: int) -> bool:
    if tokens[at].kind != WORD or tokens[at].upper not in _SETS or not at:
        return False
    return tokens[at - 1].text not in {"*", "."}  # * EXCEPT (column)


def _with(tokens: Sequence[Token], at: int, last: int) -> tuple[list[Named], int]:
    found: list[Named] = []
    while True:
        start, columns = at, None
        if tokens[at].kind not in {WORD, NAME} or tokens[at].upper == "RECURSIVE":
            raise Unclear("its WITH is recursive, or not understood")
        name, at = fold(tokens[at].value), at + 1
        if at < last and tokens[at].text == "(":
            columns = _closing(tokens, at)
            at = columns + 1
        if at < last and tokens[at].upper == "AS":
            at += 1
        if at >= last or tokens[at].text != "(":
            raise Unclear(f"the query {name} of its WITH is not understood")
        end = _closing(tokens, at)
        found.append(Named(name, start, end + 1, columns, _query(tokens, at + 1, end)))
        at = end + 1
        if at >= last or tokens[at].text != ",":
            return found, at
        at += 1


def _closing(tokens: Sequence[Token], at: int) -> int:
    end = closing(tokens, at)
    if end is None:
        raise Unclear("a bracket is not closed")
    return end


def _term(tokens: Sequence[Token], first: int, last: int) -> Select | Query:
    if first < last and tokens[first].text == "(" and _closing(tokens, first) == last - 1:
        return _query(tokens, first + 1, last - 1)
    if first >= last or tokens[first].upper != "SELECT":
        raise Unclear("it is not made of SELECTs")
    return _select(tokens, first, last)


def _select(tokens: Sequence[Token], first: int, last: int) -> Select:
    clauses: dict[str, int] = {}
    for at in outermost(tokens, first, last):
        if _is_clause(tokens, at, last):
            clauses.setdefault(tokens[at].upper, at)
    start = clauses.get("FROM")
    if start is None:
        return Select(first, last, clauses, (), tuple(_inside(tokens, first, last, ())))
    end = min((at for at in clauses.values() if at > start), default=last)
    relations, joins = _relations(tokens, start + 1, end)
    read = tuple((each.query.first, each.query.last) for each in relations if each.query)
    inside = tuple(_inside(tokens, first, last, read))
    return Select(first, last, clauses, tuple(relations), (*inside, *joins))


def _is_clause(tokens: Sequence[Token], at: int, last: int) -> bool:
    token, before = tokens[at], tokens[at - 1] if at else None
    if token.kind != WORD or token.upper not in _CLAUSES:
        return False
    if before is not None and (before.text == "." or before.upper == "DISTINCT"):
        return False  # a column, or IS DISTINCT FROM
    by = tokens[at + 1].upper if at + 1 < last else ""
    return token.upper not in _BEFORE_BY or by == "BY"


def _inside(
    tokens: Sequence[Token], first: int, last: int, read: Sequence[Range]
) -> Iterator[Range]:
    """The outermost queries that do not stand in FROM or WITH."""
    ends = dict(read)
    at = first
    while at < last:
        if at in ends:
            at = ends[at]
        elif tokens[at].text == "(" and is_query(tokens, at) and at + 1 not in ends:
            end = _closing(tokens, at)
            yield at + 1, end
            at = end
        else:
            at += 1


def _relations(tokens: Sequence[Token], at: int, last: int) -> tuple[list[Relation], list[Range]]:
    """Return what a FROM reads, and joins in brackets."""
    found, joins = list[Relation](), list[Range]()
    join = "inner"
    while True:
        start, (end, after, following) = at, _next_join(tokens, at, last)
        found.append(_relation(tokens, start, end, join, joins))
        if following is None:
            return found, joins
        at, join = after, following


def _next_join(tokens: Sequence[Token], first: int, last: int) -> tuple[int, int, str | None]:
    """Return where a relation ends, where the next begins, and how that is
    joined; None at the end.
    """
    for at in outermost(tokens, first, last):
        if tokens[at].text == ",":
            return at, at + 1, "inner"
        words, end = [], at
        while end < last and tokens[end].kind == WORD and tokens[end].upper in _OF_JOIN:
            words.append(tokens[end].upper)
            end += 1
        if end < last and tokens[end].kind == WORD and tokens[end].upper == "JOIN":
            kind = " ".join(word for word in words if word not in {"OUTER", "INNER"})
            return at, end + 1, _JOINS.get(kind, "other")
    return last, last, None


def _relation(
    tokens: Sequence[Token], at: int, last: int, join: str, joins: list[Range]
) -> Relation:
    lateral = at < last and tokens[at].upper == "LATERAL"
    at += lateral
    if at >= last:
        raise Unclear("its FROM is not understood")
    query, table, name = None, "", ""
    if tokens[at].text == "(":
        end = _closing(tokens, at)
        query = _query_in(tokens, at + 1, end)
        if query is None:
            joins.append((at + 1, end))
        at = end + 1
    elif tokens[at].kind in {WORD, NAME}:
        name, table, at = _table(tokens, at, last)
    else:
        raise Unclear("its FROM is not understood")
    if at < last and tokens[at].upper == "AS":
        at += 1
    alias, columns, at = _alias(tokens, at, last)
    rest = {tokens[each].upper: each for each in outermost(tokens, at, last)}
    on = rest.get("ON")
    return Relation(
        join,
        alias or name,
        table,
        query,
        columns,
        on=None if on is None else (on + 1, _end_of_on(tokens, on + 1, last)),
        using="USING" in rest,
        pivots=not rest.keys().isdisjoint({"PIVOT", "UNPIVOT", "TABLESAMPLE", "MATCH_RECOGNIZE"}),
        lateral=lateral,
    )


def _table(tokens: Sequence[Token], at: int, last: int) -> tuple[str, str, int]:
    """Return what its columns are qualified by, its name where that is one word, and its end."""
    start = at
    while at + 2 < last and tokens[at + 1].text == ".":
        at += 2
    name, end = tokens[at].text, at + 1
    if end < last and tokens[end].text == "(":
        return name, "", _closing(tokens, end) + 1
    return name, fold(tokens[start].value) if end == start + 1 else "", end


def _alias(tokens: Sequence[Token], at: int, last: int) -> tuple[str, int | None, int]:
    """An alias, the bracket that closes its list of columns, and its end."""
    if at >= last or not may_be_alias(tokens[at]) or tokens[at].upper in _AFTER_TABLE:
        return "", None, at
    name, at = tokens[at].text, at + 1
    if at >= last or tokens[at].text != "(":
        return name, None, at
    columns = _closing(tokens, at)
    return name, columns, columns + 1


def _query_in(tokens: Sequence[Token], first: int, last: int) -> Query | None:
    """Return what stands in brackets; None for a join, and for what is not understood."""
    try:
        return _query(tokens, first, last)
    except Unclear:
        return None


def _end_of_on(tokens: Sequence[Token], first: int, last: int) -> int:
    for at in outermost(tokens, first, last):
        if tokens[at].kind == WORD and tokens[at].upper in {"LATERAL", "PIVOT", "UNPIVOT"}:
            return at
    return last
