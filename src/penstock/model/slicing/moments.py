"""Read expressions that stand for a slice: its value and its bounds, also moved by an INTERVAL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum

from penstock.errors import UnsupportedFeature
from penstock.lazy import exp
from penstock.model.query.query import Query
from penstock.model.script.arguments import OF_SLICE, PARTITION, PARTITION_END, PARTITION_START
from penstock.model.time.needs import Bound, Shift
from penstock.model.time.time_macros import TOKEN, TYPES, as_written, is_of_interval
from penstock.sql.text import Unreadable, parse_expression
from penstock.sql.tokens import ARGUMENT, STRING, Token

MARK = "penstock_slice_"  # begins the column that stands for the slice in a parsed expression
_MICROSECOND = timedelta(microseconds=1)


class Grain(Enum):
    """State how a column is compared with the slice.

    ``VALUE``: with the text of a slice, as it is. ``DATE``: as dates of a calendar. ``INSTANT``: as
    moments. ``MIXED``: a moment and a date, which the time zone of the session converts. ``TEXT``
    is a column that holds the text of the slice.
    """

    TEXT = "text"
    VALUE = "value"
    DATE = "date"
    INSTANT = "instant"
    MIXED = "mixed"

    def with_other(self, other: Grain) -> Grain:
        if self is other:
            return self
        return Grain.DATE if {self, other} <= CIVIL else Grain.MIXED

    @property
    def as_date(self) -> Grain:
        """Return the grain of the date of such a column."""
        return Grain.DATE if self in CIVIL else Grain.MIXED


CIVIL = frozenset({Grain.TEXT, Grain.VALUE, Grain.DATE})


@dataclass(frozen=True, slots=True)
class Markers:
    """Recognize the words that stand for a slice, unless ``off``. ``types`` are those that its
    script declares.
    """

    dialect: str
    types: Mapping[str, str]
    off: bool = False

    @classmethod
    def of(cls, query: Query) -> Markers:
        declared = {each.name: each.type for each in query.arguments}
        return cls(query.dialect, {**OF_SLICE, **TYPES, **declared})

    def marker(self, token: Token) -> str | None:
        """Return what of its slice a word stands for."""
        if self.off:
            return None
        if token.kind == STRING and token.value == TOKEN:
            return PARTITION
        if token.kind != ARGUMENT:
            return None
        if token.value in OF_SLICE or (
            is_of_interval(token.value) and not token.value.endswith("_hour")
        ):
            return token.value
        return None  # an hour is a number, and no moment

    def parsed(self, tokens: Sequence[Token]) -> exp.Expr | None:
        """Return the tree of an expression, in which columns stand for the slice."""
        text = " ".join(self._marked(token) for token in tokens)
        try:
            return parse_expression(text, self.dialect)
        except Unreadable:
            return None

    def parsed_in_spark(self, tokens: Sequence[Token]) -> exp.Expr | None:
        """Parse an expression as Spark's SQL, in which columns stand for the slice.

        Args:
            tokens: The words of the expression, in the dialect of the query.

        Returns:
            Its tree; None where it has no meaning in Spark's SQL.
        """
        if self.dialect != "duckdb":
            return self.parsed(tokens)
        # Late: of another dialect alone.
        from penstock.sql.duckdb.guards import unguarded
        from penstock.sql.duckdb.translate import translate

        text = " ".join(
            token.text if token.kind == STRING else self._marked(token) for token in tokens
        )
        try:
            return unguarded(parse_expression(translate(text, expression=True)))
        except (Unreadable, UnsupportedFeature):
            return None

    def slice_of(self, name: str) -> str | None:
        """Return what of the slice the name of a column in a tree stands for.

        Args:
            name: The name.

        Returns:
            The argument, with a note where a script declares another type of it; None for a column.
        """
        if not name.startswith(MARK):
            return None
        argument = name.removeprefix(MARK)
        usual = {**OF_SLICE, **TYPES}.get(argument)
        return argument if self.types.get(argument) == usual else f"{argument} of another type"

    def _marked(self, token: Token) -> str:
        name = self.marker(token)
        return token.text if name is None else f"{MARK}{name}"


_DATES = frozenset({"Date", "TsOrDsToDate"})
_MOMENTS = frozenset({"TsOrDsToTimestamp", "TimeStrToTime", "Timestamp"})
_DAY_TEXTS = frozenset({"%Y-%m-%d"})
_DAYS = frozenset({"DAY", "HOUR", "MINUTE", "SECOND"})


def unwrapped(tree: exp.Expr) -> tuple[exp.Expr, bool]:
    """Return what stands in brackets, casts, and functions that make a date of a moment; and
    whether there are any of the latter.
    """
    is_date = False
    while isinstance(tree.this, exp.Expr) and (dated := _wraps(tree)) is not None:
        tree, is_date = tree.this, is_date or dated
    return tree, is_date


def _wraps(tree: exp.Expr) -> bool | None:
    """Return whether a function makes a date of a moment; None where it may do anything else."""
    kind, args = type(tree).__name__, tree.args
    if kind == "Paren":
        return False
    if kind in {"Cast", "TryCast"} and args.get("format") is None:
        name = args["to"].this.name
        is_moment = name.startswith("TIMESTAMP") or name in {"TEXT", "VARCHAR"}
        return True if name == "DATE" else False if is_moment else None
    if kind == "TimeToStr":
        return True if args["format"].name.replace("strict", "") in _DAY_TEXTS else None
    if kind in {"TimestampTrunc", "DateTrunc"}:
        return True if args["unit"].name.upper() in _DAYS else None
    others = any(args.get(name) is not None for name in ("format", "zone", "expression"))
    return None if others or kind not in _DATES | _MOMENTS else kind in _DATES


def is_day(tree: exp.Expr, dialect: str) -> bool:
    """Return whether an expression is a date, or the text of one as Spark writes it.

    Args:
        tree: The expression.
        dialect: The dialect that it is written in.

    Returns:
        False where it may have any other text.
    """
    kind, args = type(tree).__name__, tree.args
    if kind == "Paren":
        return is_day(tree.this, dialect)
    if kind in {"Cast", "TryCast"} and args.get("format") is None:
        name = args["to"].this.name
        return bool(name == "DATE" or (name in {"TEXT", "VARCHAR"} and _is_date_type(tree.this)))
    padded = "%Y-%m-%d" if dialect == "duckdb" else "%Y-%mstrict-%dstrict"
    return _is_date_type(tree) or (kind == "TimeToStr" and args["format"].name == padded)


def _is_date_type(tree: exp.Expr) -> bool:
    kind = type(tree).__name__
    if kind == "Paren":
        return _is_date_type(tree.this)
    return kind in _DATES or (kind in {"Cast", "TryCast"} and tree.args["to"].this.name == "DATE")


_NO_SHIFT = Shift()


@dataclass(frozen=True, slots=True)
class Moment:
    """A bound of the slice as a value, moved by a shift.

    ``is_end``: the end of the slice, and if ``is_inclusive`` the last moment before that.
    """

    grain: Grain
    is_end: bool = False
    is_inclusive: bool = False
    shift: Shift = _NO_SHIFT

    @property
    def lower(self) -> Bound:
        """Return a bound that no moment the value stands for is before."""
        shift = self.shift
        if shift.months and shift.days:  # in which order they are added makes a difference
            shift = replace(shift, days=shift.days - _MONTH_ENDS)
        return Bound(is_end=self.is_end and not self.is_inclusive, shift=shift)

    @property
    def upper(self) -> Bound:
        """Return a bound that all moments the value stands for are before."""
        shift = self.shift
        if shift.months:  # the day of a short month is its last
            shift = replace(shift, days=shift.days + _MONTH_ENDS)
        if self.is_end and not self.is_inclusive:
            if self.grain is Grain.INSTANT:
                shift = replace(shift, rest=shift.rest + _MICROSECOND)
            else:
                shift = replace(shift, days=shift.days + 1)
        return Bound(is_end=True, shift=shift)

    @property
    def before(self) -> Bound:
        """Return a bound that all values less than this one are before."""
        shift = self.shift
        if shift.months and shift.days:
            shift = replace(shift, days=shift.days + _MONTH_ENDS)
        return Bound(is_end=self.is_end, shift=shift)


_MONTH_ENDS = 3  # days by which months differ


_LATER = frozenset({"Add", "DateAdd", "TsOrDsAdd", "TimestampAdd", "AddMonths"})
_SOONER = frozenset({"Sub", "DateSub", "TimestampSub"})
_NUMBERS = ("int", "double", "decimal", "float", "numeric", "real", "hugeint")


def moment_of(tree: exp.Expr, markers: Markers) -> Moment | None:
    """Return which bound of the slice an expression is; None for any other."""
    inner, is_date = unwrapped(tree)
    moment = (_named if isinstance(inner, exp.Column) else _moved)(inner, markers)
    if moment is not None and is_date:
        moment = replace(moment, grain=moment.grain.as_date)
    return moment


def _named(column: exp.Expr, markers: Markers) -> Moment | None:
    name = column.name.removeprefix(MARK)
    if name == column.name or column.args.get("table"):
        return None
    if name == PARTITION:
        return Moment(Grain.VALUE)
    if name in {PARTITION_START, PARTITION_END}:
        is_moment = markers.types.get(name, "").startswith("timestamp")
        return Moment(Grain.INSTANT if is_moment else Grain.MIXED, is_end=name == PARTITION_END)
    written = as_written(name).removeprefix("@")
    grain = Grain.DATE if written.endswith(("_ds", "_date")) else Grain.INSTANT
    return Moment(grain, is_end=written.startswith("end_"), is_inclusive=True)


def _moved(tree: exp.Expr, markers: Markers) -> Moment | None:
    kind = type(tree).__name__
    if kind not in _LATER | _SOONER:
        return None
    moment, shift = moment_of(tree.this, markers), _shift(tree)
    if moment is None or shift is None or _is_number(tree.this, markers):
        return None
    shift = -shift if kind in _SOONER else shift
    if _is_instant(tree.this):
        shift = replace(shift, days=0, rest=shift.rest + timedelta(days=shift.days))
    grain = Grain.DATE if moment.grain is Grain.VALUE else moment.grain
    return replace(moment, grain=grain, shift=_sum(moment.shift, shift))


def _is_number(tree: exp.Expr, markers: Markers) -> bool:
    """Return whether a part of an expression is a bound whose type is a number."""
    names = (c.name.removeprefix(MARK) for c in tree.find_all(exp.Column))
    return any(kind in markers.types.get(name, "").lower() for name in names for kind in _NUMBERS)


def _is_instant(tree: exp.Expr) -> bool:
    """Return whether a bound has a type whose days have 24 hours, as Spark counts intervals."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    names = (f"{MARK}{PARTITION_START}", f"{MARK}{PARTITION_END}")
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
