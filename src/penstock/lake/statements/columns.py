"""The columns of a CREATE TABLE, or the one of an ADD COLUMN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import QueryFailed, SchemaMismatch
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.moments import NOW
from penstock.lake.statements.column_values import as_text, fitted
from penstock.lake.statements.types import column_type
from penstock.sql.literals import Literal, NoLiteral, literal
from penstock.sql.statement import Reader

_ENDS = (",", ("NOT", "NULL"), "NULL", "DEFAULT", "COMMENT", "CHECK", "PRIMARY", "UNIQUE", "FIRST")
_KEYS = ("PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "FOREIGN", "CONSTRAINT")
_UNSUPPORTED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(_KEYS, ("a key or a check", "test the rows in a model (not_null, unique)")),
    "GENERATED": ("a generated column", "compute it in the SELECT or in a view"),
    "AS": ("a generated column", "compute it in the SELECT or in a view"),
    "COLLATE": ("COLLATE", "leave it out: text compares by its bytes"),
}


# Kept as the value's own text: files that are older than the column are read with it.
_EXACT = frozenset({"decimal", "timestamp", "date"})


@dataclass(frozen=True, slots=True)
class Defined:
    """A column with the comment that its definition gives it."""

    column: Column
    comment: str | None = None


def definitions(reader: Reader, args: Mapping[str, Any]) -> list[Defined]:
    """``(a INT NOT NULL DEFAULT 5 COMMENT 'x', ...)``; names differ, letter case aside."""
    reader.expect("(")
    found: list[Defined] = []
    while True:
        if reader.token.upper in {"PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"}:
            raise reader.unsupported(*_UNSUPPORTED[reader.token.upper])
        at = reader.token.start
        one = definition(reader, reader.name("a column"), args)
        if fold(one.column.name) in {fold(other.column.name) for other in found}:
            raise reader.wrong(
                f"there are two columns named {one.column.name!r}",
                "give one another name: letter case does not count",
                at,
            )
        found.append(one)
        if not reader.accept(",") or reader.token.text == ")":  # as in DuckDB, a comma may be last
            break
    reader.expect(")")
    return found


def definition(reader: Reader, name: str, args: Mapping[str, Any]) -> Defined:
    """What follows a column's name."""
    column = column_type(reader, name)
    comment: str | None = None
    while True:
        if reader.accept("NOT", "NULL"):
            column = replace(column, nullable=False)
        elif reader.accept("NULL"):
            pass
        elif reader.accept("DEFAULT"):
            column = default(reader, column, args)
        elif reader.accept("COMMENT"):
            comment = reader.string("a comment")
        elif reader.token.upper in _UNSUPPORTED:
            raise reader.unsupported(*_UNSUPPORTED[reader.token.upper])
        else:
            return Defined(column, comment)


def default(reader: Reader, column: Column, args: Mapping[str, Any]) -> Column:
    """The column with the default that comes next: a literal, or an expression of DuckDB's.

    A literal is kept as the text of its value, checked against the type here.
    """
    at, start = reader.at, reader.token.start
    try:
        one = literal(reader, args)
        if not _ends_default(reader):
            raise NoLiteral
    except NoLiteral:
        reader.at = at
        text = reader.written(reader.until(*_ENDS), "a default")
        return _expression(reader, column, text, start)
    if one.value is None:
        return replace(column, default=None, default_kind="literal")
    if column.children:
        raise reader.unsupported("a default of a nested column", "leave it out", start)
    try:
        value = fitted(one, column)
    except NoLiteral:
        value = one.value
    except SchemaMismatch as error:
        raise _not_of_type(reader, column, one, start) from error
    exact = base_type(column.type) in _EXACT or column.type.startswith(("int", "uint"))
    kept = as_text(Literal(value) if exact else one)
    return replace(column, default=kept, default_kind="literal")


def _ends_default(reader: Reader) -> bool:
    token = reader.token
    return token.kind == "end" or token.text in {",", ")", ";"} or token.kind == "word"


def _not_of_type(reader: Reader, column: Column, one: Literal, at: int) -> QueryFailed:
    message = f"the default {one.value!r} of column {column.name!r} is no {column.type}"
    return reader.wrong(message, at=at)


def _expression(reader: Reader, column: Column, text: str, at: int) -> Column:
    """An expression is DuckDB's to evaluate; it has to be one that it can read."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    if column.children:
        raise reader.unsupported("a default of a nested column", "leave it out", at)
    try:
        found = sqlglot.parse_one(f"SELECT {text}", read="duckdb").expressions[0].sql("duckdb")
    except SqlglotError as error:
        raise reader.wrong(f"the default of {column.name} is not understood", at=at) from error
    default = NOW if found.upper() == "CURRENT_TIMESTAMP" else found  # as DuckDB stores it
    return replace(column, default=default, default_kind="expression")
