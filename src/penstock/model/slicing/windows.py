"""Find in a query which moments of each input it reads, by the bounds of its slice.

Conditions of a WHERE or an ON bound what they are about (`comparisons`). Those of a SELECT also
bound what the queries of its FROM and WITH read, as far as these return the column as it is and
look at no other rows: windows, LIMIT and the like end that. Columns that are required to be equal
share their bounds. A place that is not understood is read without bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from penstock.model.query.analysis import Part
from penstock.model.query.query import Query as ModelQuery
from penstock.model.script.sources import QuerySource
from penstock.model.slicing.comparisons import (
    ColumnWindows,
    Conditions,
    SelectBounds,
    conditions_of,
    put,
    returned,
)
from penstock.model.slicing.condition_reading import Key
from penstock.model.slicing.moments import Grain, Markers
from penstock.model.time.needs import COMMON
from penstock.sql.identifiers import fold
from penstock.sql.query.nesting import Range, Unclear, outermost
from penstock.sql.query.reading import Cte, Query, Select, Source, is_query, query_in, read_query
from penstock.sql.tokens import NAME, WORD, Token, may_be_alias

Columns = Mapping[str, ColumnWindows]
#: one way on which a place is read: the bounds of its columns, all of which hold; () without any
Use = tuple[ColumnWindows, ...]
Uses = Mapping[int, tuple[Use, ...]]  # by the numbers of places
UNBOUNDED: Use = ()
#: find the uses of a part of a query, of which only the rows within the last argument count
Tells = Callable[[Part, ModelQuery, Use], Uses]
_OPAQUE = frozenset({"LIMIT", "OFFSET", "FETCH", "QUALIFY", "WINDOW"})
_ODD = frozenset({"POSITIONAL", "SAMPLE", "TABLESAMPLE", "|>"})
_OUTER = frozenset({"other"})  # joins of which ON bounds nothing


def told_by(part: Part, query: ModelQuery, outer: Use = UNBOUNDED) -> Uses:
    """Return how the places of a part of a query are read, by their numbers."""
    markers, tokens = Markers.of(query), part.statement.tokens
    if not part.sources:
        return {}
    unbounded = dict.fromkeys(range(len(part.sources)), (UNBOUNDED,))
    if not outer and not any(markers.marker(token) for token in tokens):
        return unbounded
    reader = _Reader(tokens, markers, [edit.start for edit in part.sources])
    try:
        structure = _structure(tokens)
        reader.visit(structure, {}, {each.column: each for each in outer})
    except (Unclear, RecursionError):
        return unbounded
    return unbounded | {number: tuple(uses) for number, uses in reader.uses.items()}


def _structure(tokens: Sequence[Token]) -> Query:
    """Return the query of a statement: all of it, or what an INSERT or a CREATE is followed by."""
    if tokens and tokens[0].upper in {"INSERT", "CREATE"}:
        for position in outermost(tokens):
            if tokens[position].upper in {"SELECT", "WITH"}:
                query = query_in(tokens, position, len(tokens), whole=False)
                if query is not None:
                    return query
    return read_query(tokens, whole=False)


def windows_of(
    query: ModelQuery, tells: Tells = told_by, outer: Use = UNBOUNDED
) -> Mapping[QuerySource, tuple[Use, ...]]:
    """Return for each source that a query names how its places are read. A source of an embedded
    query is read as the reader reads that. ``outer`` bounds the rows of the query that count.
    """
    found: dict[QuerySource, dict[Use, None]] = {}
    for part in query.parts:
        uses = tells(part, query, outer if len(query.parts) == 1 else UNBOUNDED)
        for number, edit in enumerate(part.sources):
            inner = query.embedded(edit.source)
            for use in uses.get(number, (UNBOUNDED,)):
                if inner is None:
                    found.setdefault(edit.source, {})[use] = None
                    continue
                for below, own in windows_of(inner, tells, use).items():
                    found.setdefault(below, {}).update(dict.fromkeys(own))
    return {source: tuple(uses) for source, uses in found.items()}


def columns_of_slice(
    query: ModelQuery,
    time_column: str | None = None,
    inherited: Callable[[QuerySource, Columns], Columns] = lambda _, __: {},
) -> Columns:
    """Return the columns of a query whose values lie within its own slice.

    ``time_column`` is one that does in any case, and what is made of the same column does too; the
    bounds of the query are then those of a batch, and bound no interval of it. ``inherited`` says
    it of the columns of a source, by the bounds that the query has for these.
    """
    if len(query.parts) != 1:
        return {}
    (part,), markers = query.parts, replace(Markers.of(query), off=time_column is not None)
    tokens = part.statement.tokens
    places = [edit.start for edit in part.sources]

    def of_place(number: int, known: Columns) -> Columns:
        return inherited(part.sources[number].source, known)

    reader = _Reader(tokens, markers, places, inherited=of_place, time_column=time_column)
    try:
        found = reader.returns(read_query(tokens), {}).windows
    except (Unclear, RecursionError):
        return {}
    return {name: each for name, each in found.items() if each.windows == (COMMON,)}


class _Scoped(NamedTuple):
    """A query of a WITH, with those that it sees."""

    cte: Cte
    scope: Scope


Scope = Mapping[str, _Scoped]


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of the list of a SELECT; ``star``: all columns, those of ``qualifier`` if it has one.

    ``key`` is the column that it is, if it is one as it stands.
    """

    name: str = ""
    key: Key | None = None
    span: Range = (0, 0)
    star: bool = False
    qualifier: str = ""


@dataclass(frozen=True, slots=True)
class _Returned:
    """The names of the columns of a query in their order, None with a ``*``, and the bounds."""

    names: tuple[str, ...] | None = None
    windows: Columns = field(default_factory=dict)


@dataclass(slots=True)
class _Reader:
    """A walk over one statement. ``places`` are the offsets of its sources."""

    tokens: Sequence[Token]
    markers: Markers
    places: Sequence[int]
    uses: dict[int, dict[Use, None]] = field(default_factory=dict)
    inherited: Callable[[int, Columns], Columns] = lambda _, __: {}
    time_column: str | None = None
    _read: dict[Range | None, Conditions] = field(default_factory=dict)
    _visited: set[tuple[int, Use]] = field(default_factory=set)
    _returned: dict[int, _Returned] = field(default_factory=dict)

    # --- what is read

    def visit(self, query: Query, scope: Scope, outer: Columns) -> None:
        """Note how a query reads its sources, where only rows within ``outer`` count."""
        if query.recursive:
            self._read_all(query.first, query.last, scope)
            return
        inner = self._scope(query, scope)
        for term, bounds in zip(query.terms, self._of_terms(query, outer), strict=True):
            if isinstance(term, Query):
                self.visit(term, inner, bounds)
            elif term.understood and not self._is_odd(term):
                self._visit_select(term, inner, bounds)
            else:
                self._read_all(term.first, term.last, inner)

    def _is_odd(self, select: Select) -> bool:
        words = (self.tokens[at] for at in select.own(select.first, select.last))
        return any(word.upper in _ODD for word in words if word.kind != NAME)

    def _scope(self, query: Query, scope: Scope) -> Scope:
        for cte in query.ctes:
            scope = {**scope, cte.name: _Scoped(cte, scope)}
        return scope

    def _of_terms(self, query: Query, outer: Columns) -> list[Columns]:
        """Return the bounds of a query for each of those that set operations put together: by the
        places of the columns.
        """
        if len(query.terms) == 1 or not outer:
            return [outer for _ in query.terms]
        limited = any(
            isinstance(term, Select) and (not term.understood or _OPAQUE & term.clauses.keys())
            for term in query.terms
        )
        names = [self._names(term) for term in query.terms]
        if limited or query.doubt or names[0] is None:
            return [{} for _ in query.terms]
        bounds: list[Columns] = [outer]
        for listed in names[1:]:
            own = dict(zip(names[0], listed or (), strict=False))
            bounds.append({own[n]: replace(w, column=own[n]) for n, w in outer.items() if n in own})
        return bounds

    def _names(self, term: Select | Query) -> tuple[str, ...] | None:
        if isinstance(term, Query):
            return None if term.unclear else self._names(term.terms[0])
        items = list(self._items(term))
        return None if any(item.star for item in items) else tuple(item.name for item in items)

    def _visit_select(self, select: Select, scope: Scope, outer: Columns) -> None:
        bounds = self._bounds(select, scope, outer)
        pivots = any(source.pivots for source in select.sources)
        for source, own in zip(select.sources, bounds.sources, strict=True):
            loose = pivots or source.lateral or source.join in _OUTER
            self._visit_source(source, scope, {} if loose else own)
        for first, last in select.inside:
            inner = None
            if first and is_query(self.tokens, first - 1):
                inner = query_in(self.tokens, first, last, whole=False)
            if inner is None:
                self._read_all(first, last, scope)
            else:
                self.visit(inner, scope, {})

    def _visit_source(self, source: Source, scope: Scope, bounds: Columns) -> None:
        if source.columns is not None:
            bounds = {}
        use = tuple(bounds[name] for name in sorted(bounds))
        if source.query is not None:
            self.visit(source.query, scope, bounds)
        elif source.table in scope:
            self._visit_cte(scope[source.table], use)
        number = self._place(source)
        if number is not None:
            self.uses.setdefault(number, {})[use] = None

    def _visit_cte(self, scoped: _Scoped, use: Use) -> None:
        cte = scoped.cte
        use = UNBOUNDED if cte.columns is not None else use
        if (id(cte), use) not in self._visited:
            self._visited.add((id(cte), use))
            self.visit(cte.query, scoped.scope, {each.column: each for each in use})

    def _read_all(self, first: int, last: int, scope: Scope) -> None:
        """Note that all in some words is read without bounds."""
        words = self.tokens[first:last]
        for number, place in enumerate(self.places if words else ()):
            if words[0].start <= place < words[-1].end:
                self.uses.setdefault(number, {})[UNBOUNDED] = None
        for word in words:
            if word.kind in {WORD, NAME} and (scoped := scope.get(fold(word.value))) is not None:
                self._visit_cte(scoped, UNBOUNDED)

    def _place(self, source: Source) -> int | None:
        """Return the number of a source that is a place itself, and has none in its brackets."""
        start = self.tokens[source.first + source.lateral].start
        return self.places.index(start) if start in self.places else None

    # --- bounds

    def _bounds(self, select: Select, scope: Scope, outer: Columns) -> SelectBounds:
        names = [fold(source.name.strip('`"')) for source in select.sources]
        bounds = SelectBounds([{} for _ in names], names)
        where = self._conditions(select.clause("WHERE"))
        bounds.add(where.windows)
        pairs = [*where.equal, *((right, left) for left, right in where.equal)]
        for number, source in enumerate(select.sources):
            pairs += self._joined(bounds, select.sources, number)
            for column, found in self._of_source(source, scope).items():
                put(bounds.sources[number], column, found)
        if outer and self._is_plain(select):
            bounds.add(self._inside(select, outer))
        bounds.share(pairs)
        for number, source in enumerate(select.sources):
            place, own = self._place(source), bounds.sources[number]
            if place is not None and source.table not in scope:
                more = self.inherited(place, {n: w for n, w in own.items() if w.certain})
                for column, found in more.items():
                    if column not in own or not own[column].is_bounded:
                        put(own, column, found)
        return bounds

    def _conditions(self, span: Range | None) -> Conditions:
        if span not in self._read:
            self._read[span] = conditions_of(self.tokens, span, self.markers)
        return self._read[span]

    def _joined(
        self, bounds: SelectBounds, sources: Sequence[Source], number: int
    ) -> list[tuple[Key, Key]]:
        """Add what the ON of a source requires, and return the columns that share their bounds."""
        source = sources[number]
        if source.join in _OUTER or source.match is not None:
            return []
        found = self._conditions(source.on)
        bounds.add(found.windows, None if source.join == "inner" else number)
        equal = list(found.equal)
        for word in self.tokens[slice(*source.using)] if source.using is not None else ():
            if word.kind in {WORD, NAME}:
                column = fold(word.value)
                equal += [((other, column), (bounds.names[number], column))
                          for other in bounds.names[:number]]  # fmt: skip
        both = [*equal, *((right, left) for left, right in equal)]
        if source.join == "inner":
            return both
        return [pair for pair in both if pair[1][0] == bounds.names[number]]

    def _of_source(self, source: Source, scope: Scope) -> Columns:
        """Return the bounds of what a query in FROM or WITH returns."""
        if source.columns is not None or source.pivots:
            return {}
        if source.query is not None:
            return self.returns(source.query, scope).windows
        scoped = scope.get(source.table)
        if scoped is None or scoped.cte.columns is not None:
            return {}
        return self.returns(scoped.cte.query, scoped.scope).windows

    def _is_plain(self, select: Select) -> bool:
        """Return whether a row that a SELECT returns depends on no rows beside those of it: then a
        condition on a column may as well stand inside.
        """
        if not select.clauses.keys().isdisjoint(_OPAQUE):
            return False
        words = [self.tokens[at].upper for at in select.own(select.first, select.last)]
        return "OVER" not in words and words[1:3] != ["DISTINCT", "ON"]

    def _inside(self, select: Select, outer: Columns) -> dict[Key, ColumnWindows]:
        """Return bounds of what a SELECT returns as those of what it reads."""
        items = list(self._items(select))
        stars = [item for item in items if item.star]
        named = {item.name: item for item in items if not item.star}
        found: dict[Key, ColumnWindows] = {}
        for column, windows in outer.items():
            item, within = named.get(column), windows.rejecting_null
            if item is not None and not stars and item.key is not None:
                found[item.key] = within
            elif item is None and len(stars) == 1:
                found[stars[0].qualifier, column] = within
        return found

    # --- what is returned

    def returns(self, query: Query, scope: Scope) -> _Returned:
        """Return the bounds of the columns of a query."""
        if id(query) not in self._returned:
            self._returned[id(query)] = _Returned()  # of one that reads itself nothing is known
            self._returned[id(query)] = self._returns(query, scope)
        return self._returned[id(query)]

    def _returns(self, query: Query, scope: Scope) -> _Returned:
        if query.unclear is not None:
            return _Returned()
        inner = self._scope(query, scope)
        terms = [
            self.returns(term, inner) if isinstance(term, Query) else self._selected(term, inner)
            for term in query.terms
        ]
        first, *others = terms
        if not others:
            return first
        if first.names is None or any(each.names is None for each in others):
            return _Returned()
        windows: dict[str, ColumnWindows] = {}
        for place, name in enumerate(first.names):
            of = [each.windows.get((each.names or ())[place]) for each in terms
                  if place < len(each.names or ())]  # fmt: skip
            known = [each for each in of if each is not None]
            if len(known) == len(terms):
                windows[name] = known[0]
                for each in known[1:]:
                    windows[name] = windows[name].either(replace(each, column=name))
        return _Returned(first.names, windows)

    def _selected(self, select: Select, scope: Scope) -> _Returned:
        bounds, items = self._bounds(select, scope, {}), list(self._items(select))
        self._bound_by_time(bounds, items)
        windows: dict[str, ColumnWindows] = {}
        for item in items:
            if item.star:
                for number, name in enumerate(bounds.names):
                    if item.qualifier in {"", name} and select.sources[number].join != "half":
                        own = bounds.sources[number].items()
                        windows |= {column: each for column, each in own if each.certain}
                continue
            found = self._value(item, bounds)
            windows.pop(item.name, None)
            if found is not None:
                windows[item.name] = replace(found, column=item.name, certain=True)
        names = None if any(item.star for item in items) else tuple(i.name for i in items)
        return _Returned(names, windows)

    def _bound_by_time(self, bounds: SelectBounds, items: Sequence[_Item]) -> None:
        """Add that the time column, and what it is made of, lies within the slice."""
        found = ColumnWindows("", (COMMON,), Grain.INSTANT)
        for item in items:
            if item.name == self.time_column and item.key is not None:
                qualifier, column = item.key
                number = bounds.number(qualifier)
                bounds.unqualified[column] = replace(found, column=column)
                if number is not None:
                    bounds.sources[number][column] = replace(found, column=column)

    def _value(self, item: _Item, bounds: SelectBounds) -> ColumnWindows | None:
        if item.key is not None:
            return bounds.lookup(item.key)
        tree = self.markers.parsed(self.tokens[slice(*item.span)])
        return None if tree is None else returned(tree, self.markers, bounds.lookup)

    def _items(self, select: Select) -> Iterator[_Item]:
        for first, last in select.items(self.tokens):
            if first < last:
                yield self._item(first, last)

    def _item(self, first: int, last: int) -> _Item:
        tokens = self.tokens
        texts = [token.text for token in tokens[first:last]]
        if texts[0] == "*" or (len(texts) > 2 and texts[1:3] == [".", "*"]):
            alone = texts[-1] == "*"
            qualifier = "" if texts[0] == "*" else fold(tokens[first].value)
            return _Item(star=True, qualifier=qualifier if alone else "*")  # else no column is it
        name, end = "", last
        if last - first > 1 and may_be_alias(tokens[last - 1]) and tokens[last - 2].text != ".":
            name = fold(tokens[last - 1].value)
            end = last - 2 if tokens[last - 2].upper == "AS" else last - 1
        key = self._key(first, end)
        return _Item(name or (key[1] if key else ""), key, (first, end))

    def _key(self, first: int, last: int) -> Key | None:
        """Return the column that an item is, with or without its table."""
        words = self.tokens[first:last]
        if len(words) not in {1, 3} or any(each.kind not in {WORD, NAME} for each in words[::2]):
            return None
        if len(words) == 1:
            return "", fold(words[0].value)
        return (fold(words[0].value), fold(words[2].value)) if words[1].text == "." else None
