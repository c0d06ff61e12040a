"""Queries simple enough to be answered without Spark: some columns of one table.

Only texts that Spark certainly reads the same way are taken. Whatever has a comment, a text in
double quotes, an alias, an expression or a second table is left to Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*|`[^`]+`)"
_KEY = rf"{_NAME}(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?"
_SELECT = re.compile(
    rf"""\s* SELECT \s+
    (?: (?P<star>\*)
      | (?P<count>count\(\s*(?:\*|1)\s*\)) (?:\s+AS\s+(?P<alias>{_NAME}))?
      | (?P<columns>{_NAME}(?:\s*,\s*{_NAME})*) )
    \s+ FROM \s+ (?P<table>{_NAME}(?:\.{_NAME}){{0,2}})
    (?: \s+ WHERE \s+ (?P<where>.*?) )?
    (?: \s+ ORDER \s+ BY \s+ (?P<order>{_KEY}(?:\s*,\s*{_KEY})*) )?
    (?: \s+ LIMIT \s+ (?P<limit>[0-9]{{1,9}}) )?
    \s* ;? \s*""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)
_EACH_NAME = re.compile(_NAME)
_EACH_KEY = re.compile(_KEY, re.IGNORECASE)
# Words that stand alone for something other than a column, or begin what is not a list of columns.
NOT_COLUMNS = frozenset(
    {
        *("all", "distinct", "null", "true", "false", "user", "session_user", "current_user"),
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
        *("current_catalog", "current_database", "current_schema", "grouping__id"),
        *("case", "interval", "from", "where", "exists", "not"),
    }
)


@dataclass(frozen=True, slots=True)
class SortKey:
    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class PlainSelect:
    """``columns`` None: all. ``count`` is the name of the column of a ``count(*)``, which then is
    all that is asked for. ``where`` is SQL of the text's dialect, not yet understood.
    """

    table: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    count: str | None = None
    where: str | None = None
    order: tuple[SortKey, ...] = ()
    limit: int | None = None


def plain_select(text: str, dialect: str = "spark") -> PlainSelect | None:
    """The query, or ``None`` where it is anything more. ``dialect`` is ``spark`` or ``duckdb``."""
    match = _SELECT.fullmatch(text)
    is_duckdb = dialect != "spark"
    if match is None or (is_duckdb and "`" in text):  # which quotes no name there
        return None
    columns = _names(match["columns"])
    keys = _EACH_KEY.finditer(match["order"] or "")
    order = tuple(_key(key[0], nulls_last=is_duckdb) for key in keys)
    count = None
    if match["count"] is not None:
        is_star = is_duckdb and "*" in match["count"]
        count = _unquoted(match["alias"] or ("count_star()" if is_star else "count(1)"))
    words = [*_EACH_NAME.findall(match["columns"] or ""), *(key.column for key in order)]
    if any(word.lower() in NOT_COLUMNS for word in words) or (count is not None and order):
        return None
    return PlainSelect(
        table=_names(match["table"]),
        columns=columns or None,
        count=count,
        where=match["where"],
        order=order,
        limit=None if match["limit"] is None else int(match["limit"]),
    )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(map(_unquoted, _EACH_NAME.findall(text or "")))


def _unquoted(name: str) -> str:
    return name.strip("`")


def _key(text: str, *, nulls_last: bool) -> SortKey:
    """Return a key of ORDER BY.

    Unless the text says where NULL goes, it is last in DuckDB, and less than any value in Spark.
    """
    name = _EACH_NAME.match(text)
    assert name is not None, "a key begins with its name"
    words = text[name.end() :].upper().split()
    descending = "DESC" in words
    nulls_first = "FIRST" in words if "NULLS" in words else not (nulls_last or descending)
    return SortKey(_unquoted(name[0]), descending, nulls_first)
