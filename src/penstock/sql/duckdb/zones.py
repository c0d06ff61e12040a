"""DuckDB's moments with a time zone: sums with intervals, AT TIME ZONE, buckets of time.

Days and months are those of the session's zone in both; hours are so many seconds. Of an hour that
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
)
from penstock.sql.duckdb.spans import span

Rule = Callable[[exp.Expr], exp.Expr]

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
    """Return those of months begin in 2000, others on its first Monday."""
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
