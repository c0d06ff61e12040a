"""Columns that a query names and that none of its tables has: what is certain without Spark.

Only SELECTs whose sources are all known tables are looked at. A name that may be anything else (an
alias, a field, a parameter, a column of an outer query) is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.identifiers import fold
from penstock.sql.plain_select import NOT_COLUMNS

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_OTHER_SOURCES = ("laterals", "match", "sample", "pivots")
_LATE = (exp.Order, exp.Having, exp.Sort, exp.Cluster, exp.Distribute, exp.Qualify)
# Inside of these a name may be a parameter, a unit of time or an option.
_OTHER_NAMES = (exp.Lambda, exp.Kwarg, exp.Star, exp.Hint, exp.Interval, exp.Var, exp.Aliases)
_HIDDEN = frozenset({"rowid"})
_UNITS = frozenset(
    {
        *("microsecond", "millisecond", "second", "minute", "hour", "day", "dayofyear", "week"),
        *("month", "quarter", "year", "both", "leading", "trailing"),
    }
)


@dataclass(frozen=True, slots=True)
class Missing:
    """A name at ``text[start]`` that is no column of ``tables``, which have ``columns``."""

    name: str
    start: int
    tables: tuple[str, ...]
    columns: tuple[str, ...]


def missing_columns(
    tree: exp.Expression, known: Mapping[str, Collection[str]]
) -> Iterator[Missing]:
    """In the order of the tree. ``known`` are columns by the folded names that the query has for
    its tables.
    """
    for select in tree.find_all(exp.Select):
        tables = _tables(select, known)
        if tables:
            yield from _in_select(select, tables)


def _tables(
    select: exp.Select, known: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, Collection[str]]]:
    """What the SELECT calls its tables, with their names and columns; none where others are
    among its sources, or around it.
    """
    start = select.args.get("from_") or select.args.get("from")
    joins = select.args.get("joins") or ()
    if start is None or _is_inside(select) or any(map(select.args.get, _OTHER_SOURCES)):
        return {}
    tables: dict[str, tuple[str, Collection[str]]] = {}
    for source in (start.this, *(join.this for join in joins)):
        columns = known.get(fold(source.name)) if isinstance(source, exp.Table) else None
        alias = source.args.get("alias")
        renamed = alias is not None and bool(alias.args.get("columns"))
        if columns is None or renamed or source.args.get("joins") or source.args.get("db"):
            return {}
        if any(map(source.args.get, _OTHER_SOURCES)):
            return {}
        tables[fold(source.alias or source.name)] = (source.name, columns)
    return tables


def _is_inside(select: exp.Select) -> bool:
    """Whether it is part of another SELECT, whose columns it may name, and not just in its WITH."""
    child: exp.Expr = select
    while child.parent is not None:
        if isinstance(child.parent, exp.Select) and not isinstance(child, exp.With):
            return True
        child = child.parent
    return False


def _in_select(
    select: exp.Select, tables: Mapping[str, tuple[str, Collection[str]]]
) -> Iterator[Missing]:
    aliases = _names_of_results(select)
    plain = all(isinstance(item, exp.Column | exp.Star | exp.Alias) for item in select.expressions)
    for column in select.find_all(exp.Column):
        qualifier = fold(column.table)
        if column.args.get("db") or not _is_plain(column, select):
            continue
        if not plain and column.find_ancestor(*_LATE):
            continue
        if qualifier:
            searched = [tables[qualifier]] if qualifier in tables else []
        else:
            searched = [] if fold(column.name) in aliases | tables.keys() else [*tables.values()]
        if searched and not any(_has(columns, column.name) for _, columns in searched):
            yield Missing(
                column.name,
                column.this.meta["start"],
                tuple(name for name, _ in searched),
                tuple(name for _, columns in searched for name in columns),
            )


def _names_of_results(select: exp.Select) -> set[str]:
    """Names that later parts of the SELECT may use: aliases, and the last part of a field."""
    names = {alias.alias for alias in select.find_all(exp.Alias)}
    names |= {name.name for several in select.find_all(exp.Aliases) for name in several.aliases}
    names |= {field.name for field in select.find_all(exp.Dot)}
    names |= {column.name for column in select.find_all(exp.Column) if column.table}
    return set(map(fold, names))


def _is_plain(column: exp.Column, select: exp.Select) -> bool:
    """Whether it certainly is a column of the SELECT's own sources, or a mistake."""
    name = column.this
    if not isinstance(name, exp.Identifier) or "start" not in name.meta:
        return False
    if not _PLAIN.fullmatch(name.name) or fold(name.name) in NOT_COLUMNS | _UNITS | _HIDDEN:
        return False
    around = column.find_ancestor(*_OTHER_NAMES, exp.Select)
    return around is select


def _has(columns: Collection[str], name: str) -> bool:
    return fold(name) in map(fold, columns)
