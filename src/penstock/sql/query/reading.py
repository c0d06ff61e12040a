"""Read the SELECTs of a query as a structure over its words: WITH, set operations, FROM, clauses.

Only what stands in WITH and FROM is taken apart. It is read from the words, and not from a tree:
sqlglot's trees have no places of their clauses, and it does not read all that Spark does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from penstock.sql.identifiers import fold
from penstock.sql.query.nesting import Range, Unclear, closing_of, end_around, outermost
from penstock.sql.tokens import NAME, WORD, Token, closing, may_be_alias

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
_CONDITIONS = frozenset({"MATCH_CONDITION", "ON", "USING"})
_AFTER_TABLE = _CONDITIONS | {"LATERAL", "PIVOT", "UNPIVOT"}
_ODD = frozenset({"PIVOT", "UNPIVOT", "TABLESAMPLE", "MATCH_RECOGNIZE"})


@dataclass(frozen=True, slots=True)
class Source:
    """A table, query or function that a FROM reads, from ``first`` to ``last``, with its alias.

    ``joined`` is the first word that joins it (FROM, a comma, LEFT), ``end`` past the condition of
    that. ``join`` is how it is joined with those before it: "inner" (or first), "left", "half"
    (SEMI and ANTI, which show none of its columns), or "other". ``name`` is what its columns are
    qualified by, as written; ``table`` is a name of one word, folded. ``columns`` is the bracket
    that closes the list of its columns' names, ``on`` what follows ON, ``using`` and ``match`` what
    is in the brackets of USING and MATCH_CONDITION. ``pivots``, ``lateral``: so it says.
    """

    joined: int
    first: int
    last: int
    end: int
    join: str
    name: str = ""
    table: str = ""
    query: Query | None = None
    columns: int | None = None
    on: Range | None = None
    using: Range | None = None
    match: Range | None = None
    pivots: bool = False
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """``clauses`` are the places of their first words; ``inside`` the brackets of what is a query
    or a join in brackets, and not one of ``sources``.

    What is not ``understood`` does not begin with SELECT, or has clauses behind brackets.
    """

    first: int
    last: int
    clauses: Mapping[str, int]
    sources: tuple[Source, ...]
    inside: tuple[Range, ...]
    understood: bool = True

    def clause(self, word: str) -> Range | None:
        """Return what follows the word of a clause."""
        start = self.clauses.get(word)
        if start is None:
            return None
        later = [at for at in self.clauses.values() if at > start]
        return start + 1, min(later, default=self.last)

    def own(self, first: int, last: int) -> Iterator[int]:
        """Yield the words from ``first`` to ``last`` that are of no query inside."""
        at = first
        queries = (source.query for source in self.sources)
        skipped = dict([*self.inside, *((each.first, each.last) for each in queries if each)])
        while at < last:
            if at in skipped:
                at = skipped[at]
            else:
                yield at
                at += 1

    def items(self, tokens: Sequence[Token]) -> list[Range]:
        """Return the items of its list."""
        return list(list_items(tokens, self.first))

    def stars(self, tokens: Sequence[Token]) -> Iterator[tuple[int, str, bool]]:
        """Yield each ``*`` that stands for columns and is not counted: its place, the folded name
        before it, and whether it is an item of the list.
        """
        listed = set(outermost(tokens, self.first, self.clauses.get("FROM", self.last)))
        for at in self.own(self.first + 1, self.last):
            before, called = tokens[at - 1], tokens[at - 2].upper
            if tokens[at].text == "*" and before.text == ".":
                yield at, fold(tokens[at - 2].value), at in listed
            elif tokens[at].text == "*" and not (before.text == "(" and called == "COUNT"):
                opens = before.text in {",", "("} or before.upper in {"SELECT", "DISTINCT", "ALL"}
                if opens:
                    yield at, "", at in listed


def list_items(tokens: Sequence[Token], select: int) -> Iterator[Range]:
    """Yield the items of the list of the SELECT at ``select``, whatever the query around it is."""
    first, last = select + 1, end_around(tokens, select)
    words = [token.upper for token in tokens[first : first + 2]]
    if words[:1] in (["DISTINCT"], ["ALL"]):
        end = closing(tokens, first + 2) if words == ["DISTINCT", "ON"] else first
        first = first if end is None else end + 1
    with suppress(Unclear):
        for at in outermost(tokens, first, last):
            if _is_clause(tokens, at, last) or _is_set(tokens, at) or tokens[at].text == ";":
                last = at
                break
            if tokens[at].text == ",":
                yield first, at
                first = at + 1
    yield first, last


@dataclass(frozen=True, slots=True)
class Cte:
    """A query of a WITH, from its name to its closing bracket."""

    name: str
    first: int
    last: int
    columns: int | None
    query: Query


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT, or several that set operations put together; ``terms`` in brackets are queries.

    ``doubt`` is what is not understood of how they are put together.
    """

    first: int
    last: int
    ctes: tuple[Cte, ...]
    terms: tuple[Select | Query, ...]
    recursive: bool = False
    doubt: str | None = None

    @property
    def unclear(self) -> str | None:
        """Return why its rows are not known to be those of SELECTs; None where they are."""
        if self.recursive or self.doubt:
            return self.doubt or "its WITH is recursive, or not understood"
        inner = [cte.query for cte in self.ctes]
        inner += [term for term in self.terms if isinstance(term, Query)]
        if any(isinstance(term, Select) and not term.understood for term in self.terms):
            return "it is not made of SELECTs"
        return next((why for query in inner if (why := query.unclear) is not None), None)


def read_query(tokens: Sequence[Token], *, whole: bool = True) -> Query:
    """Read all words of a query. Raises Unclear for what is not understood; unless it has to be
    the ``whole``, only where that leaves no structure at all.
    """
    query = _query(tokens, 0, len(tokens))
    if whole and query.unclear is not None:
        raise Unclear(query.unclear)
    return query


def selects(
    tokens: Sequence[Token], query: Query, seen: tuple[Cte, ...] = (), *, recursive: bool = False
) -> Iterator[tuple[Select, tuple[Cte, ...], bool]]:
    """Yield every part of a query, also of those in its expressions, with the tables of WITHs that
    it sees, and whether a WITH around it is ``recursive``.
    """
    recursive = recursive or query.recursive
    for cte in query.ctes:
        yield from selects(tokens, cte.query, seen, recursive=recursive)
        seen = (*seen, cte)
    for term in query.terms:
        inner: list[Query | None] = [term] if isinstance(term, Query) else []
        if isinstance(term, Select):
            yield term, seen, recursive
            inner += [source.query for source in term.sources]
            opened = [each for each in term.inside if is_query(tokens, each[0] - 1)]
            inner += [query_in(tokens, *each, whole=False) for each in opened]
        for each in inner:
            if each is not None:
                yield from selects(tokens, each, seen, recursive=recursive)


class Head(NamedTuple):
    """The beginning of a query of a WITH: its name, the bracket that closes its list of columns,
    and the brackets around the query.
    """

    name: str
    first: int
    columns: int | None
    opening: int
    closing: int


def heads(tokens: Sequence[Token], at: int, last: int) -> Iterator[Head]:
    """Yield those of the WITH at ``at``, in order. Raises Unclear at what is not understood."""
    at += 1 + (at + 1 < last and tokens[at + 1].upper == "RECURSIVE")
    while True:
        first, columns = at, None
        if at >= last or tokens[at].kind not in {WORD, NAME}:
            raise Unclear("its WITH is recursive, or not understood")
        at += 1
        if at < last and tokens[at].text == "(" and not is_query(tokens, at):
            columns = closing_of(tokens, at)
            at = columns + 1
        while at < last and tokens[at].text not in {"(", ",", ")"}:
            at += 1  # [MAX RECURSION LEVEL n] AS [NOT MATERIALIZED]
        name = fold(tokens[first].value)
        if at >= last or tokens[at].text != "(":
            raise Unclear(f"the query {name} of its WITH is not understood")
        end = closing_of(tokens, at)
        yield Head(name, first, columns, at, end)
        if end + 1 >= last or tokens[end + 1].text != ",":
            return
        at = end + 2


def leading_heads(tokens: Sequence[Token]) -> list[Head]:
    """Return the queries of a leading WITH that has a query behind it."""
    found: list[Head] = []
    if tokens and tokens[0].upper == "WITH":
        with suppress(Unclear):
            found = list(heads(tokens, 0, len(tokens)))
    return found if found and found[-1].closing + 1 < len(tokens) else []


def is_query(tokens: Sequence[Token], opening: int) -> bool:
    """Return whether a bracket opens a query."""
    at = opening + 1
    return at < len(tokens) and tokens[at].upper in {"SELECT", "WITH", "FROM", "TABLE"}


def _query(tokens: Sequence[Token], first: int, last: int) -> Query:
    start, ctes, recursive = first, list[Cte](), False
    doubt: str | None = None
    if first < last and tokens[first].upper == "WITH":
        recursive = any(token.upper == "RECURSIVE" for token in tokens[first + 1 : first + 2])
        for head in heads(tokens, first, last):
            query = _query(tokens, head.opening + 1, head.closing)
            ctes.append(Cte(head.name, head.first, head.closing + 1, head.columns, query))
            start = head.closing + 1
    terms: list[Select | Query] = []
    for at in outermost(tokens, start, last):
        if not _is_set(tokens, at):
            continue
        terms.append(_term(tokens, start, at))
        start = at + 1
        if start < last and tokens[start].upper in {"ALL", "DISTINCT"}:
            start += 1
        if start < last and tokens[start].upper == "BY":
            start, doubt = start + 2, "a set operation is BY NAME"
    terms.append(_term(tokens, start, last))
    return Query(first, last, tuple(ctes), tuple(terms), recursive, doubt)


def _is_set(tokens: Sequence[Token], at: int) -> bool:
    if tokens[at].kind != WORD or tokens[at].upper not in _SETS or not at:
        return False
    return tokens[at - 1].text not in {"*", "."}  # * EXCEPT (column)


def _term(tokens: Sequence[Token], first: int, last: int) -> Select | Query:
    if first < last and tokens[first].text == "(" and closing_of(tokens, first) == last - 1:
        return _query(tokens, first + 1, last - 1)
    if first >= last or tokens[first].upper != "SELECT":
        inside = tuple(_inside(tokens, first, last, ()))
        return Select(first, last, {}, (), inside, understood=False)
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
    sources, joins = _sources(tokens, start, end)
    read = tuple((each.query.first, each.query.last) for each in sources if each.query)
    inside = tuple(_inside(tokens, first, last, read))
    return Select(first, last, clauses, tuple(sources), (*inside, *joins))


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
    """Yield the outermost queries that do not stand in FROM or WITH."""
    ends = dict(read)
    at = first
    while at < last:
        if at in ends:
            at = ends[at]
        elif tokens[at].text == "(" and is_query(tokens, at) and at + 1 not in ends:
            end = closing_of(tokens, at)
            yield at + 1, end
            at = end
        else:
            at += 1


def _sources(tokens: Sequence[Token], joined: int, last: int) -> tuple[list[Source], list[Range]]:
    """Return what a FROM reads, and joins in brackets."""
    found, joins = list[Source](), list[Range]()
    at, join = joined + 1, "inner"
    while True:
        end, after, following = _next_join(tokens, at, last)
        found.append(_source(tokens, (joined, at, end), join, joins))
        if following is None:
            return found, joins
        joined, at, join = end, after, following


def _next_join(tokens: Sequence[Token], first: int, last: int) -> tuple[int, int, str | None]:
    """Return where a source ends, where the next begins, and how that is
    joined; None at the end.
    """
    rows = first < last and tokens[first].upper == "VALUES"
    for at in outermost(tokens, first, last):
        if tokens[at].text == "," and not (rows and at + 1 < last and tokens[at + 1].text == "("):
            return at, at + 1, "inner"
        words, end = [], at
        while end < last and tokens[end].kind == WORD and tokens[end].upper in _OF_JOIN:
            words.append(tokens[end].upper)
            end += 1
        if end < last and tokens[end].kind == WORD and tokens[end].upper == "JOIN":
            kind = " ".join(word for word in words if word not in {"OUTER", "INNER"})
            return at, end + 1, _JOINS.get(kind, "other")
    return last, last, None


def _source(
    tokens: Sequence[Token], places: tuple[int, int, int], join: str, joins: list[Range]
) -> Source:
    joined, first, last = places
    lateral = first < last and tokens[first].upper == "LATERAL"
    at = first + lateral
    if at >= last:
        raise Unclear("its FROM is not understood")
    query, table, name = None, "", ""
    if tokens[at].text == "(":
        end = closing_of(tokens, at)
        query = query_in(tokens, at + 1, end)
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
    on = None if "ON" not in rest else (rest["ON"] + 1, _end_of_on(tokens, rest["ON"] + 1, last))
    using, match = (_in_brackets(tokens, rest.get(word)) for word in ("USING", "MATCH_CONDITION"))
    ends = [on[1]] if on else [each[1] + 1 for each in (using, match) if each]
    condition = min((each for word, each in rest.items() if word in _CONDITIONS), default=last)
    return Source(
        joined=joined,
        first=first,
        last=condition,
        end=max(ends, default=condition),
        join=join,
        name=alias or name,
        table=table,
        query=query,
        columns=columns,
        on=on,
        using=using,
        match=match,
        pivots=not rest.keys().isdisjoint(_ODD),
        lateral=lateral,
    )


def _in_brackets(tokens: Sequence[Token], word: int | None) -> Range | None:
    if word is None:
        return None
    end = closing(tokens, word + 1) if tokens[word + 1 : word + 2] else None
    return (word + 1, word + 1) if end is None else (word + 2, end)


def _table(tokens: Sequence[Token], at: int, last: int) -> tuple[str, str, int]:
    """Return what its columns are qualified by, its name where that is one word, and its end."""
    start = at
    while at + 2 < last and tokens[at + 1].text == ".":
        at += 2
    name, end = tokens[at].text, at + 1
    if end < last and tokens[end].text == "(":
        end = closing_of(tokens, end) + 1
        while tokens[start].upper == "VALUES" and end + 1 < last and tokens[end].text == ",":
            end = closing_of(tokens, end + 1) + 1
        return name, "", end
    return name, fold(tokens[start].value) if end == start + 1 else "", end


def _alias(tokens: Sequence[Token], at: int, last: int) -> tuple[str, int | None, int]:
    """Return an alias, the bracket that closes its list of columns, and its end."""
    if at >= last or not may_be_alias(tokens[at]) or tokens[at].upper in _AFTER_TABLE:
        return "", None, at
    name, at = tokens[at].text, at + 1
    if at >= last or tokens[at].text != "(":
        return name, None, at
    columns = closing_of(tokens, at)
    return name, columns, columns + 1


def query_in(tokens: Sequence[Token], first: int, last: int, *, whole: bool = True) -> Query | None:
    """Return what stands in brackets; None for a join, and for what is not understood."""
    try:
        query = _query(tokens, first, last)
    except Unclear:
        return None
    return None if whole and query.unclear is not None else query


def _end_of_on(tokens: Sequence[Token], first: int, last: int) -> int:
    for at in outermost(tokens, first, last):
        if tokens[at].kind == WORD and tokens[at].upper in {"LATERAL", "PIVOT", "UNPIVOT"}:
            return at
    return last
