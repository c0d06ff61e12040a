"""DuckDB's intervals, marked for the sums that take them."""

from __future__ import annotations

import re

from penstock.lazy import exp
from penstock.sql.duckdb.guards import placed, refused, text_of, whole_number

_SPAN = "__interval"
_SPANS = {
    "to_days": "DAY",
    "to_hours": "HOUR",
    "to_minutes": "MINUTE",
    "to_seconds": "SECOND",
    "to_months": "MONTH",
    "to_years": "YEAR",
    "to_weeks": "WEEK",
}
_UNITS = set(_SPANS.values())
# Units that are so many of another, which Spark has.
_MANY = {"QUARTER": (3, "MONTH"), "DECADE": (10, "YEAR"), "CENTURY": (100, "YEAR")}
_ALIASES = {"CENTURIE": "CENTURY", "MIN": "MINUTE", "SEC": "SECOND", "HR": "HOUR", "MON": "MONTH"}
_PART = r"(-?\d+)\s+([a-zA-Z]+?)s?"
_WRITTEN = re.compile(rf"\s*{_PART}\s*")
_SEVERAL = re.compile(rf"\s*{_PART}(?:\s+{_PART})+\s*".replace("(-", "(?:-").replace("([", "(?:["))
_EACH = re.compile(_PART + r"\b")
_MADE = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")  # of MAKE_INTERVAL


def is_bound(node: exp.Expr) -> bool:
    """Return whether it is an interval that is bound as its text (`casts`)."""
    cast = isinstance(node, exp.Cast) and isinstance(node.this, exp.Placeholder)
    return cast and node.args["to"].this == exp.DataType.Type.INTERVAL


def intervals(tree: exp.Expr) -> None:
    """Mark intervals: those that a user wrote (``INTERVAL 1 DAY``), and as DuckDB prints them
    (``to_days(CAST(trunc(CAST(1 AS DOUBLE)) ...))``).

    Raises UnsupportedFeature for units that are not known.
    """
    for cast in list(tree.find_all(exp.Cast)):
        if cast.args["to"].this.name == "INTERVAL" and text_of(cast.this) is not None:
            _mark_text(cast, cast.this.name)
    for written in list(tree.find_all(exp.Interval)):
        unit = _unit(written.text("unit"))
        if not unit and text_of(written.this) is not None:
            _mark_text(written, written.this.name)
        elif unit not in _UNITS | _MANY.keys() or written.this is None:
            raise placed(refused(f"the interval {written.sql('duckdb')}"), written)
        else:
            _mark(written, written.this, unit)
    for call in list(tree.find_all(exp.Func)):
        if _function(call) in _SPANS:
            _mark(call, _amount(call), _SPANS[_function(call)])


def _unit(word: str) -> str:
    unit = word.upper().removesuffix("S")
    return _ALIASES.get(unit, unit)


def _mark_text(node: exp.Expr, text: str) -> None:
    """``'1 day'``, or several: ``'1 month 2 days'``."""
    one = _WRITTEN.fullmatch(text)
    if one is not None and _unit(one[2]) in _UNITS | _MANY.keys():
        _mark(node, exp.Literal.string(one[1]), _unit(one[2]))
        return
    parts = [(int(n), _unit(word)) for n, word in _EACH.findall(text)]
    known = all(unit in _MADE for _, unit in parts)
    if not _SEVERAL.fullmatch(text) or not known or len({u for _, u in parts}) < len(parts):
        advice = "INTERVAL '1 month 2 days', of whole numbers and units"
        raise placed(refused(f"the interval {text!r}", advice), node)
    numbers = {unit: n for n, unit in parts}
    made = ", ".join(str(numbers.get(unit, 0)) for unit in _MADE)
    marked = exp.Literal.string(f"MAKE_INTERVAL({made})")
    node.replace(exp.Anonymous(this=_SPAN, expressions=[marked]))


def _amount(node: exp.Expr) -> exp.Expr:
    """The number within a function of intervals and the casts that DuckDB prints around it."""
    inner: exp.Expr = node
    while isinstance(inner, exp.Func | exp.Paren):
        inner = (inner.expressions or [inner.this])[0]
    constant = whole_number(inner) is not None or text_of(inner) is not None
    return inner if constant else (node.expressions or [node.this])[0]


def _mark(node: exp.Expr, amount: exp.Expr, unit: str) -> None:
    """A constant is put into the text, whatever else is computed goes along as an argument."""
    value = whole_number(amount)
    text = text_of(amount) or ""
    if value is None and text.strip().removeprefix("-").isdigit():
        value = int(text)
    if unit in _MANY:
        times, unit = _MANY[unit]
        if value is None:
            raise placed(refused(f"the interval {node.sql('duckdb')}", "to_months(n)"), node)
        value *= times
    if value is not None:
        marked = exp.Literal.string(f"INTERVAL '{value}' {unit}")
        node.replace(exp.Anonymous(this=_SPAN, expressions=[marked]))
        return
    if text_of(amount) is not None:
        raise placed(refused(f"the interval {node.sql('duckdb')}"), node)
    made = exp.Literal.string(_COMPUTED[unit])
    node.replace(exp.Anonymous(this=_SPAN, expressions=[made, amount.copy()]))


# Of a computed number, which DuckDB takes as an INTEGER, seconds as DOUBLE.
_COMPUTED = {
    "DAY": "MAKE_DT_INTERVAL(:n)",
    "HOUR": "MAKE_DT_INTERVAL(0, :n)",
    "MINUTE": "MAKE_DT_INTERVAL(0, 0, :n)",
    "SECOND": "MAKE_DT_INTERVAL(0, 0, 0, :n)",
    "WEEK": "MAKE_DT_INTERVAL(7 * :n)",
    "MONTH": "MAKE_YM_INTERVAL(0, :n)",
    "YEAR": "MAKE_YM_INTERVAL(:n)",
}


def _function(node: exp.Func) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return str(name).lower()


def span(node: exp.Expr) -> tuple[str, exp.Expr | None] | None:
    """Spark's text of an interval that `intervals` has marked or that is bound, and what ``:n`` in
    it stands for.
    """
    while isinstance(node, exp.Paren):
        node = node.this
    if is_bound(node):
        return "CAST(:n AS INTERVAL)", node.this
    if not isinstance(node, exp.Anonymous) or node.name != _SPAN:
        return None
    text, *amount = node.expressions
    return str(text.name), amount[0] if amount else None
