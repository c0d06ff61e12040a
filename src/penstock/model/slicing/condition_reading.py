"""Read conditions of a query as expressions about one column, for `evaluation`.

The tree is sqlglot's of Spark's SQL. What has no entry here, another column among it, becomes
`ANYTHING`; a condition that may be anything, whatever the column is, is no condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from zoneinfo import ZoneInfo

from penstock.lazy import exp
from penstock.model.script.arguments import PARTITION
from penstock.model.slicing.evaluated_values import Casts
from penstock.model.slicing.evaluation import ANYTHING, COLUMN, Evaluator, Expression
from penstock.model.time.time_macros import TOKEN
from penstock.sql.identifiers import fold

Key = tuple[str, str]  # the qualifier of a column, "" without one, and its name; both folded
_Read = Callable[["exp.Expr"], Expression]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column.

    Attributes:
        expression: What is evaluated.
        text: The condition for people, as written.
        rejects_null: Whether it is not true where the column is NULL, as it is in rows for which
            an outer join has no match.
    """

    expression: Expression
    text: str
    rejects_null: bool

    @classmethod
    def of(cls, expression: Expression, text: str) -> Condition:
        """Make a condition of an expression.

        Args:
            expression: What is evaluated.
            text: The condition as written.

        Returns:
            The condition, with what NULL makes of it.
        """
        truths = Evaluator(_ANY_CASTS, {}).truths(expression, None)
        return cls(expression, text, True not in truths)


_ANY_CASTS = Casts(ZoneInfo("UTC"))


def read_conditions(
    tree: exp.Expr, text: str, slice_of: Callable[[str], str | None]
) -> Mapping[Key, Condition]:
    """Read what a conjunct says of each of its columns.

    Args:
        tree: The conjunct in Spark's SQL.
        text: The conjunct as written.
        slice_of: Returns what of the slice the name of a column stands for, None for a column.

    Returns:
        The conditions by columns, without those that may be true of any value.
    """
    keys = {_key(item): None for item in tree.find_all(exp.Column) if slice_of(item.name) is None}
    conditions: dict[Key, Condition] = {}
    for key in keys:
        expression = _Reader(key, slice_of).read(tree)
        if expression != ANYTHING:
            conditions[key] = Condition.of(expression, text)
    return conditions


def either_condition(some: Sequence[Condition], more: Sequence[Condition]) -> tuple[Condition, ...]:
    """Join the conditions of values that meet one or the other.

    Args:
        some: Conditions that hold together.
        more: Conditions that hold together where those do not.

    Returns:
        Their OR; nothing where one side has no condition.
    """
    if not some or not more or tuple(some) == tuple(more):
        return tuple(some) if tuple(some) == tuple(more) else ()
    base, second = _all_of(some), _all_of(more)
    text = f"({base.text}) OR ({second.text})"
    rejects_null = base.rejects_null and second.rejects_null
    return (Condition(("or", base.expression, second.expression), text, rejects_null),)


def _all_of(conditions: Sequence[Condition]) -> Condition:
    whole, *more = conditions
    for item in more:
        expression: Expression = ("and", whole.expression, item.expression)
        rejects_null = whole.rejects_null or item.rejects_null
        whole = Condition(expression, f"{whole.text} AND {item.text}", rejects_null)
    return whole


def _key(column: exp.Expr) -> Key:
    return fold(str(getattr(column, "table", ""))), fold(column.name)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Read trees as expressions about the column ``key``."""

    key: Key
    slice_of: Callable[[str], str | None]

    def read(self, tree: exp.Expr) -> Expression:
        if isinstance(tree, exp.Column):
            name = self.slice_of(tree.name)
            if name is not None:
                return ("slice", name)
            return COLUMN if _key(tree) == self.key else ANYTHING
        kind = type(tree).__name__
        reader, present = _READERS.get(kind), _PARTS_OF_TREES | _MORE_PARTS.get(kind, frozenset())
        unread = any(part for name, part in tree.args.items() if name not in present)
        return ANYTHING if reader is None or unread else reader(tree, self.read)


def _call(operation: str, *arguments: Expression) -> Expression:
    """Return an operation; what depends on anything may be anything."""
    return ANYTHING if ANYTHING in arguments else (operation, *arguments)


def _literal(tree: exp.Expr, _: _Read) -> Expression:
    text = str(tree.this)
    if tree.args.get("is_string"):
        return ("slice", PARTITION) if text == TOKEN else ("text", text)
    return ("int", int(text)) if text.isdigit() else ANYTHING


def _both(*parts: Expression) -> Expression:
    """Return a condition whose parts all hold; one that may be anything bounds nothing."""
    present = [item for item in parts if item != ANYTHING]
    if not present:
        return ANYTHING
    return present[0] if len(present) == 1 else ("and", *present)


def _negation(tree: exp.Expr, convert: _Read) -> Expression:
    """Read what ``NOT`` stands before: a negated AND is an OR, and the other way round."""
    if isinstance(tree, exp.Paren):
        return _negation(tree.this, convert)
    if isinstance(tree, exp.Not):
        return convert(tree.this)
    if isinstance(tree, exp.And | exp.Or):
        parts = (_negation(tree.this, convert), _negation(tree.expression, convert))
        return _call("or", *parts) if isinstance(tree, exp.And) else _both(*parts)
    return _call("not", convert(tree))


def _binary(operation: str) -> Callable[[exp.Expr, _Read], Expression]:
    return lambda tree, convert: _call(operation, convert(tree.this), convert(tree.expression))


def _unary(operation: str) -> Callable[[exp.Expr, _Read], Expression]:
    return lambda tree, convert: _call(operation, convert(tree.this))


def _between(tree: exp.Expr, convert: _Read) -> Expression:
    value = convert(tree.this)
    low, high = convert(tree.args["low"]), convert(tree.args["high"])
    return _both(_call("ge", value, low), _call("le", value, high))


def _in(tree: exp.Expr, convert: _Read) -> Expression:
    if not tree.expressions:
        return ANYTHING
    return _call("in", convert(tree.this), *map(convert, tree.expressions))


def _is(tree: exp.Expr, convert: _Read) -> Expression:
    kind = type(tree.expression).__name__
    if kind == "Null":
        return _call("is_null", convert(tree.this))
    if kind == "Boolean":
        return _call("is_true" if tree.expression.this else "is_false", convert(tree.this))
    return ANYTHING


def _cast(tree: exp.Expr, convert: _Read) -> Expression:
    kind = str(tree.args["to"].this.name)
    value = convert(tree.this)
    if kind == "DATE" and value[0] == "text":
        return _date_literal(str(value[1]))
    operation = _CASTS.get(kind)
    return ANYTHING if operation is None else _call(operation, value)


def _date_literal(text: str) -> Expression:
    try:
        return ("date", date.fromisoformat(text).isoformat())
    except ValueError:
        return _call("as_date", ("text", text))


def _to_date(tree: exp.Expr, convert: _Read) -> Expression:
    pattern = tree.args.get("format")
    if pattern is None:
        return _call("as_date", convert(tree.this))
    return _call("parse_date", convert(tree.this), convert(pattern))


def _days_later(tree: exp.Expr, convert: _Read) -> Expression:
    """Read date_add and date_sub, which count days."""
    unit = tree.args.get("unit")
    if unit is not None and str(unit.name).upper() != "DAY":
        return ANYTHING
    return _call("add_days", convert(tree.this), convert(tree.expression))


def _date_diff(tree: exp.Expr, convert: _Read) -> Expression:
    sides, unit = (convert(tree.this), convert(tree.expression)), tree.args.get("unit")
    if unit is not None:  # of moments it counts whole units, and not their dates
        dates = [side[0] == "as_date" and side[1] for side in sides]
        are_dates = all(isinstance(item, tuple) and _is_date(item) for item in dates)
        if str(unit.name).upper() != "DAY" or not are_dates:
            return ANYTHING
    return _call("date_diff", *sides)


def _like(tree: exp.Expr, convert: _Read) -> Expression:
    condition = _call("like", convert(tree.this), convert(tree.expression))
    return _call("not", condition) if tree.args.get("negate") else condition


def _add(sign: int) -> Callable[[exp.Expr, _Read], Expression]:
    """Read a sum: of a date and days, of a time and an INTERVAL, or of numbers."""

    def read_sum(tree: exp.Expr, convert: _Read) -> Expression:
        base, amount = convert(tree.this), tree.expression
        if isinstance(amount, exp.Interval):
            return _moved(base, amount, sign)
        second = convert(amount)
        if _is_date(base):
            days = second if sign > 0 else _call("negative", second)
            return _call("add_days", base, days) if _is_number(second) else ANYTHING
        operation = "add" if sign > 0 else "subtract"
        return (
            _call(operation, base, second) if _is_number(base) and _is_number(second) else ANYTHING
        )

    return read_sum


def _moved(base: Expression, interval: exp.Expr, sign: int) -> Expression:
    """Return a date, or a time in UTC, moved by an INTERVAL."""
    try:
        number = sign * int(str(interval.this.name))
    except (ValueError, AttributeError):
        return ANYTHING
    unit = str(getattr(interval.args.get("unit"), "name", "")).upper().removesuffix("S")
    if base[0] == "as_clock" and isinstance(base[1], tuple) and unit in {*_DAYS, *_MONTHS}:
        return _call("as_clock", _moved(base[1], interval, sign)) if _is_date(base[1]) else ANYTHING
    if _is_date(base) and unit in _DAYS:
        return _call("add_days", base, ("int", number * _DAYS[unit]))
    if _is_date(base) and unit in _MONTHS:
        return _call("add_months", base, ("int", number * _MONTHS[unit]))
    if base[0] in _MOMENTS and unit in _SECONDS:
        return _call("add_time", base, ("int", number * _SECONDS[unit]))
    return ANYTHING


def _is_date(expression: Expression) -> bool:
    return expression[0] in _DATES


def _is_number(expression: Expression) -> bool:
    operation = str(expression[0])
    return operation in _NUMBERS or operation.startswith("part_")


def _truncated(operation: str) -> Callable[[exp.Expr, _Read], Expression]:
    def read_unit(tree: exp.Expr, convert: _Read) -> Expression:
        unit = _UNITS.get(str(tree.args["unit"].name).upper())
        if unit is None:
            return ANYTHING
        return _call(operation, convert(tree.this), ("text", unit))

    return read_unit


def _extract(tree: exp.Expr, convert: _Read) -> Expression:
    part = _PARTS.get(str(tree.this.name).upper())
    return ANYTHING if part is None else _call(part, convert(tree.expression))


def _formatted(tree: exp.Expr, convert: _Read) -> Expression:
    inner = tree.this
    inner = inner.this if type(inner).__name__ == "TimeStrToTime" else inner
    return _call("format_date", convert(inner), convert(tree.args["format"]))


def _substring(tree: exp.Expr, convert: _Read) -> Expression:
    parts = [tree.this, tree.args.get("start"), tree.args.get("length")]
    value, start, length = (None if item is None else convert(item) for item in parts)
    if value is None or start is None:
        return ANYTHING
    if length is not None and start in {("int", 0), ("int", 1)}:
        return _call("left", value, length)
    return _call("substring", value, start, *([] if length is None else [length]))


def _replaced(tree: exp.Expr, convert: _Read) -> Expression:
    new = tree.args.get("replacement")
    parts = (
        convert(tree.this),
        convert(tree.expression),
        ("text", "") if new is None else convert(new),
    )
    return _call("replace", *parts)


def _listed(operation: str) -> Callable[[exp.Expr, _Read], Expression]:
    return lambda tree, convert: _call(
        operation, convert(tree.this), *map(convert, tree.expressions)
    )


def _if(tree: exp.Expr, convert: _Read) -> Expression:
    default = tree.args.get("false")
    chosen = ("null",) if default is None else convert(default)
    return _call("case", convert(tree.this), convert(tree.args["true"]), chosen)


def _case(tree: exp.Expr, convert: _Read) -> Expression:
    parts: list[Expression] = []
    for item in tree.args["ifs"]:
        condition = convert(item.this)
        if tree.this is not None:
            condition = _call("eq", convert(tree.this), condition)
        parts += [condition, convert(item.args["true"])]
    default = tree.args.get("default")
    return _call("case", *parts, ("null",) if default is None else convert(default))


def _constant(expression: Expression) -> Callable[[exp.Expr, _Read], Expression]:
    return lambda _, __: expression


_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_DATES = frozenset(
    {"as_date", "date", "add_days", "add_months", "trunc_date", "last_day", "parse_date"}
)
_MOMENTS = frozenset({"as_moment", "as_clock", "trunc_moment", "add_time"})
_NUMBERS = frozenset({"int", "as_int", "add", "subtract", "multiply", "remainder", "negative",
                      "date_diff", "length", "hour"})  # fmt: skip
_CASTS = {
    **dict.fromkeys(("TEXT", "VARCHAR"), "as_text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"), "as_moment"),
    **dict.fromkeys(("INT", "BIGINT"), "as_int"),
    "TIMESTAMPNTZ": "as_clock",
    "DATE": "as_date",
}
_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    **dict.fromkeys(("DAY", "DD"), "day"),
    "QUARTER": "quarter",
    "WEEK": "week",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}
_PARTS = {
    **{name: f"part_{name.lower()}" for name in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")},
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "part_dayofweek"),
    "DOY": "part_dayofyear",
    "HOUR": "hour",
}
_PARTS_OF_TREES = frozenset({"this", "expression", "expressions"})
#: parts of trees that are read beside; a tree with any other one is not
_MORE_PARTS: Mapping[str, frozenset[str]] = {
    "Literal": frozenset({"is_string"}),
    "Cast": frozenset({"to"}),
    "TryCast": frozenset({"to"}),
    "Between": frozenset({"low", "high"}),
    "Like": frozenset({"negate"}),
    "TsOrDsToDate": frozenset({"format", "safe"}),
    "TsOrDsAdd": frozenset({"unit"}),
    "DateAdd": frozenset({"unit"}),
    "DateDiff": frozenset({"unit"}),
    "TimestampTrunc": frozenset({"unit"}),
    "DateTrunc": frozenset({"unit"}),
    "TimeToStr": frozenset({"format"}),
    "Substring": frozenset({"start", "length"}),
    "Concat": frozenset({"safe"}),
    "DPipe": frozenset({"safe"}),
    "Replace": frozenset({"replacement"}),
    "Greatest": frozenset({"ignore_nulls"}),
    "Least": frozenset({"ignore_nulls"}),
    "If": frozenset({"true", "false"}),
    "Case": frozenset({"ifs", "default"}),
}
_READERS: Mapping[str, Callable[[exp.Expr, _Read], Expression]] = {
    "Paren": lambda tree, convert: convert(tree.this),
    "Literal": _literal,
    "Null": _constant(("null",)),
    "Boolean": lambda tree, _: ("truth", bool(tree.this)),
    "And": lambda tree, convert: _both(convert(tree.this), convert(tree.expression)),
    "Or": _binary("or"),
    "Not": lambda tree, convert: _negation(tree.this, convert),
    "EQ": _binary("eq"),
    "NEQ": _binary("ne"),
    "LT": _binary("lt"),
    "LTE": _binary("le"),
    "GT": _binary("gt"),
    "GTE": _binary("ge"),
    "NullSafeEQ": _binary("same"),
    "Between": _between,
    "In": _in,
    "Is": _is,
    "Like": _like,
    "Cast": _cast,
    "TryCast": _cast,
    "Date": lambda tree, convert: _call("as_date", convert(tree.this)),
    "TsOrDsToDate": _to_date,
    "TsOrDsAdd": _days_later,
    "DateAdd": _days_later,
    "AddMonths": _binary("add_months"),
    "DateDiff": _date_diff,
    "Add": _add(1),
    "Sub": _add(-1),
    "Mul": _binary("multiply"),
    "Mod": _binary("remainder"),
    "Neg": _unary("negative"),
    "TimestampTrunc": _truncated("trunc_moment"),
    "DateTrunc": _truncated("trunc_date"),
    "LastDay": _unary("last_day"),
    "Year": _unary("part_year"),
    "Quarter": _unary("part_quarter"),
    "Month": _unary("part_month"),
    "WeekOfYear": _unary("part_week"),
    "DayOfMonth": _unary("part_day"),
    "Day": _unary("part_day"),
    "DayOfYear": _unary("part_dayofyear"),
    "DayOfWeek": _unary("part_dayofweek"),
    "Hour": _unary("hour"),
    "Extract": _extract,
    "TimeToStr": _formatted,
    "Substring": _substring,
    "Left": _binary("left"),
    "Right": _binary("right"),
    "Concat": lambda tree, convert: _call("concat", *map(convert, tree.expressions)),
    "DPipe": _binary("concat"),
    "Replace": _replaced,
    "Upper": _unary("upper"),
    "Lower": _unary("lower"),
    "Trim": lambda tree, convert: (
        ANYTHING if tree.expression else _call("trim", convert(tree.this))
    ),
    "Length": _unary("length"),
    "StartsWith": _binary("starts_with"),
    "EndsWith": _binary("ends_with"),
    "Contains": _binary("contains"),
    "Coalesce": _listed("coalesce"),
    "Nullif": _binary("null_if"),
    "Greatest": _listed("greatest"),
    "Least": _listed("least"),
    "If": _if,
    "Case": _case,
}
