"""DuckDB's functions of dates and times, made of parts: so no time zone of Spark comes in.

Spark's own functions of the kind cast a time without a zone to one of the session's, in which some
times do not exist. Moments with a time zone (sums with intervals, AT TIME ZONE, buckets) come last:
days and months are those of the session's zone in both, hours are so many seconds. Of an hour that
comes twice, DuckDB has the second after months, Spark the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import (
    MOMENT,
    ZONED,
    by_type,
    kind_of,
    known_as,
    refused,
    spark,
    text_of,
    unless,
    whole_number,
)
from penstock.sql.duckdb.spans import span

Rule = Callable[[exp.Expr], exp.Expr]

_NOT_A_MOMENT = "timestamp|string|binary|int|bigint"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def _elt(index: str, names: tuple[str, ...], length: int = 20) -> str:
    listed = ", ".join(f"'{name[:length]}'" for name in names)
    return f"ELT({index}, {listed})"


def _two(part: str) -> str:
    return f"LPAD(CAST({part} AS STRING), 2, '0')"


_MONTH, _DAY = "MONTH(:m)", "EXTRACT(DOW FROM :m)"
_T = "CAST(:m AS TIMESTAMP_NTZ)"
_PRINTED: Mapping[str, str] = {
    "%Y": "CAST(IF(YEAR(:m) BETWEEN 1000 AND 9999, YEAR(:m), "
    "RAISE_ERROR('strftime of a year that is not of four digits')) AS STRING)",
    "%m": _two(_MONTH),
    "%d": _two("DAY(:m)"),
    "%H": _two(f"HOUR({_T})"),
    "%M": _two(f"MINUTE({_T})"),
    "%S": _two(f"SECOND({_T})"),
    "%f": f"RIGHT(CAST(EXTRACT(SECOND FROM {_T}) AS STRING), 6)",
    "%j": "LPAD(CAST(DAYOFYEAR(:m) AS STRING), 3, '0')",
    "%y": _two("YEAR(:m) % 100"),
    "%G": "CAST(IF(YEAR(:m) BETWEEN 1001 AND 9998, EXTRACT(YEAROFWEEK FROM :m), "
    "RAISE_ERROR('strftime of a year that is not of four digits')) AS STRING)",
    "%V": _two("EXTRACT(WEEK FROM :m)"),
    "%u": "CAST(EXTRACT(DOW_ISO FROM :m) AS STRING)",
    "%w": "CAST(EXTRACT(DOW FROM :m) - 1 AS STRING)",
    "%I": _two(f"(HOUR({_T}) + 11) % 12 + 1"),
    "%p": f"IF(HOUR({_T}) < 12, 'AM', 'PM')",
    "%-H": f"CAST(HOUR({_T}) AS STRING)",
    "%-M": f"CAST(MINUTE({_T}) AS STRING)",
    "%-S": f"CAST(SECOND({_T}) AS STRING)",
    "%-I": f"CAST((HOUR({_T}) + 11) % 12 + 1 AS STRING)",
    "%-d": "CAST(DAY(:m) AS STRING)",
    "%-m": "CAST(MONTH(:m) AS STRING)",
    "%b": _elt(_MONTH, _MONTHS, 3),
    "%B": _elt(_MONTH, _MONTHS),
    "%a": _elt(_DAY, _DAYS, 3),
    "%A": _elt(_DAY, _DAYS),
    "%%": "'%'",
}
_READ: Mapping[str, str] = {
    "%Y": "yyyy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%M": "mm",
    "%S": "ss",
}
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
        parts.append(_PRINTED.get(part) or exp.Literal.string(part).sql("databricks"))
    text = f"CONCAT({', '.join(parts)})" if parts else "''"
    whole = spark(f"IF(:m IS NULL, NULL, {text})", m=moment)
    return unless("strftime", _NOT_A_MOMENT, whole, moment)


def _strptime(node: exp.Expr) -> exp.Expr:
    pattern = text_of(node.args.get("format"))
    parts = _FORMAT.findall(pattern or "")
    if any(part not in _READ and (part[0] == "%" or part.strip("-/ :.TZ")) for part in parts):
        raise refused("strptime with this format")
    if not {"%Y", "%m", "%d"} <= set(parts):
        raise refused("strptime without a whole date")
    known = exp.Literal.string(
        "".join(_READ.get(part) or _LETTERS.sub(r"'\g<0>'", part) for part in parts)
    )
    return spark("TO_TIMESTAMP_NTZ(:s, :f)", s=node.this, f=known)


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


def _date_diff(node: exp.Expr) -> exp.Expr:
    unit, a, b = node.text("unit").lower(), node.expression, node.this
    if unit not in _BETWEEN:
        raise refused(f"date_diff in {unit or 'this unit'}")
    return unless("date_diff", "timestamp|string", spark(_BETWEEN[unit], a=a, b=b), a, b)


_TRUNCATED: Mapping[str, str] = {
    "day": "CAST(CAST(:m AS DATE) AS TIMESTAMP_NTZ)",
    **{
        unit: f"CAST(TRUNC(CAST(:m AS DATE), '{unit.upper()}') AS TIMESTAMP_NTZ)"
        for unit in ("year", "quarter", "month", "week")
    },
    **{
        unit: f"MAKE_TIMESTAMP_NTZ(YEAR(:m), MONTH(:m), DAY(:m), HOUR({_T}), {minute}, {second})"
        for unit, minute, second in (
            ("hour", "0", "0"),
            ("minute", f"MINUTE({_T})", "0"),
            ("second", f"MINUTE({_T})", f"SECOND({_T})"),
        )
    },
}


def _date_trunc(node: exp.Expr) -> exp.Expr:
    """A TIMESTAMP, of a DATE as well."""
    unit = (node.text("unit") or "").lower()
    if unit not in _TRUNCATED:
        raise refused(f"date_trunc to {unit}")
    if kind_of(node.this) == ZONED:
        return known_as(ZONED, spark(f"DATE_TRUNC('{unit.upper()}', :m)", m=node.this))
    text = _TRUNCATED[unit]
    moment = unless("date_trunc", "timestamp|string", spark(text, m=node.this), node.this)
    return known_as(MOMENT, moment)


_EPOCH = (
    f"CAST(CAST(UNIX_DATE(CAST(:m AS DATE)) AS BIGINT) * 86400 + HOUR({_T}) * 3600 "
    f"+ MINUTE({_T}) * 60 + EXTRACT(SECOND FROM {_T}) AS DOUBLE)"
)
_PARTS: Mapping[str, str] = {
    **{
        name: f"EXTRACT({name.upper()} FROM :m)"
        for name in ("year", "month", "day", "hour", "minute", "quarter", "week")
    },
    "dow": "(EXTRACT(DOW FROM :m) - 1)",
    "dayofweek": "(EXTRACT(DOW FROM :m) - 1)",
    "isodow": "EXTRACT(DOW_ISO FROM :m)",
    "doy": "DAYOFYEAR(:m)",
    "dayofyear": "DAYOFYEAR(:m)",
    "second": f"SECOND({_T})",
    "epoch": _EPOCH,
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
    digits = whole_number(node.args.get("scale"))
    if node.args.get("scale") is None:
        return _to_timestamp(node.this)
    if digits not in {3, 6}:
        raise refused("this function of seconds")
    if digits == 6:
        return _after_1970(node.this, 6)
    if whole_number(node.this) is not None:
        return _after_1970(node.this, 3)
    kinds = "timestamp|string|%int|decimal%|float|double"
    return unless("epoch_ms", kinds, spark(_MILLISECONDS, m=node.this), node.this)


def _to_timestamp(number: exp.Expr) -> exp.Expr:
    seconds = unless("to_timestamp", _NOT_NUMBERS, spark("TIMESTAMP_SECONDS(:n)", n=number), number)
    return known_as(ZONED, seconds)


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
    field, moment = node.expressions
    return _part((text_of(field) or field.sql("duckdb")).lower(), moment)


def _named_part(name: str) -> Rule:
    return lambda node: _part(name, node.this)


def _name(index: str, names: tuple[str, ...]) -> Rule:
    return lambda node: unless(
        *("the name", "timestamp|string", spark(_elt(index, names), m=_local(node.this))),
        _local(node.this),
    )


def _make_date(node: exp.Expr) -> exp.Expr:
    year, month, day = (node.args.get(key) for key in ("year", "month", "day"))
    if year is None or month is None or day is None:
        raise refused("make_date of this form")
    return spark("MAKE_DATE(:y, :m, :d)", y=year, m=month, d=day)


def _make_timestamp(node: exp.Expr) -> exp.Expr:
    parts = {name: node.args.get(name) for name in ("year", "month", "day", "hour", "min", "sec")}
    known = {name: part for name, part in parts.items() if part is not None}
    if len(known) != len(parts):
        raise refused("make_timestamp of this form")
    text = "MAKE_TIMESTAMP_NTZ(:year, :month, :day, :hour, :min, CAST(:sec AS DECIMAL(16, 6)))"
    return spark(text, **known)


TIMES: Mapping[type[exp.Expr], Rule] = {
    exp.DateDiff: _date_diff,
    exp.DateFromParts: _make_date,
    exp.DateTrunc: _date_trunc,
    exp.DayOfMonth: _named_part("day"),
    exp.DayOfWeek: _named_part("dow"),
    exp.DayOfWeekIso: _named_part("isodow"),
    exp.DayOfYear: _named_part("doy"),
    exp.Dayname: _name(_DAY, _DAYS),
    exp.Extract: lambda node: _part(node.this.name.lower(), node.expression),
    exp.Monthname: _name(_MONTH, _MONTHS),
    exp.Second: _named_part("second"),
    exp.StrToTime: _strptime,
    exp.TimeToStr: _strftime,
    exp.TimeToUnix: _named_part("epoch"),
    exp.TimestampFromParts: _make_timestamp,
    exp.TimestampTrunc: _date_trunc,
    exp.UnixToTime: _epoch_ms,
    exp.WeekOfYear: _named_part("week"),
    **{
        kind: _named_part(kind.__name__.lower())
        for kind in (exp.Day, exp.Hour, exp.Minute, exp.Month, exp.Quarter, exp.Week, exp.Year)
    },
}
DATE_PART = _date_part
NAMED_TIMES: Mapping[str, Rule] = {
    "isoyear": lambda node: _part("isoyear", node.expressions[0]),
    "make_timestamp_ms": lambda node: _after_1970(node.expressions[0], 3),
    "weekday": lambda node: _part("dow", node.expressions[0]),
}


_CONSTANT = re.compile(r"INTERVAL '(-?\d+)' (\w+)")
_EXACT = {
    "HOUR": "MAKE_INTERVAL(0, 0, 0, 0, {n})",
    "MINUTE": "MAKE_INTERVAL(0, 0, 0, 0, 0, {n})",
    "SECOND": "MAKE_INTERVAL(0, 0, 0, 0, 0, 0, {n})",
}
_COMPUTED = {
    "MAKE_DT_INTERVAL(0, :n)": "HOUR",
    "MAKE_DT_INTERVAL(0, 0, :n)": "MINUTE",
    "MAKE_DT_INTERVAL(0, 0, 0, :n)": "SECOND",
}
_LATER = (
    "IF(CAST(CAST(:t AS TIMESTAMP) + MAKE_INTERVAL(0, 0, 0, 0, 1) AS TIMESTAMP_NTZ) = :t, "
    "CAST(:t AS TIMESTAMP) + MAKE_INTERVAL(0, 0, 0, 0, 1), CAST(:t AS TIMESTAMP))"
)
# A moment as UTC has it, whatever the session's zone.
_UTC = (
    "(TIMESTAMP_NTZ '1970-01-01 00:00:00' + MAKE_DT_INTERVAL(0, 0, 0, "
    "CAST(CAST(UNIX_MICROS(CAST(:m AS TIMESTAMP)) AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(20, 6))))"
)
# The other way round, from UTC's TIMESTAMP_NTZ.
_MICROS = (
    "(CAST(UNIX_DATE(CAST(:u AS DATE)) AS BIGINT) * 86400000000L + HOUR(:u) * 3600000000L "
    "+ MINUTE(:u) * 60000000L + CAST(EXTRACT(SECOND FROM :u) * 1000000 AS BIGINT))"
)
_ZONE = re.compile(r"UTC|[A-Z][A-Za-z_]+(/[A-Za-z0-9_+-]+)+")


def moved(moment: exp.Expr, sign: str, by: exp.Expr) -> exp.Expr:
    """Add an interval to a TIMESTAMPTZ, or subtract it."""
    text, amount = span(by) or ("", None)
    parts = {} if amount is None else {"n": amount}
    constant = _CONSTANT.fullmatch(text)
    unit = constant[2] if constant else _COMPUTED.get(text, "")
    if unit in _EXACT:
        text = _EXACT[unit].format(n=constant[1] if constant else ":n")
    if "MONTH" in text or "YEAR" in text or "_YM_" in text:
        local = spark(f"(CAST(:m AS TIMESTAMP_NTZ) {sign} {text})", m=moment, **parts)
        return known_as(ZONED, spark(_LATER, t=local))
    if text.startswith("CAST") or (text.startswith("MAKE_INTERVAL") and unit not in _EXACT):
        raise refused("a TIMESTAMPTZ and an interval of this form", "INTERVAL n DAY and the like")
    return known_as(ZONED, spark(f"(:m {sign} {text})", m=moment, **parts))


def _at_zone(node: exp.Expr) -> exp.Expr:
    return _in_zone(node.this, node.args.get("zone"))


def _in_zone(moment: exp.Expr, zone: exp.Expr | None) -> exp.Expr:
    """Make a TIMESTAMP of that zone of a TIMESTAMPTZ, and a TIMESTAMPTZ of a TIMESTAMP."""
    name = text_of(zone)
    if name is None or not _ZONE.fullmatch(name):
        raise refused(f"the time zone {name or 'that is computed'}", "'Europe/Berlin' or 'UTC'")
    parts = {"m": moment, "z": exp.Literal.string(name)}
    local = spark(f"CONVERT_TIMEZONE('UTC', :z, {_UTC})", **parts)
    there = "CONVERT_TIMEZONE(:z, 'UTC', CAST(:m AS TIMESTAMP_NTZ))"
    utc = f"TIMESTAMP_MICROS({_MICROS.replace(':u', there)})"
    again = f"CONVERT_TIMEZONE('UTC', :z, {there} + INTERVAL '1' HOUR) = CAST(:m AS TIMESTAMP_NTZ)"
    moved_on = f"TIMESTAMP_MICROS({_MICROS.replace(':u', there)} + 3600000000L)"
    whole = spark(f"IF({again}, {moved_on}, {utc})", **parts)
    kind = kind_of(moment)
    if kind == ZONED:
        return known_as(MOMENT, local)
    if kind == MOMENT:
        return known_as(ZONED, whole)
    types = "IF(TYPEOF(:o0) LIKE 'timestamp', 'timestamp_ntz', 'timestamp')"
    node = unless("AT TIME ZONE", "string|date", whole, moment, advice="x::TIMESTAMP AT TIME ZONE")
    return by_type("AT TIME ZONE", "timestamp", local, types, node, moment)


def _bucket(node: exp.Expr) -> exp.Expr:
    """Translate ``time_bucket``: months count from 2000, other widths from its first Monday."""
    text, amount = span(node.this) or ("", None)
    width = _CONSTANT.fullmatch(text)
    if width is None or amount is not None or int(width[1]) < 1 or node.args.get("origin"):
        raise refused("time_bucket of this form", "time_bucket(INTERVAL '15 minutes', ts)")
    first = "2000-01-01" if width[2] in {"MONTH", "YEAR"} else "2000-01-03"
    size = f"INTERVAL '{int(width[1]) * 7}' DAY" if width[2] == "WEEK" else text
    bucket = f"TIME_BUCKET({size}, CAST(:m AS TIMESTAMP_NTZ), TIMESTAMP_NTZ '{first} 00:00:00')"
    of_moment = spark(bucket, m=node.expression)
    return known_as(
        MOMENT,
        unless(
            *("time_bucket", "date|timestamp|string", of_moment, node.expression),
            advice="time_bucket(INTERVAL 1 DAY, x::TIMESTAMP)",
        ),
    )


ZONES: Mapping[type[exp.Expr], Rule] = {exp.AtTimeZone: _at_zone, exp.DateBin: _bucket}
NAMED_ZONES: Mapping[str, Rule] = {
    "timezone": lambda node: _in_zone(node.expressions[1], node.expressions[0]),
}
