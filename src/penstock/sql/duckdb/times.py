"""DuckDB's intervals, and its functions of dates and times, made of parts.

So no time zone of Spark comes in: its own functions of the kind cast a time without a zone to one
of the session's, in which some times do not exist. Days and months of moments with a time zone are
those of the session's zone in both, hours are so many seconds. Of an hour that comes twice, DuckDB
has the second after months, Spark the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import (
    DATE,
    MOMENT,
    TEXT,
    ZONED,
    by_type,
    called,
    kind_of,
    known_as,
    placed,
    refused,
    spark,
    text_of,
    unless,
    whole_number,
)
from penstock.sql.duckdb.rules import Row, Rule, arguments_of
from penstock.sql.literals import text_literal

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def _elt(index: str, names: tuple[str, ...], length: int = 20) -> str:
    listed = ", ".join(f"'{name[:length]}'" for name in names)
    return f"ELT({index}, {listed})"


def _year(part: str, first: int, last: int) -> str:
    error = "RAISE_ERROR('strftime of a year that is not of four digits')"
    return f"CAST(IF(YEAR(:m) BETWEEN {first} AND {last}, {part}, {error}) AS STRING)"


_MONTH, _DAY = "MONTH(:m)", "EXTRACT(DOW FROM :m)"
_T = "CAST(:m AS TIMESTAMP_NTZ)"
_TWELVE = f"(HOUR({_T}) + 11) % 12 + 1"
_NUMBERS: Mapping[str, str] = {  # printed by two digits, and by one behind ``%-``
    "m": _MONTH, "d": "DAY(:m)", "I": _TWELVE,
    "H": f"HOUR({_T})", "M": f"MINUTE({_T})", "S": f"SECOND({_T})",
}  # fmt: skip
_TWO_DIGITS = {**_NUMBERS, "y": "YEAR(:m) % 100", "V": "EXTRACT(WEEK FROM :m)"}
_PRINTED: Mapping[str, str] = {
    **{f"%-{letter}": f"CAST({part} AS STRING)" for letter, part in _NUMBERS.items()},
    **{f"%{x}": f"LPAD(CAST({part} AS STRING), 2, '0')" for x, part in _TWO_DIGITS.items()},
    "%Y": _year("YEAR(:m)", 1000, 9999),
    "%G": _year("EXTRACT(YEAROFWEEK FROM :m)", 1001, 9998),
    "%f": f"RIGHT(CAST(EXTRACT(SECOND FROM {_T}) AS STRING), 6)",
    "%j": "LPAD(CAST(DAYOFYEAR(:m) AS STRING), 3, '0')",
    "%u": "CAST(EXTRACT(DOW_ISO FROM :m) AS STRING)",
    "%w": "CAST(EXTRACT(DOW FROM :m) - 1 AS STRING)",
    "%p": f"IF(HOUR({_T}) < 12, 'AM', 'PM')",
    "%b": _elt(_MONTH, _MONTHS, 3),
    "%B": _elt(_MONTH, _MONTHS),
    "%a": _elt(_DAY, _DAYS, 3),
    "%A": _elt(_DAY, _DAYS),
    "%%": "'%'",
}
_READ: Mapping[str, str] = {
    "%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss",
}  # fmt: skip
_FORMAT = re.compile(r"%-?.|[^%]+")
_LETTERS = re.compile(r"[A-Za-z]+")


def _local(moment: exp.Expr) -> exp.Expr:
    """A TIMESTAMPTZ as the clock shows it in the session's zone; other moments as they are."""
    if kind_of(moment) != ZONED:
        return moment
    return known_as(MOMENT, spark("CAST(:m AS TIMESTAMP_NTZ)", m=moment))


def _strftime(node: exp.Expr) -> exp.Expr:
    moment, pattern = _local(node.this), text_of(node.args.get("format"))
    if pattern is None or isinstance(moment, exp.Literal):
        raise refused("strftime with a computed format")
    parts: list[str] = []
    for part in _FORMAT.findall(pattern):
        if part.startswith("%") and part not in _PRINTED:
            raise refused(f"{part} in strftime")
        parts.append(_PRINTED.get(part) or text_literal(part))
    text = f"CONCAT({', '.join(parts)})" if parts else "''"
    whole = spark(f"IF(:m IS NULL, NULL, {text})", m=moment)
    return unless("strftime", "timestamp|string|binary|int|bigint", whole, moment)


def _strptime(node: exp.Expr) -> str:
    parts = _FORMAT.findall(text_of(node.args.get("format")) or "")
    if any(part not in _READ and (part[0] == "%" or part.strip("-/ :.TZ")) for part in parts):
        raise refused("strptime with this format")
    if not {"%Y", "%m", "%d"} <= set(parts):
        raise refused("strptime without a whole date")
    pattern = "".join(_READ.get(part) or _LETTERS.sub(r"'\g<0>'", part) for part in parts)
    return f"TO_TIMESTAMP_NTZ(:s, {text_literal(pattern)})"


_DAYS_BETWEEN = "CAST(DATE_DIFF(CAST(:b AS DATE), CAST(:a AS DATE)) AS BIGINT)"
_MONTHS_BETWEEN = "CAST((YEAR(:b) - YEAR(:a)) * 12 + MONTH(:b) - MONTH(:a) AS BIGINT)"
_AT, _BT = "CAST(:a AS TIMESTAMP_NTZ)", "CAST(:b AS TIMESTAMP_NTZ)"
_HOURS_BETWEEN = f"({_DAYS_BETWEEN} * 24 + HOUR({_BT}) - HOUR({_AT}))"
_MINUTES_BETWEEN = f"({_HOURS_BETWEEN} * 60 + MINUTE({_BT}) - MINUTE({_AT}))"
# How many of these begin between the two; weeks are those that are over (DuckDB 1.5.5).
_BETWEEN: Mapping[str, str] = {
    "day": _DAYS_BETWEEN,
    "week": f"({_DAYS_BETWEEN} DIV 7)",
    "month": _MONTHS_BETWEEN,
    "quarter": "CAST((YEAR(:b) - YEAR(:a)) * 4 + QUARTER(:b) - QUARTER(:a) AS BIGINT)",
    "year": "CAST(YEAR(:b) - YEAR(:a) AS BIGINT)",
    "hour": _HOURS_BETWEEN,
    "minute": _MINUTES_BETWEEN,
    "second": f"({_MINUTES_BETWEEN} * 60 + SECOND({_BT}) - SECOND({_AT}))",
}


def _difference(node: exp.Expr) -> str:
    unit = node.text("unit").lower()
    if unit not in _BETWEEN:
        raise refused(f"date_diff in {unit or 'this unit'}")
    return _BETWEEN[unit]


_CLOCK = "MAKE_TIMESTAMP_NTZ(YEAR(:m), MONTH(:m), DAY(:m), "
_TRUNCATED: Mapping[str, str] = {
    "day": "CAST(CAST(:m AS DATE) AS TIMESTAMP_NTZ)",
    **{
        unit: f"CAST(TRUNC(CAST(:m AS DATE), '{unit.upper()}') AS TIMESTAMP_NTZ)"
        for unit in ("year", "quarter", "month", "week")
    },
    "hour": f"{_CLOCK}HOUR({_T}), 0, 0)",
    "minute": f"{_CLOCK}HOUR({_T}), MINUTE({_T}), 0)",
    "second": f"{_CLOCK}HOUR({_T}), MINUTE({_T}), SECOND({_T}))",
}


def _truncated(node: exp.Expr) -> exp.Expr:
    """A TIMESTAMP, of a DATE as well."""
    moment, unit = node.this, (node.text("unit") or "").lower()
    if unit not in _TRUNCATED:
        raise refused(f"date_trunc to {unit}")
    if kind_of(moment) == ZONED:
        return known_as(ZONED, spark(f"DATE_TRUNC('{unit.upper()}', :m)", m=moment))
    value = spark(_TRUNCATED[unit], m=moment)
    return known_as(MOMENT, unless("date_trunc", "timestamp|string", value, moment))


_PARTS: Mapping[str, str] = {
    **{
        name: f"EXTRACT({name.upper()} FROM :m)"
        for name in ("year", "month", "day", "hour", "minute", "quarter", "week")
    },
    **dict.fromkeys(("dow", "dayofweek"), "(EXTRACT(DOW FROM :m) - 1)"),
    **dict.fromkeys(("doy", "dayofyear"), "DAYOFYEAR(:m)"),
    "isodow": "EXTRACT(DOW_ISO FROM :m)",
    "second": f"SECOND({_T})",
    "epoch": f"CAST(CAST(UNIX_DATE(CAST(:m AS DATE)) AS BIGINT) * 86400 + HOUR({_T}) * 3600 "
    f"+ MINUTE({_T}) * 60 + EXTRACT(SECOND FROM {_T}) AS DOUBLE)",
    "isoyear": "EXTRACT(YEAROFWEEK FROM :m)",
}
_MILLISECONDS = (
    f"(CAST(UNIX_DATE(CAST(:m AS DATE)) AS BIGINT) * 86400000 + HOUR({_T}) * 3600000 "
    f"+ MINUTE({_T}) * 60000 + CAST(EXTRACT(SECOND FROM {_T}) * 1000 AS BIGINT))"
)
_NOT_NUMBERS = "float|double|decimal%|string|date|timestamp%"


def _epoch_ms(node: exp.Expr) -> exp.Expr:
    """`epoch_ms` of a moment is a number, of a number a moment: the text tells only of literals.

    ``make_timestamp`` of one number is microseconds.
    """
    value, digits = node.this, whole_number(node.args.get("scale"))
    if node.args.get("scale") is None:
        seconds = spark("TIMESTAMP_SECONDS(:n)", n=value)
        return known_as(ZONED, unless("to_timestamp", _NOT_NUMBERS, seconds, value))
    if digits not in {3, 6}:
        raise refused("this function of seconds")
    if digits == 6 or whole_number(value) is not None:
        return _after_1970(value, digits)
    kinds = "timestamp|string|%int|decimal%|float|double"
    return unless("epoch_ms", kinds, spark(_MILLISECONDS, m=value), value)


def _after_1970(number: exp.Expr, digits: int) -> exp.Expr:
    seconds = f"CAST(CAST(:n AS DECIMAL(20, 0)) / 1{'0' * digits} AS DECIMAL(20, 6))"
    text = f"(TIMESTAMP_NTZ '1970-01-01 00:00:00' + MAKE_DT_INTERVAL(0, 0, 0, {seconds}))"
    return unless("a number of seconds", _NOT_NUMBERS, spark(text, n=number), number)


def _part(name: str, moment: exp.Expr) -> exp.Expr:
    if name not in _PARTS:
        raise refused(f"date_part of {name}")
    if kind_of(moment) == ZONED:
        if name == "epoch":
            return spark("(CAST(UNIX_MICROS(:m) AS DOUBLE) / 1000000D)", m=moment)
        return spark(_PARTS[name], m=_local(moment))
    return unless(name, "timestamp|string", spark(_PARTS[name], m=moment), moment)


def _date_part(node: exp.Expr) -> exp.Expr:
    if len(node.expressions) != 2:
        raise refused("date_part of this form")
    field, moment = node.expressions
    return _part((text_of(field) or field.sql("duckdb")).lower(), moment)


def _part_of(name: str) -> Rule:
    return lambda node: _part(name, arguments_of(node)[0] or node)


def _name_of(index: str, names: tuple[str, ...]) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        moment = _local(node.this)
        return unless("the name", "timestamp|string", spark(_elt(index, names), m=moment), moment)

    return rule


_UNITS = {
    "to_days": "DAY", "to_hours": "HOUR", "to_minutes": "MINUTE", "to_seconds": "SECOND",
    "to_months": "MONTH", "to_years": "YEAR", "to_weeks": "WEEK",
}  # fmt: skip
# Units that are so many of another, which Spark has.
_MULTIPLES = {"QUARTER": (3, "MONTH"), "DECADE": (10, "YEAR"), "CENTURY": (100, "YEAR")}
_KNOWN_UNITS = {*_UNITS.values(), *_MULTIPLES}
_ALIASES = {"CENTURIE": "CENTURY", "MIN": "MINUTE", "SEC": "SECOND", "HR": "HOUR", "MON": "MONTH"}
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
_INTERVAL = "__interval"
_AMOUNT = re.compile(r"(-?\d+)\s+([a-zA-Z]+?)s?\b")
_AMOUNTS = re.compile(r"\s*-?\d+\s+[a-zA-Z]+(?:\s+-?\d+\s+[a-zA-Z]+)*\s*")
_IN_ORDER = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")  # of MAKE_INTERVAL


def is_bound(node: exp.Expr) -> bool:
    """Return whether it is an interval that is bound as its text (`casts`).

    Args:
        node: A part of a tree.

    Returns:
        Whether it is a marker that is cast to INTERVAL.
    """
    is_cast = isinstance(node, exp.Cast) and isinstance(node.this, exp.Placeholder)
    return is_cast and node.args["to"].this == exp.DataType.Type.INTERVAL


def mark_intervals(tree: exp.Expr) -> None:
    """Mark the intervals of a tree of DuckDB's, for the sums that take them.

    They are written by a user (``INTERVAL 1 DAY``), or as DuckDB prints them
    (``to_days(CAST(trunc(CAST(1 AS DOUBLE)) ...))``).

    Args:
        tree: The tree, which is changed.

    Raises:
        UnsupportedFeature: The unit of one is not known.
    """
    for cast in list(tree.find_all(exp.Cast)):
        if cast.args["to"].this.name == "INTERVAL" and text_of(cast.this) is not None:
            _mark_text(cast, cast.this.name)
    for interval in list(tree.find_all(exp.Interval)):
        unit = _unit(interval.text("unit"))
        if not unit and text_of(interval.this) is not None:
            _mark_text(interval, interval.this.name)
        elif unit not in _KNOWN_UNITS or interval.this is None:
            raise placed(refused(f"the interval {interval.sql('duckdb')}"), interval)
        else:
            _mark(interval, interval.this, unit)
    for call in list(tree.find_all(exp.Func)):
        name = call.name.lower() if isinstance(call, exp.Anonymous) else called(call)
        if name in _UNITS:
            _mark(call, _amount(call), _UNITS[name])


def _unit(word: str) -> str:
    unit = word.upper().removesuffix("S")
    return _ALIASES.get(unit, unit)


def _mark_text(node: exp.Expr, text: str) -> None:
    """``'1 day'``, or several: ``'1 month 2 days'``."""
    parts = [(number, _unit(word)) for number, word in _AMOUNT.findall(text)]
    units = [unit for _, unit in parts]
    is_read = _AMOUNTS.fullmatch(text) is not None
    if is_read and len(parts) == 1 and units[0] in _KNOWN_UNITS:
        _mark(node, exp.Literal.string(parts[0][0]), units[0])
        return
    is_several = is_read and len(parts) > 1 and len(set(units)) == len(units)
    if not is_several or not set(units) <= set(_IN_ORDER):
        advice = "INTERVAL '1 month 2 days', of whole numbers and units"
        raise placed(refused(f"the interval {text!r}", advice), node)
    numbers = {unit: int(number) for number, unit in parts}
    _put_interval(
        node, f"MAKE_INTERVAL({', '.join(str(numbers.get(unit, 0)) for unit in _IN_ORDER)})"
    )


def _amount(node: exp.Expr) -> exp.Expr:
    """The number within a function of intervals and the casts that DuckDB prints around it."""
    inner: exp.Expr = node
    while isinstance(inner, exp.Func | exp.Paren):
        inner = (inner.expressions or [inner.this])[0]
    is_constant = whole_number(inner) is not None or text_of(inner) is not None
    return inner if is_constant else (node.expressions or [node.this])[0]


def _mark(node: exp.Expr, amount: exp.Expr, unit: str) -> None:
    """A constant is put into the text, whatever else is computed goes along as an argument."""
    number, text = whole_number(amount), text_of(amount)
    if number is None and text is not None and text.strip().removeprefix("-").isdigit():
        number = int(text)
    if unit in _MULTIPLES:
        times, unit = _MULTIPLES[unit]
        if number is None:
            raise placed(refused(f"the interval {node.sql('duckdb')}", "to_months(n)"), node)
        number *= times
    if number is not None:
        _put_interval(node, f"INTERVAL '{number}' {unit}")
    elif text is not None:
        raise placed(refused(f"the interval {node.sql('duckdb')}"), node)
    else:
        _put_interval(node, _COMPUTED[unit], amount.copy())


def _put_interval(node: exp.Expr, text: str, *amount: exp.Expr) -> None:
    node.replace(exp.Anonymous(this=_INTERVAL, expressions=[exp.Literal.string(text), *amount]))


def span(node: exp.Expr) -> tuple[str, exp.Expr | None] | None:
    """Return an interval that `mark_intervals` has marked or that is bound.

    Args:
        node: A part of a tree.

    Returns:
        Spark's text of the interval, and what ``:n`` in it stands for; None for anything else.
    """
    node = node.unnest()
    if is_bound(node):
        return "CAST(:n AS INTERVAL)", node.this
    if not isinstance(node, exp.Anonymous) or node.name != _INTERVAL:
        return None
    text, *amount = node.expressions
    return str(text.name), amount[0] if amount else None


def _interval(node: exp.Expr) -> exp.Expr:
    """Only a sum or a difference takes it, and the frame of a window."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.WindowSpec):
        text, amount = span(node) or ("", None)
        if amount is not None or not text.startswith("INTERVAL '"):
            raise refused("a frame of this interval", "RANGE BETWEEN INTERVAL 7 DAY PRECEDING")
        return spark(text)
    takers = (exp.Add, exp.DateAdd, exp.DateBin, exp.GenerateSeries, exp.Sub)
    if not isinstance(parent, takers):
        raise refused("an interval on its own", "it in a sum: ts + INTERVAL 1 DAY")
    return node


_CONSTANT = re.compile(r"INTERVAL '(-?\d+)' (\w+)")
_EXACT = {
    "HOUR": "MAKE_INTERVAL(0, 0, 0, 0, {n})",
    "MINUTE": "MAKE_INTERVAL(0, 0, 0, 0, 0, {n})",
    "SECOND": "MAKE_INTERVAL(0, 0, 0, 0, 0, 0, {n})",
}
_COMPUTED_UNITS = {text: unit for unit, text in _COMPUTED.items()}
_LATER = (
    "IF(CAST(CAST(:t AS TIMESTAMP) + MAKE_INTERVAL(0, 0, 0, 0, 1) AS TIMESTAMP_NTZ) = :t, "
    "CAST(:t AS TIMESTAMP) + MAKE_INTERVAL(0, 0, 0, 0, 1), CAST(:t AS TIMESTAMP))"
)
_NOT_WHOLE = "float|double|decimal%|string|bigint"


def moved(moment: exp.Expr, sign: str, by: exp.Expr) -> exp.Expr:
    """Add an interval to a moment, or subtract it. A DATE becomes a TIMESTAMP.

    Args:
        moment: A date or a time.
        sign: ``+`` or ``-``.
        by: The interval.

    Returns:
        The sum or the difference.
    """
    text, amount = span(by) or ("", None)
    parts = {} if amount is None else {"n": amount}
    kind = kind_of(moment)
    if kind == ZONED:
        later = _moved_in_zone(moment, sign, text, parts)
    else:
        later = spark(f"(CAST(:m AS TIMESTAMP_NTZ) {sign} {text})", m=moment, **parts)
    if amount is not None and not is_bound(by):
        advice = "a whole number: INTERVAL (n::INT) HOUR"
        later = unless("an interval", _NOT_WHOLE, later, amount, advice=advice)
    if kind not in {DATE, MOMENT, ZONED}:
        advice = f"x::TIMESTAMPTZ {sign} INTERVAL 1 DAY, or x::TIMESTAMP"
        later = unless("sum with an interval", "timestamp|string", later, moment, advice=advice)
    return known_as(ZONED if kind == ZONED else MOMENT, later)


def _moved_in_zone(
    moment: exp.Expr, sign: str, text: str, parts: Mapping[str, exp.Expr]
) -> exp.Expr:
    constant = _CONSTANT.fullmatch(text)
    unit = constant[2] if constant else _COMPUTED_UNITS.get(text, "")
    if unit in _EXACT:
        text = _EXACT[unit].format(n=constant[1] if constant else ":n")
    if "MONTH" in text or "YEAR" in text or "_YM_" in text:
        local = spark(f"(CAST(:m AS TIMESTAMP_NTZ) {sign} {text})", m=moment, **parts)
        return spark(_LATER, t=local)
    if text.startswith("CAST") or (text.startswith("MAKE_INTERVAL") and unit not in _EXACT):
        raise refused("a TIMESTAMPTZ and an interval of this form", "INTERVAL n DAY and the like")
    return spark(f"(:m {sign} {text})", m=moment, **parts)


_ZONE = re.compile(r"UTC|[A-Z][A-Za-z_]+(/[A-Za-z0-9_+-]+)+")
# A moment as UTC has it, whatever the session's zone.
_UTC = (
    "(TIMESTAMP_NTZ '1970-01-01 00:00:00' + MAKE_DT_INTERVAL(0, 0, 0, "
    "CAST(CAST(UNIX_MICROS(CAST(:m AS TIMESTAMP)) AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(20, 6))))"
)
# The other way round, from UTC's TIMESTAMP_NTZ. An hour that comes twice is the second.
_IN_UTC = "CONVERT_TIMEZONE(:z, 'UTC', CAST(:m AS TIMESTAMP_NTZ))"
_MICROS = (
    f"(CAST(UNIX_DATE(CAST({_IN_UTC} AS DATE)) AS BIGINT) * 86400000000L "
    f"+ HOUR({_IN_UTC}) * 3600000000L + MINUTE({_IN_UTC}) * 60000000L "
    f"+ CAST(EXTRACT(SECOND FROM {_IN_UTC}) * 1000000 AS BIGINT))"
)
_TO_ZONED = (
    f"IF(CONVERT_TIMEZONE('UTC', :z, {_IN_UTC} + INTERVAL '1' HOUR) = CAST(:m AS TIMESTAMP_NTZ), "
    f"TIMESTAMP_MICROS({_MICROS} + 3600000000L), TIMESTAMP_MICROS({_MICROS}))"
)


def _in_zone(moment: exp.Expr, zone: exp.Expr | None) -> exp.Expr:
    """Make a TIMESTAMP of that zone of a TIMESTAMPTZ, and a TIMESTAMPTZ of a TIMESTAMP."""
    name = text_of(zone)
    if name is None or not _ZONE.fullmatch(name):
        raise refused(f"the time zone {name or 'that is computed'}", "'Europe/Berlin' or 'UTC'")
    parts = {"m": moment, "z": exp.Literal.string(name)}
    local, whole = spark(f"CONVERT_TIMEZONE('UTC', :z, {_UTC})", **parts), spark(_TO_ZONED, **parts)
    kind = kind_of(moment)
    if kind == ZONED:
        return known_as(MOMENT, local)
    if kind == MOMENT:
        return known_as(ZONED, whole)
    types = "IF(TYPEOF(:o0) LIKE 'timestamp', 'timestamp_ntz', 'timestamp')"
    node = unless("AT TIME ZONE", "string|date", whole, moment, advice="x::TIMESTAMP AT TIME ZONE")
    return by_type("AT TIME ZONE", "timestamp", local, types, node, moment)


def _bucket(node: exp.Expr) -> str:
    """Months count from 2000, other widths from its first Monday."""
    text, amount = span(node.this) or ("", None)
    width = _CONSTANT.fullmatch(text)
    if width is None or amount is not None or int(width[1]) < 1 or node.args.get("origin"):
        raise refused("time_bucket of this form", "time_bucket(INTERVAL '15 minutes', ts)")
    first = "2000-01-01" if width[2] in {"MONTH", "YEAR"} else "2000-01-03"
    size = f"INTERVAL '{int(width[1]) * 7}' DAY" if width[2] == "WEEK" else text
    return f"TIME_BUCKET({size}, CAST(:m AS TIMESTAMP_NTZ), TIMESTAMP_NTZ '{first} 00:00:00')"


_PART_CLASSES = (
    *(("day", exp.Day), ("day", exp.DayOfMonth), ("dow", exp.DayOfWeek)),
    *(("isodow", exp.DayOfWeekIso), ("doy", exp.DayOfYear), ("hour", exp.Hour)),
    *(("minute", exp.Minute), ("month", exp.Month), ("quarter", exp.Quarter)),
    *(("second", exp.Second), ("epoch", exp.TimeToUnix), ("week", exp.Week)),
    *(("week", exp.WeekOfYear), ("year", exp.Year)),
)
_MAKE_TIMESTAMP = (
    "MAKE_TIMESTAMP_NTZ(:year, :month, :day, :hour, :min, CAST(:sec AS DECIMAL(16, 6)))"
)

TIMES = (
    *(Row(name, node, _part_of(name)) for name, node in _PART_CLASSES),
    Row(_INTERVAL, None, _interval),
    Row("at_time_zone", exp.AtTimeZone, lambda node: _in_zone(node.this, node.args.get("zone"))),
    Row("current_date", exp.CurrentDate, kind=DATE),
    Row("current_timestamp", exp.CurrentTimestamp, kind=ZONED),
    Row("date_diff(b, a)", exp.DateDiff, _difference, "timestamp|string", checked="ab"),
    Row("date_part", None, _date_part),
    Row("date_trunc", exp.DateTrunc, _truncated),
    Row("date_trunc", exp.TimestampTrunc, _truncated),
    Row("dayname", exp.Dayname, _name_of(_DAY, _DAYS)),
    Row("epoch_ms", exp.UnixToTime, _epoch_ms),
    Row("extract", exp.Extract, lambda node: _part(node.this.name.lower(), node.expression)),
    Row("isoyear(m)", None, _part_of("isoyear")),
    Row("last_day", exp.LastDay, kind=DATE),
    Row("make_date(y, m, d)", exp.DateFromParts, "MAKE_DATE(:y, :m, :d)", kind=DATE),
    Row(
        "make_timestamp(year, month, day, hour, min, sec)", exp.TimestampFromParts, _MAKE_TIMESTAMP
    ),
    Row("make_timestamp_ms(n)", None, lambda node: _after_1970(node.expressions[0], 3)),
    Row("monthname", exp.Monthname, _name_of(_MONTH, _MONTHS)),
    Row("now|get_current_timestamp", None, lambda _: exp.CurrentTimestamp(), kind=ZONED),
    Row("strftime", exp.TimeToStr, _strftime, kind=TEXT),
    Row("strptime(s)", exp.StrToTime, _strptime),
    Row(
        "time_bucket(w, m)",
        exp.DateBin,
        _bucket,
        "date|timestamp|string",
        checked="m",
        advice="time_bucket(INTERVAL 1 DAY, x::TIMESTAMP)",
        kind=MOMENT,
    ),
    Row("timezone(z, m)", None, lambda node: _in_zone(node.expressions[1], node.expressions[0])),
    Row("weekday(m)", None, _part_of("dow")),
)
