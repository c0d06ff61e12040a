"""Read the conditions of a query that compare columns with the bounds of its slice.

A condition is read where every step is understood: comparisons, BETWEEN, IN, AND, OR and NOT of
columns with ``'{partition}'``, ``$partition_start``, ``@end_ds`` and the like, perhaps an INTERVAL
earlier. A condition that is not understood bounds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from penstock.lazy import exp
from penstock.model.slicing.condition_reading import (
    Condition,
    Key,
    either_condition,
    read_conditions,
)
from penstock.model.slicing.moments import (
    MARK,
    Grain,
    Markers,
    Moment,
    is_day,
    moment_of,
    unwrapped,
)
from penstock.model.time.needs import COMMON, EVERYTHING, Bound, Window
from penstock.model.time.time_macros import as_written
from penstock.sql.identifiers import fold
from penstock.sql.query.nesting import Range, Unclear, and_parts
from penstock.sql.tokens import ARGUMENT, Token


@dataclass(frozen=True, slots=True)
class ColumnWindows:
    """The moments that the values of a column lie in: in one of ``windows``.

    Not ``certain``: the column is written without its table among several tables, so it is of one
    that has such a column. The values meet all of ``conditions``, which windows do not say, or not
    exactly. ``is_day``: a value is a date, or the text of one as Spark writes it.
    """

    column: str
    windows: tuple[Window, ...]
    grain: Grain
    certain: bool = True
    conditions: tuple[Condition, ...] = ()
    is_day: bool = False

    @property
    def is_bounded(self) -> bool:
        """Return whether the windows leave anything out."""
        return self.windows != (EVERYTHING,)

    @property
    def rejecting_null(self) -> ColumnWindows:
        """Return the bounds that no row meets whose column is NULL, as an outer join makes it."""
        return replace(
            self,
            conditions=tuple(condition for condition in self.conditions if condition.rejects_null),
        )

    @property
    def is_closed(self) -> bool:
        """Return whether every window has two bounds."""
        return all(None not in {each.first, each.last} for each in self.windows)

    def both(self, other: ColumnWindows) -> ColumnWindows:
        """Return the bounds of values that lie in those of both."""
        conditions = tuple(dict.fromkeys((*self.conditions, *other.conditions)))
        is_day = self.is_day or other.is_day
        return replace(self._within(other), conditions=conditions, is_day=is_day)

    def _within(self, other: ColumnWindows) -> ColumnWindows:
        if not (self.is_bounded and other.is_bounded):
            return self if self.is_bounded else replace(other, column=self.column)
        grain = self.grain.with_other(other.grain)
        if len(self.windows) > 1 or len(other.windows) > 1 or self.is_closed or other.is_closed:
            return self if self.is_closed or not other.is_closed else other
        (mine,), (others,) = self.windows, other.windows
        window = Window(mine.first or others.first, mine.last or others.last)
        return replace(self, windows=(window,), grain=grain)

    def either(self, other: ColumnWindows) -> ColumnWindows:
        """Return the windows of values that lie in those of one of the two."""
        windows = tuple(dict.fromkeys((*self.windows, *other.windows)))
        if EVERYTHING in windows:
            windows = (EVERYTHING,)
        grain, certain = self.grain.with_other(other.grain), self.certain and other.certain
        conditions = either_condition(self.conditions, other.conditions)
        is_day = self.is_day and other.is_day
        return ColumnWindows(self.column, windows, grain, certain, conditions, is_day)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Hold what conditions require of columns, and the columns that they require to be equal."""

    windows: Mapping[Key, ColumnWindows] = field(default_factory=dict)
    equal: tuple[tuple[Key, Key], ...] = ()

    def both(self, other: Conditions) -> Conditions:
        windows = dict(self.windows)
        for key, others in other.windows.items():
            mine = windows.get(key)
            windows[key] = others if mine is None else mine.both(others)
        return Conditions(windows, (*self.equal, *other.equal))

    def either(self, other: Conditions) -> Conditions:
        common = self.windows.keys() & other.windows.keys()
        return Conditions({key: self.windows[key].either(other.windows[key]) for key in common})


@dataclass(frozen=True, slots=True)
class SelectBounds:
    """The bounds in a SELECT: by ``sources``, in their order, and of columns without a table."""

    sources: Sequence[dict[str, ColumnWindows]]
    names: Sequence[str]
    unqualified: dict[str, ColumnWindows] = field(default_factory=dict)

    def add(self, windows: Mapping[Key, ColumnWindows], only: int | None = None) -> None:
        """Add conditions; ``only`` those of one source.

        Beside other sources a column may be NULL in rows of a join: conditions have to reject NULL.
        """
        alone = len(self.sources) == 1
        if len(self.sources) > 1:
            windows = {key: bounds.rejecting_null for key, bounds in windows.items()}
        for (qualifier, column), found in windows.items():
            if qualifier:
                for number, name in enumerate(self.names):
                    if name == qualifier and only in {None, number}:
                        put(self.sources[number], column, found)
            elif only is None:
                put(self.unqualified, column, found)
                for bounds in self.sources:
                    put(bounds, column, found if alone else replace(found, certain=False))

    def lookup(self, key: Key) -> ColumnWindows | None:
        """Return the bounds of a column as it is written in the list."""
        qualifier, column = key
        if not qualifier and len(self.sources) > 1:
            return self.unqualified.get(column)
        number = self.number(qualifier)
        bounds = None if number is None else self.sources[number].get(column)
        return bounds if bounds is not None and bounds.certain else None

    def number(self, qualifier: str) -> int | None:
        if not qualifier:
            return 0 if len(self.names) == 1 else None
        return self.names.index(qualifier) if self.names.count(qualifier) == 1 else None

    def share(self, pairs: Sequence[tuple[Key, Key]]) -> None:
        """Give the second column of each pair the bounds of the first, until none has more."""
        for _ in self.sources:
            for (qualifier, column), (other, name) in pairs:
                left, right = self.number(qualifier), self.number(other)
                if left is None or right is None or left == right:
                    continue
                bounds, before = self.sources[left].get(column), self.sources[right].get(name)
                if bounds is None or not bounds.certain:
                    continue
                shared = replace(bounds, column=name, is_day=False)
                if before is None:
                    self.sources[right][name] = shared
                elif before.certain:
                    self.sources[right][name] = _sharing(before, shared)


def _sharing(before: ColumnWindows, shared: ColumnWindows) -> ColumnWindows:
    """Return the bounds of a column with those of one that is equal.

    It gets windows only where it has none itself.
    """
    conditions = tuple(dict.fromkeys((*before.conditions, *shared.conditions)))
    if before.is_bounded:
        return replace(before, conditions=conditions)
    return replace(shared, conditions=conditions, is_day=before.is_day)


def put(bounds: dict[str, ColumnWindows], column: str, windows: ColumnWindows) -> None:
    windows, before = replace(windows, column=column), bounds.get(column)
    if before is None or (windows.certain and not before.certain):
        bounds[column] = windows
    elif before.certain == windows.certain:
        bounds[column] = before.both(windows)


def conditions_of(tokens: Sequence[Token], span: Range | None, markers: Markers) -> Conditions:
    """Return what a WHERE or an ON requires of columns."""
    try:
        parts = None if span is None else and_parts(tokens, *span)
    except Unclear:
        parts = None
    spans = [span] if span is not None and parts is None else parts or []
    conditions = Conditions()
    for start, stop in spans:
        conditions = conditions.both(_of_conjunct(tokens[start:stop], markers))
    return conditions


def _of_conjunct(tokens: Sequence[Token], markers: Markers) -> Conditions:
    """Return what a part of an AND requires, as windows.

    Where these do not say all of it, it is also a condition that is evaluated.
    """
    tree = markers.parsed(tokens)
    if tree is None:
        return Conditions()
    bounds = _of_tree(tree, markers)
    if bounds.equal or (bounds.windows and _is_exact(tree, markers)):
        return bounds
    in_spark = markers.parsed_in_spark(tokens)
    if in_spark is None:
        return bounds
    conditions = read_conditions(in_spark, _text(tokens), markers.slice_of)
    more = {
        key: ColumnWindows(key[1], (EVERYTHING,), Grain.VALUE, conditions=(condition,))
        for key, condition in conditions.items()
    }
    return bounds.both(Conditions(more))


def _text(tokens: Sequence[Token]) -> str:
    """Return words as one line, spaced as they are written."""
    parts = [""]
    for before, token in zip((None, *tokens), tokens, strict=False):
        is_apart = before is not None and token.start > before.end
        text = as_written(token.value) if token.kind == ARGUMENT else token.text
        text = text if text.startswith("@") else token.text
        parts.append(f" {text}" if is_apart else text)
    return "".join(parts)


def _is_exact(tree: exp.Expr, markers: Markers) -> bool:
    """Return whether windows say all of a condition, and no more."""
    kind = type(tree).__name__
    if kind in {"Paren", "Or", "And"}:
        sides = (tree.this, tree.expression) if kind != "Paren" else (tree.this,)
        return all(_is_exact(side, markers) for side in sides)
    if kind in {"EQ", "GTE", "LTE", "LT"}:
        sides = (tree.expression,) if kind == "LT" or _column(tree.this) else (tree.this,)
        moments = [moment_of(side, markers) for side in sides]
    elif kind == "Between":
        moments = [moment_of(tree.args[bound], markers) for bound in ("low", "high")]
    elif kind == "In":
        moments = [moment_of(value, markers) for value in tree.expressions]
    else:
        return False
    return all(moment is not None and not moment.shift.months for moment in moments)


# --- conditions


def _of_tree(tree: exp.Expr, markers: Markers, negated: bool = False) -> Conditions:
    kind = type(tree).__name__
    if kind == "Paren":
        return _of_tree(tree.this, markers, negated)
    if kind == "Not":
        return _of_tree(tree.this, markers, not negated)
    if kind in {"And", "Or"}:
        left = _of_tree(tree.this, markers, negated)
        right = _of_tree(tree.expression, markers, negated)
        return left.either(right) if (kind == "Or") != negated else left.both(right)
    if negated:
        return _compared(tree, markers, _NEGATED.get(kind))
    if kind in _READERS:
        return _READERS[kind](tree, markers)
    return Conditions()


def _equal(tree: exp.Expr, markers: Markers) -> Conditions:
    left, right = _column(tree.this), _column(tree.expression)
    if left is not None and right is not None:
        plain = not left.is_date and not right.is_date
        return Conditions(equal=((left.key, right.key),) if plain else ())
    return _compared(tree, markers, "EQ")


def _compared(tree: exp.Expr, markers: Markers, sign: str | None) -> Conditions:
    """Read a comparison with the slice, from either side."""
    if sign is None:
        return Conditions()
    column, moment = _column(tree.this), moment_of(tree.expression, markers)
    if column is None or moment is None:
        column, moment = _column(tree.expression), moment_of(tree.this, markers)
        sign = _TURNED.get(sign, sign)
    if column is None or moment is None:
        return Conditions()
    return _required(column, (_WINDOWS[sign](moment, column),), moment)


def _in(tree: exp.Expr, markers: Markers) -> Conditions:
    column, values = _column(tree.this), tree.expressions
    moments = [moment_of(value, markers) for value in values]
    if column is None or not moments or tree.args.get("query") is not None:
        return Conditions()
    conditions: list[Conditions] = []
    for moment in moments:
        if moment is None:
            return Conditions()
        conditions.append(_required(column, (_WINDOWS["EQ"](moment, column),), moment))
    return reduce(Conditions.either, conditions)


def _between(tree: exp.Expr, markers: Markers) -> Conditions:
    column = _column(tree.this)
    conditions = Conditions()
    for bound, sign in (("low", "GTE"), ("high", "LTE")):
        moment = moment_of(tree.args[bound], markers)
        if column is not None and moment is not None:
            window = _WINDOWS[sign](moment, column)
            conditions = conditions.both(_required(column, (window,), moment))
    return conditions


def _required(column: _Column, windows: tuple[Window, ...], moment: Moment) -> Conditions:
    grain = moment.grain.as_date if column.is_date else moment.grain
    return Conditions({column.key: ColumnWindows(column.key[1], windows, grain)})


_TURNED = {"GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}
_NEGATED = {"GT": "LTE", "GTE": "LT", "LT": "GTE", "LTE": "GT"}
_READERS: Mapping[str, Callable[[exp.Expr, Markers], Conditions]] = {
    "EQ": _equal,
    "NullSafeEQ": _equal,
    "In": _in,
    "Between": _between,
    **dict.fromkeys(_TURNED, lambda tree, markers: _compared(tree, markers, type(tree).__name__)),
}


# --- columns


@dataclass(frozen=True, slots=True)
class _Column:
    """A column; ``is_date``: its date is compared."""

    key: Key
    is_date: bool


def _column(tree: exp.Expr) -> _Column | None:
    inner, is_date = unwrapped(tree)
    if not isinstance(inner, exp.Column) or inner.name.startswith(MARK):
        return None
    return _Column((fold(inner.table), fold(inner.name)), is_date)


def _upper(moment: Moment, column: _Column) -> Bound:
    """Return the upper bound; the date of a moment stands for the whole day."""
    return (replace(moment, grain=Grain.MIXED) if column.is_date else moment).upper


_WINDOWS: Mapping[str, Callable[[Moment, _Column], Window]] = {
    "EQ": lambda moment, column: Window(moment.lower, _upper(moment, column)),
    "GT": lambda moment, _: Window(moment.lower, None),
    "GTE": lambda moment, _: Window(moment.lower, None),
    "LT": lambda moment, _: Window(None, moment.before),
    "LTE": lambda moment, column: Window(None, _upper(moment, column)),
}


# --- values that a query returns


def returned(
    tree: exp.Expr, markers: Markers, lookup: Callable[[Key], ColumnWindows | None]
) -> ColumnWindows | None:
    """Return the moments that an expression lies in, by those that ``lookup`` has of columns."""
    if isinstance(tree, exp.Greatest):
        return _greatest([tree.this, *tree.expressions], markers, lookup)
    inner, is_date = unwrapped(tree)
    if isinstance(inner, exp.Column) and not inner.name.startswith(MARK):
        bounds = lookup((fold(inner.table), fold(inner.name)))
        if bounds is None or inner is tree:
            return bounds
        grain = bounds.grain.as_date if is_date else bounds.grain
        is_date = is_day(tree, markers.dialect)
        return replace(bounds, grain=grain, conditions=(), is_day=is_date)
    moment = moment_of(tree, markers)
    if moment is None or moment.is_end or moment.shift:
        return None
    grain = Grain.TEXT if moment.grain is Grain.VALUE else moment.grain
    return ColumnWindows("", (COMMON,), grain, is_day=is_day(tree, markers.dialect))


def _greatest(
    values: Iterable[exp.Expr],
    markers: Markers,
    lookup: Callable[[Key], ColumnWindows | None],
) -> ColumnWindows | None:
    """Read the greatest of some values: within the slice where one is, and none is after it."""
    all_bounds = [returned(value, markers, lookup) for value in values]
    bounds = [bound for bound in all_bounds if bound is not None]
    ends = {window.last for bound in bounds for window in bound.windows}
    within = any(bound.windows == (COMMON,) for bound in bounds)
    if len(bounds) < len(all_bounds) or ends != {COMMON.last} or not within:
        return None
    grains = (bound.grain for bound in bounds)
    return ColumnWindows("", (COMMON,), reduce(Grain.with_other, grains))
