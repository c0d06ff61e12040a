"""Sort keys: expressions in DuckDB's SQL, and the columns that they are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import ColumnNotFound, UnsupportedFeature
from penstock.lake.format.naming import fold
from penstock.lake.format.objects import SortKey
from penstock.lake.format.schema import TableSchema

_DIALECT = "duckdb"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_KEYWORDS = frozenset(sqlglot.Dialect.get_or_raise(_DIALECT).tokenizer_class.KEYWORDS)


def check(keys: Sequence[SortKey], schema: TableSchema) -> None:
    """Raise UnsupportedFeature for what is no expression, ColumnNotFound for a column it lacks."""
    known = {fold(name) for name in schema.names}
    for key in keys:
        for name in _names(key):
            if fold(name) not in known:
                raise ColumnNotFound(
                    f"there is no column {name!r} to sort by",
                    hint=f"the columns are {', '.join(schema.names)}",
                    data={"column": name},
                )


def columns(keys: Sequence[SortKey]) -> frozenset[str]:
    """The columns that the keys are made of, folded."""
    return frozenset(fold(name) for key in keys for name in _names(key))


def renamed(
    keys: Sequence[SortKey], before: TableSchema, after: TableSchema
) -> tuple[SortKey, ...]:
    """The keys by the names that the columns have ``after``; ids tell which is which."""
    names = {column.id: column.name for column in after.columns}
    new = {
        fold(column.name): names[column.id]
        for column in before.columns
        if column.id in names and names[column.id] != column.name
    }
    return tuple(_renamed(key, new) if new else key for key in keys)


def _renamed(key: SortKey, new: dict[str, str]) -> SortKey:
    tree = _tree(key)
    found = [one for one in _columns_of(tree) if fold(one.parts[0].name) in new]
    for one in found:
        root = one.parts[0]
        root.replace(_identifier(new[fold(root.name)]))
    return replace(key, expression=tree.sql(_DIALECT)) if found else key


def _identifier(name: str) -> exp.Identifier:
    """In quotes unless it needs none, as the real extension has it."""
    plain = _PLAIN.fullmatch(name) and name.upper() not in _KEYWORDS
    return exp.to_identifier(name, quoted=not plain)


def _names(key: SortKey) -> list[str]:
    """Of the columns; a field of a struct is reached through its column."""
    return [one.parts[0].name for one in _columns_of(_tree(key))]


def _columns_of(tree: exp.Expression) -> list[exp.Column]:
    return list(tree.find_all(exp.Column))


def _tree(key: SortKey) -> exp.Expression:
    try:
        found = sqlglot.parse_one(f"SELECT {key.expression}", read=_DIALECT).expressions
    except SqlglotError:
        found = []
    if len(found) != 1:
        raise UnsupportedFeature(
            f"the sort key {key.expression!r} is no expression",
            hint="sort by columns, or by an expression of DuckDB's SQL",
            data={"expression": key.expression},
        )
    tree: exp.Expression = found[0]
    return tree
