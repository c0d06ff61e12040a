"""``VALUES`` of literals, read without Spark: what a small INSERT is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.statements.column_values import Zone, fitted
from penstock.sql.literals import Literal, NoLiteral, literal
from penstock.sql.statement import Reader


class _Default:
    """The word DEFAULT among values."""


DEFAULT = _Default()


def rows(reader: Reader, args: Mapping[str, Any]) -> list[list[Literal | _Default]]:
    """``VALUES (1, 'a'), (2, DEFAULT)``, to the end. Raises NoLiteral for anything else in it."""
    reader.expect("VALUES")
    found: list[list[Literal | _Default]] = []
    while True:
        found.append(_row(reader, args))
        if reader.done:
            break
        if not reader.accept(","):
            raise NoLiteral
    widths = {len(row) for row in found}
    if len(widths) > 1:
        raise QueryFailed(
            f"the rows of VALUES have {' and '.join(map(str, sorted(widths)))} values",
            hint="give each row as many values",
        )
    return found


def _row(reader: Reader, args: Mapping[str, Any]) -> list[Literal | _Default]:
    """A row, in brackets unless it is one value (as Spark has it)."""
    if not reader.accept("("):
        return [_value(reader, args)]
    found = [_value(reader, args)]
    while reader.accept(","):
        found.append(_value(reader, args))
    if not reader.accept(")"):
        raise NoLiteral
    return found


def _value(reader: Reader, args: Mapping[str, Any]) -> Literal | _Default:
    return DEFAULT if reader.accept("DEFAULT") else literal(reader, args)


def typed(
    given: Sequence[Sequence[Literal | _Default]],
    columns: Sequence[Column],
    schema: TableSchema,
    zone: Zone,
) -> list[dict[str, Any]]:
    """The rows by the names of all columns; those not given have their defaults.

    Raises NoLiteral where only Spark can read a value, SchemaMismatch for what does not fit.
    """
    others = {fold(column.name) for column in columns}
    missing = [column for column in schema.columns if fold(column.name) not in others]
    rest = {column.name: default_of(column, zone) for column in missing}
    found: list[dict[str, Any]] = []
    for row in given:
        pairs = zip(columns, row, strict=True)
        found.append({column.name: _fitted(one, column, zone) for column, one in pairs} | rest)
    return found


def _fitted(one: Literal | _Default, column: Column, zone: Zone) -> Any:
    if isinstance(one, _Default):
        return default_of(column, zone)
    return fitted(one, column, zone)


def default_of(column: Column, zone: Zone) -> Any:
    """The value of a column that a row does not give."""
    if column.default is None:
        return None
    if not column.has_plain_default:
        raise UnsupportedFeature(
            f"column {column.name!r} has the default {column.default}, which only DuckDB evaluates",
            hint=f"give {column.name} a value in the INSERT",
            data={"column": column.name, "default": column.default},
        )
    return fitted(Literal(column.default), column, zone)
