"""Name tables of a lake as temporary views of Spark, whose names have no dots."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import ArgumentError
from penstock.lake.format.naming import DEFAULT_SCHEMA, TableRef, fold


def view_names(tables: Iterable[TableRef], prefix: str = "") -> dict[str, TableRef]:
    """Return the tables by the names of their views: ``t`` of ``main.t``, ``shop_t`` of ``shop.t``,
    each after ``prefix``.

    Raises ArgumentError where two tables would have one name, as Spark compares them.
    """
    views: dict[str, TableRef] = {}
    taken: dict[str, TableRef] = {}
    for table in tables:
        own = table.name if table.schema == DEFAULT_SCHEMA else f"{table.schema}_{table.name}"
        name = f"{prefix}{own}"
        other = taken.setdefault(fold(name), table)
        if other != table:
            raise ArgumentError(
                f"{other} and {table} would both be the view {name}",
                hint=f'register them apart, tables=["{other}"] first, each with another prefix=',
            )
        views[name] = table
    return views
