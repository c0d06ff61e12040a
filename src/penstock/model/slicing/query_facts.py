"""Remember what plans ask of queries, by the texts that it follows from.

Which moments of its inputs a query is about, why its slices are made one by one, and whether it
selects all columns of a table take their trees or their words, which a plan of many models would
read anew each time. A cache is a mapping, which knows no file; its values are those of JSON.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from penstock.model.definition.model import Model
from penstock.model.query.analysis import Part
from penstock.model.query.query import Query
from penstock.model.script.arguments import OF_SLICE
from penstock.model.script.sources import QuerySource
from penstock.model.slicing.comparisons import ColumnWindows
from penstock.model.slicing.condition_reading import Condition
from penstock.model.slicing.moments import Grain
from penstock.model.slicing.windows import UNBOUNDED, Use, Uses, told_by, windows_of
from penstock.model.time.needs import Bound, Shift, Window
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


Cache = MutableMapping[str, Any]
T = TypeVar("T")
#: with every change of what is said of the same texts
VERSION = 3


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Answers about queries and models, each worked out once."""

    cache: Cache = field(default_factory=dict)

    def windows(
        self, query: Query, *, outer: Use = UNBOUNDED
    ) -> Mapping[QuerySource, tuple[Use, ...]]:
        """As `windows_of`."""
        return windows_of(query, self._told, outer)

    def why_apart(self, model: Model) -> str | None:
        """As `joint.why_apart`."""
        # Late: it looks at trees, which a plan of single slices does without.
        from penstock.model.slicing.joint import why_apart

        said = (model.query.source.text, model.definition_hash, model.terms, str(model.path))
        found: str | None = self._known("apart", said, lambda: why_apart(model))
        return found

    def selects_all(self, query: Query) -> bool:
        """Return whether the columns of a query may be others when those of a table are: it has
        ``*`` for all columns of what it reads, which is not a query of its own.
        """
        return any(self._has_star(part, query) for part in query.parts) or any(
            self.selects_all(inner) for inner in query.embeds.values()
        )

    def _has_star(self, part: Part, query: Query) -> bool:
        text = query.source.text[part.statement.start : part.statement.end]
        if "*" not in text:
            return False
        # Late: few plans look at columns.

        said = (query.dialect, text)
        return bool(self._known("star", said, lambda: selects_all(part.statement.tokens)))

    def _told(self, part: Part, query: Query, outer: Use) -> Uses:
        start = part.statement.start
        places = [(edit.start - start, edit.end - start) for edit in part.sources]
        text = query.source.text[start : part.statement.end]
        types = {each.name: each.type for each in query.arguments if each.name in OF_SLICE}
        said = (query.dialect, text, places, types, _to_json({0: (outer,)}))
        found = self._known("windows", said, lambda: _to_json(told_by(part, query, outer)))
        return {
            number: tuple(tuple(map(_read_column, use)) for use in uses) for number, uses in found
        }

    def _known(self, what: str, said: object, ask: Callable[[], T]) -> T:
        text = repr((VERSION, what, said)).encode("utf-8", "surrogatepass")
        key = hashlib.sha256(text).hexdigest()
        try:
            known: T = self.cache[key]
        except KeyError:
            known = self.cache[key] = ask()
        return known


def _to_json(uses: Uses) -> list[Any]:
    return [
        [number, [[_of_column(column) for column in use] for use in of]]
        for number, of in uses.items()
    ]


def _of_column(bounds: ColumnWindows) -> list[Any]:
    windows = [[_bound(window.first), _bound(window.last)] for window in bounds.windows]
    conditions = [list(astuple(condition)) for condition in bounds.conditions]
    return [bounds.column, windows, bounds.grain.value, bounds.certain, conditions, bounds.is_day]


def _bound(bound: Bound | None) -> Any:
    if bound is None:
        return None
    shift = asdict(bound.shift)
    return [bound.is_end, shift["months"], shift["days"], bound.shift.rest // _MICROSECOND]


def _read_column(parts: list[Any]) -> ColumnWindows:
    column, pairs, grain, certain, listed, is_day = parts
    windows = tuple(Window(*map(_read_bound, pair)) for pair in pairs)
    conditions = tuple(Condition(_read_expression(tree), *more) for tree, *more in listed)
    return ColumnWindows(column, windows, Grain(grain), certain, conditions, is_day)


def _read_expression(parts: Any) -> Any:
    """Return an expression, whose tuples JSON has as lists."""
    return tuple(map(_read_expression, parts)) if isinstance(parts, list | tuple) else parts


def _read_bound(said: Any) -> Bound | None:
    if said is None:
        return None
    is_end, months, days, rest = said
    return Bound(is_end, Shift(months, days, rest * _MICROSECOND))


_MICROSECOND = timedelta(microseconds=1)
