"""Defaults that are the time of the write, as DuckDB has them: ``DEFAULT now()``.

Of the expressions that a catalog holds as defaults these are the only ones that are evaluated: what
else DuckDB computes is not known to mean the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from penstock.lake.format.schema import Column, TableSchema

NOW = "now()"
_TIMES = frozenset({NOW, "current_timestamp", "get_current_timestamp()", "transaction_timestamp()"})
_DAYS = frozenset({"current_date", "today()"})
_KNOWN = {"timestamptz": _TIMES, "timestamp": _TIMES, "date": _TIMES | _DAYS}


def with_moment(schema: TableSchema, moment: datetime, zone: Callable[[], str]) -> TableSchema:
    """The columns with such defaults as the values that they have at ``moment``.

    A time without a zone, and a date, are those of the session's ``zone``.
    """
    if not any(_is_of_moment(column) for column in schema.columns):
        return schema
    columns = (
        replace(column, default=_text(column, moment, zone), default_kind="literal")
        if _is_of_moment(column)
        else column
        for column in schema.columns
    )
    return TableSchema(tuple(columns))


def _is_of_moment(column: Column) -> bool:
    if column.default is None or column.default_kind != "expression":
        return False
    return column.default.strip().lower() in _KNOWN.get(column.type, ())


def _text(column: Column, moment: datetime, zone: Callable[[], str]) -> str:
    if column.type == "timestamptz":
        return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    local = moment.astimezone(ZoneInfo(zone()))
    return local.strftime("%Y-%m-%d" if column.type == "date" else "%Y-%m-%d %H:%M:%S.%f")
