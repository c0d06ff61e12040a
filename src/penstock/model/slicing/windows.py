"""Read from a query which moments of each input it is about, by the bounds of its slice.

A SELECT that compares a column of what it reads with ``'{partition}'``, ``$partition_start``,
``@end_ds`` and the like, perhaps an INTERVAL earlier, says so. What is not a plain comparison in a
WHERE, or in the ON of the input itself, says nothing: then it is not known, and is not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from penstock.lazy import exp
from penstock.model.query.analysis import Part
from penstock.model.query.query import Query
from penstock.model.script.arguments import OF_SLICE, PARTITION, PARTITION_END, PARTITION_START
from penstock.model.script.sources import QuerySource
from penstock.model.time.needs import Bound, Shift, Window
from penstock.model.time.partition_token import TOKEN
from penstock.model.time.time_macros import as_written, is_of_interval
from penstock.sql.identifiers import fold
from penstock.sql.query.nesting import Range, Unclear, and_parts
from penstock.sql.query.reading import Select, Source, read_query, selects
from penstock.sql.text import Unreadable, parse_expression
from penstock.sql.tokens import ARGUMENT, STRING, Token

_MARK = "penstock_slice_"  # with what stands for the slice: a column in a condition that is parsed


@dataclass(frozen=True, slots=True)
class SourceWindow:
    """The moments that one place of a query reads of a source; ``column`` is compared with them."""

    source: QuerySource
    window: Window
    column: str


Told = tuple[Window, str]  # the moments that a place of a query reads, and their column
#: what the places of a part of a query say, by their numbers
Tells = Callable[[Part, Query], Mapping[int, Told]]


def told_by(part: Part, query: Query) -> Mapping[int, Told]:
    """Return what the places where a part of a query reads something say, by their numbers."""
    tokens = part.statement.tokens
    said: dict[int, Told] = {}
    if any(_marker(token) for token in tokens):
        for select, source in _placed(tokens):
            for number, edit in enumerate(part.sources):
                if tokens[source.first].start <= edit.start < tokens[source.last - 1].end:
                    told = _window(tokens, select, source, query.dialect)
                    if told is not None:
                        said[number] = told
    return said


def windows_of(
    query: Query, tells: Tells = told_by
) -> Mapping[QuerySource, tuple[SourceWindow | None, ...]]:
    """Return for each source that a query names what each of its places says; None where a place
    says nothing. A source of an embedded query is about what the reader says of that.
    """
    found: dict[QuerySource, list[SourceWindow | None]] = {}
    for part in query.parts:
        told = tells(part, query)
        for number, edit in enumerate(part.sources):
            source, said = edit.source, told.get(number)
            window = None if said is None else SourceWindow(source, *said)
            inner = query.embedded(source)
            if inner is None:
                found.setdefault(source, []).append(window)
                continue
            for below, own in windows_of(inner, tells).items():
                found.setdefault(below, []).extend(looked_through((window,), own, inner))
    return {source: tuple(windows) for source, windows in found.items()}


def looked_through(
    outer: Sequence[SourceWindow | None], inner: Sequence[SourceWindow | None], query: Query
) -> tuple[SourceWindow | None, ...]:
    """Return what is said of a table that is read through ``query``, of a view or embedded:
    ``outer`` of its columns, ``inner`` in it. What it returns as it reads it is read by what is
    said of it outside.
    """
    known = tuple(each for each in outer if each is not None)
    is_read_so = len(known) == len(outer) > 0 and all(_passes(query, w.column) for w in known)
    return (*known, *(each for each in inner if each is not None or not is_read_so))


def _passes(query: Query, column: str) -> bool:
    """Return whether a query is one SELECT from one table that returns a column as it is."""
    if len(query.parts) != 1:
        return False
    tokens = query.parts[0].statement.tokens
    try:
        found = [select for select, _, _ in selects(tokens, read_query(tokens, whole=False))]
    except Unclear:
        return False
    if len(found) != 1 or not found[0].understood or len(found[0].sources) != 1:
        return False
    if not found[0].clauses.keys() <= {"FROM", "WHERE"}:
        return False
    items = [tokens[first:last] for first, last in found[0].items(tokens)]
    return any(_is_column(item, column) for item in items)


def _is_column(item: Sequence[Token], column: str) -> bool:
    """Return whether an item of a list is a column, with or without its table, or all of them."""
    *before, name = item
    if before and (len(before) != 2 or before[1].text != "."):
        return False
    return name.text == "*" or fold(name.value) == column


def _placed(tokens: Sequence[Token]) -> Iterator[tuple[Select, Source]]:
    """Yield the tables that SELECTs read, queries in brackets left out."""
    try:
        query = read_query(tokens, whole=False)
        for select, _, _ in selects(tokens, query):
            for source in select.sources:
                if source.query is None:
                    yield select, source
    except Unclear:
        return


def _window(tokens: Sequence[Token], select: Select, source: Source, dialect: str) -> Told | None:
    """Return what the conditions of a SELECT say of one of its sources."""
    first: tuple[Bound, str] | None = None
    last: tuple[Bound, str] | None = None
    alone = len(select.sources) == 1
    for span in (select.clause("WHERE"), source.on):
        for comparison in _comparisons(tokens, span, dialect):
            if comparison.qualifier != fold(source.name) and (comparison.qualifier or not alone):
                continue
            if comparison.first is not None:
                first = comparison.first, comparison.column
            if comparison.last is not None:
                last = comparison.last, comparison.column
    if last is not None:
        return Window(first[0] if first else None, last[0]), last[1]
    if first is not None:
        return Window(first[0]), first[1]
    return None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A column that is at or after ``first`` and before ``last``, as far as they are known."""

    qualifier: str
    column: str
    first: Bound | None = None
    last: Bound | None = None


def _comparisons(
    tokens: Sequence[Token], span: Range | None, dialect: str
) -> Iterator[_Comparison]:
    parts = None if span is None else and_parts(tokens, *span)
    for start, end in parts or ():
        if not any(_marker(token) for token in tokens[start:end]):
            continue
        text = " ".join(_marked(token) for token in tokens[start:end])
        try:
            tree = parse_expression(text, dialect)
        except Unreadable:
            continue
        read = _READERS.get(type(tree).__name__)
        found = None if read is None else read(tree)
        if found is not None:
            yield found


def _marker(token: Token) -> str | None:
    """Return what of its slice a word stands for."""
    if token.kind == STRING and token.value == TOKEN:
        return PARTITION
    if token.kind != ARGUMENT:
        return None
    if token.value in OF_SLICE or (
        is_of_interval(token.value) and not token.value.endswith("_hour")
    ):
        return token.value
    return None  # an hour is a number, and no moment


def _marked(token: Token) -> str:
    found = _marker(token)
    return token.text if found is None else f"{_MARK}{found}"


@dataclass(frozen=True, slots=True)
class _Moment:
    """A bound of the slice; ``day``: a value that stands for more than an instant, to whose end
    ``<=`` reaches.
    """

    is_end: bool
    whole: bool
    shift: Shift

    def bound(self, *, end: bool) -> Bound:
        return Bound(is_end=end, shift=self.shift)


def _compared(tree: exp.Expr, turn: bool = False) -> tuple[exp.Column, _Moment] | None:
    left, right = (tree.expression, tree.this) if turn else (tree.this, tree.expression)
    column, moment = _column(left), _moment(right)
    return None if column is None or moment is None else (column, moment)


def _equal(tree: exp.Expr) -> _Comparison | None:
    found = _compared(tree) or _compared(tree, turn=True)
    if found is None:
        return None
    column, moment = found
    first = moment.bound(end=moment.is_end and not moment.whole)
    return _comparison(column, first, moment.bound(end=True))


def _listed(tree: exp.Expr) -> _Comparison | None:
    """Read ``IN`` with one value."""
    (value, *others) = tree.expressions or [None]
    return None if others or value is None else _equal(exp.EQ(this=tree.this, expression=value))


def _ordered(tree: exp.Expr) -> _Comparison | None:
    """Read one of the four signs, from either side."""
    sign = type(tree).__name__
    found = _compared(tree)
    if found is None:
        found, sign = _compared(tree, turn=True), _TURNED[sign]
    if found is None:
        return None
    column, moment = found
    if sign in ("GT", "GTE"):
        return _comparison(column, moment.bound(end=moment.is_end), None)
    reaches_end = moment.is_end or sign == "LTE"
    return _comparison(column, None, moment.bound(end=reaches_end))


def _between(tree: exp.Expr) -> _Comparison | None:
    column = _column(tree.this)
    low, high = _moment(tree.args["low"]), _moment(tree.args["high"])
    if column is None or (low is None and high is None):
        return None
    first = None if low is None else low.bound(end=low.is_end)
    return _comparison(column, first, None if high is None else high.bound(end=True))


def _comparison(column: exp.Column, first: Bound | None, last: Bound | None) -> _Comparison:
    return _Comparison(fold(column.table), fold(column.name), first, last)


_TURNED = {"GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}
_READERS: Mapping[str, Callable[[exp.Expr], _Comparison | None]] = {
    "EQ": _equal,
    "In": _listed,
    "Between": _between,
    **dict.fromkeys(_TURNED, _ordered),
}
_WRAPPERS = frozenset({"Paren", "Cast", "TryCast", "Date", "TsOrDsToDate", "TsOrDsToTimestamp"})
_LATER = frozenset({"Add", "DateAdd", "TsOrDsAdd", "TimestampAdd", "AddMonths"})
_SOONER = frozenset({"Sub", "DateSub", "TimestampSub"})


def _bare(tree: exp.Expr) -> exp.Expr:
    """Return what stands in brackets, casts, and functions that make a date of a moment."""
    while type(tree).__name__ in _WRAPPERS and isinstance(tree.this, exp.Expr):
        tree = tree.this
    return tree


def _column(tree: exp.Expr) -> exp.Column | None:
    found = _bare(tree)
    is_slice = isinstance(found, exp.Column) and found.name.startswith(_MARK)
    return found if isinstance(found, exp.Column) and not is_slice else None


def _moment(tree: exp.Expr) -> _Moment | None:
    found = _bare(tree)
    if isinstance(found, exp.Column):
        name = found.name.removeprefix(_MARK)
        if name == found.name or found.table:
            return None
        written = as_written(name).removeprefix("@")
        is_end = name == PARTITION_END or written.startswith("end_")
        return _Moment(is_end, name == PARTITION, Shift())
    kind = type(found).__name__
    if kind not in _LATER | _SOONER:
        return None
    moment, shift = _moment(found.this), _shift(found)
    if moment is None or shift is None:
        return None
    shift = -shift if kind in _SOONER else shift
    if _is_instant(found.this):
        shift = replace(shift, days=0, rest=shift.rest + timedelta(days=shift.days))
    return _Moment(moment.is_end, moment.whole, _sum(moment.shift, shift))


def _is_instant(tree: exp.Expr) -> bool:
    """Return whether a bound has a type whose days have 24 hours, as Spark counts intervals."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    names = (f"{_MARK}{PARTITION_START}", f"{_MARK}{PARTITION_END}")
    return isinstance(tree, exp.Column) and tree.name in names


def _sum(one: Shift, other: Shift) -> Shift:
    return Shift(one.months + other.months, one.days + other.days, one.rest + other.rest)


_LENGTHS: Mapping[str, Callable[[int], Shift]] = {
    "YEAR": lambda n: Shift(months=12 * n),
    "QUARTER": lambda n: Shift(months=3 * n),
    "MONTH": lambda n: Shift(months=n),
    "WEEK": lambda n: Shift(days=7 * n),
    "DAY": lambda n: Shift(days=n),
    "HOUR": lambda n: Shift(rest=timedelta(hours=n)),
    "MINUTE": lambda n: Shift(rest=timedelta(minutes=n)),
    "SECOND": lambda n: Shift(rest=timedelta(seconds=n)),
}


def _shift(tree: exp.Expr) -> Shift | None:
    """Return by how much a date is moved: an INTERVAL, or a number of days."""
    amount, unit = tree.expression, tree.args.get("unit")
    if isinstance(amount, exp.Interval):
        amount, unit = amount.this, amount.args.get("unit")
    amount = amount.this if isinstance(amount, exp.ToDays) else amount
    number, name = _number(amount), "MONTH" if isinstance(tree, exp.AddMonths) else "DAY"
    length = _LENGTHS.get(name if unit is None else str(unit.name).upper().removesuffix("S"))
    return None if number is None or length is None else length(number)


def _number(tree: exp.Expr | None) -> int | None:
    sign = 1
    while isinstance(tree, exp.Neg | exp.Paren | exp.Mul):  # date_sub is read as n * -1
        negative = isinstance(tree, exp.Neg) or tree.expression == exp.Literal.number(-1)
        if isinstance(tree, exp.Mul) and not negative:
            return None
        sign, tree = -sign if negative else sign, tree.this
    if not isinstance(tree, exp.Literal):
        return None
    try:
        return sign * int(tree.this)
    except ValueError:
        return None
