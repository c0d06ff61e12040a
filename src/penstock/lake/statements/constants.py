"""The value of an argument: read here where it is plain, else computed by Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from penstock.errors import QueryFailed
from penstock.lake.format.values.intervals import Interval, parse_interval
from penstock.lake.spark.failures import explained
from penstock.lake.statements.session import Session
from penstock.sql.literals import Literal, NoLiteral, literal
from penstock.sql.statement import Reader


def constant(session: Session, reader: Reader) -> Any:
    """The value that comes next, up to a comma or bracket.

    Literals, lists, markers, ``now()`` and ``now() - INTERVAL '1 week'`` need no session.
    """
    at = reader.at
    for read in (_literal, _moment):
        try:
            found = read(session, reader)
            if reader.token.text in {",", ")"}:
                return found
        except (NoLiteral, ValueError, QueryFailed):
            pass
        reader.at = at
    span = reader.until(",")
    text = reader.written(span, "a value")
    with explained():
        return session.spark().sql(f"SELECT {text}", args=dict(session.args)).collect()[0][0]


def _literal(session: Session, reader: Reader) -> Any:
    return _plain(literal(reader, session.args))


def _plain(one: Literal) -> Any:
    if one.type == "list" and isinstance(one.value, list):
        return [_plain(item) if isinstance(item, Literal) else item for item in one.value]
    if one.type in {"map", "struct"}:
        raise NoLiteral
    return one.value


def _moment(_: Session, reader: Reader) -> datetime:
    """``now()``, ``current_timestamp``, less or more an interval."""
    if reader.accept_any("NOW", "CURRENT_TIMESTAMP") is None:
        raise NoLiteral
    if reader.accept("("):
        reader.expect(")")
    now = datetime.now(UTC)
    sign = reader.accept_any("-", "+")
    if sign is None:
        return now
    reader.expect("INTERVAL")
    interval = _interval(reader)
    if sign == "+":
        interval = Interval(-interval.months, -interval.days, -interval.microseconds)
    return interval.before(now)


def _interval(reader: Reader) -> Interval:
    """``'1 week'``, ``'1' DAY``, ``7 DAYS``"""
    text = reader.next().text if reader.token.kind == "number" else reader.string()
    if reader.token.kind == "word":
        text = f"{text} {reader.next().text}"
    found = parse_interval(text)
    if found is None:
        raise NoLiteral
    return found
