"""Calls of a lake's table functions: ``table_changes('orders', 3, 7)``, ``dl.snapshots()``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from penstock.errors import Location
from penstock.model.asset import DEFAULT_SCHEMA, TableName
from penstock.model.constants import Constant, Literal, NotConstant, read_constant, split_at
from penstock.model.files import Call
from penstock.model.names import Names, UnknownName
from penstock.model.sources import FunctionSource
from penstock.sql.identifiers import dotted, fold
from penstock.sql.lake_functions import FEEDS, NAMES, PREFIX
from penstock.sql.tokens import Token, closing

_BEFORE = frozenset({"FROM", "JOIN", ","})
_ASSIGN = frozenset({"=>", ":=", "="})
_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NTZ"})


@dataclass(frozen=True, slots=True)
class _Lake:
    """A lake, and the schema of names without one."""

    name: str
    schema: str


def find_lake_calls(tokens: Sequence[Token]) -> Iterator[Call]:
    """Calls where a table can stand."""
    for index in range(len(tokens) - 1):
        name = fold(tokens[index].value)
        if name not in NAMES or tokens[index + 1].text != "(":
            continue
        first = index
        while first >= 2 and tokens[first - 1].text == ".":
            first -= 2
        last = closing(tokens, index + 1)
        before = tokens[first - 1].upper if first else ""
        if last is not None and before in _BEFORE:
            yield Call(name, index, last)


def read_lake_call(
    call: Call, tokens: Sequence[Token], before: tuple[str, ...], names: Names, where: Location
) -> FunctionSource:
    """What a call means whose name has the parts ``before`` in front of it.

    Raises :class:`NotConstant`, :class:`UnknownName`.
    """
    positional, named = _arguments(call, tokens)
    function = call.function.removeprefix(PREFIX)
    lake = _lake(before, names)
    if function != call.function:
        lake, positional = _told(call, positional, names)
        if function in FEEDS and positional:
            lake, positional = replace(lake, schema=_text(call, positional[0])), positional[1:]
    table = None
    if function in FEEDS or function == "list_files":
        schema = dict(named).get("schema")
        table = _table(lake, positional, None if schema is None else _text(call, schema))
    return FunctionSource(function, lake.name, lake.schema, positional, named, table, where)


def _arguments(
    call: Call, tokens: Sequence[Token]
) -> tuple[tuple[Constant, ...], tuple[tuple[str, Constant], ...]]:
    positional: list[Constant] = []
    named: list[tuple[str, Constant]] = []
    inside = tokens[call.first + 2 : call.last]
    for piece in split_at(inside, ",") if inside else []:
        if len(piece) > 2 and piece[1].text in _ASSIGN:
            named.append((fold(piece[0].value), _constant(piece[2:])))
        else:
            positional.append(_constant(piece))
    return tuple(positional), tuple(named)


def _constant(tokens: Sequence[Token]) -> Constant:
    typed = len(tokens) == 2 and tokens[0].upper in _TYPED
    return read_constant(tokens[1:] if typed else tokens)


def _lake(before: tuple[str, ...], names: Names) -> _Lake:
    """What stands before a function's name is a lake, a schema, or both."""
    if len(before) == 1 and (lake := names.lake(before[0])) is not None:
        return _Lake(lake, DEFAULT_SCHEMA)
    table = names.resolve((*before, "any"))
    return _Lake(table.lake, table.schema)


def _told(
    call: Call, positional: tuple[Constant, ...], names: Names
) -> tuple[_Lake, tuple[Constant, ...]]:
    """The lake that the first argument names."""
    if not positional:
        raise NotConstant(f"{call.function} takes the lake's name first", None)
    text = _text(call, positional[0])
    lake = names.lake(text)
    if lake is None:
        raise names.unknown_lake(text)
    return _Lake(lake, DEFAULT_SCHEMA), positional[1:]


def _text(call: Call, value: Constant) -> str:
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise NotConstant(f"{call.function} takes names as texts", None)
    return value.value


def _table(lake: _Lake, positional: tuple[Constant, ...], schema: str | None) -> TableName | None:
    """The table that a function reads, where its name is written out."""
    first = positional[0] if positional else None
    if not isinstance(first, Literal) or not isinstance(first.value, str):
        return None
    *before, name = dotted(first.value) or [first.value]
    if len(before) > 1:
        raise UnknownName(f"`{first.value}` is not a table of a lake", "write schema.table")
    return TableName(lake.name, before[0] if before else schema or lake.schema, name)
