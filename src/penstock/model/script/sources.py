"""Sources of a query: managed tables, perhaps of an earlier snapshot, table functions, files.

Calls of functions are read from their tokens; their arguments are constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from penstock.errors import Location
from penstock.model.script.constants import Constant, Literal, NotConstant, read_constant
from penstock.model.values.asset import DEFAULT_SCHEMA, Names, TableName, UnknownName
from penstock.sql.identifiers import FEEDS, NAMES, PREFIX, dotted, fold
from penstock.sql.query.nesting import table_calls
from penstock.sql.tokens import NAME, STRING, Token, closing, split_at


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """``AT (VERSION => n)`` and its like; ``kind`` is ``version`` or ``timestamp``."""

    kind: str
    value: Constant


@dataclass(frozen=True, slots=True)
class TableSource:
    """A managed table in a query. Equal when table and time travel are."""

    table: TableName
    at: TimeTravel | None = None
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FileSource:
    """``read_csv``, ``read_json`` or ``read_parquet`` with constant arguments.

    ``path`` evaluates to a path or a list of paths; ``options`` are in the order written.
    """

    function: str
    path: Constant
    options: tuple[tuple[str, Constant], ...] = ()
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A table function of a lake (`penstock.sql.lake_functions`), without ``ducklake_``.

    ``schema`` is that of tables named without one; ``table`` the table that it reads, if any, and
    if its name is written out.
    """

    function: str
    lake: str
    schema: str
    positional: tuple[Constant, ...] = ()
    named: tuple[tuple[str, Constant], ...] = ()
    table: TableName | None = None
    location: Location | None = field(default=None, compare=False)


QuerySource = TableSource | FileSource | FunctionSource


def table_read(source: QuerySource) -> TableName | None:
    """The managed table that a source reads, its changes or its rows."""
    return None if isinstance(source, FileSource) else source.table


def is_earlier(source: QuerySource) -> bool:
    """Return whether a source is read at an earlier snapshot, which nothing changes any more."""
    return isinstance(source, TableSource) and source.at is not None


#: what a query may write -> what it means
FUNCTIONS = {
    "READ_CSV": "read_csv",
    "READ_CSV_AUTO": "read_csv",
    "READ_JSON": "read_json",
    "READ_JSON_AUTO": "read_json",
    "READ_NDJSON": "read_json",
    "READ_PARQUET": "read_parquet",
    "PARQUET_SCAN": "read_parquet",
    "READ_SEED": "read_seed",  # what the kind SEED makes of its file (`model.values.seed`)
}
_ASSIGN = ("=", "=>", ":=")


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a query: ``first`` and ``last`` index its tokens, the name and the bracket."""

    function: str
    first: int
    last: int


def find_calls(tokens: Sequence[Token]) -> Iterator[Call]:
    """Calls of the file functions; one that is not closed is left to the parser."""
    for index, (token, following) in enumerate(pairwise(tokens)):
        if token.upper in FUNCTIONS and following.text == "(":
            last = closing(tokens, index + 1)
            if last is not None:
                yield Call(FUNCTIONS[token.upper], index, last)


def read_call(
    call: Call, tokens: Sequence[Token]
) -> tuple[Constant, tuple[tuple[str, Constant], ...]]:
    """Path and named options of a call. Raises :class:`NotConstant`."""
    inside = tokens[call.first + 2 : call.last]
    first, *rest = split_at(inside, ",")
    if not first or _is_named(first):
        at = first[0] if first else tokens[call.last]
        raise NotConstant(f"{call.function} needs a path first", at)
    options: dict[str, Constant] = {}
    for piece in rest:
        if not _is_named(piece):
            at = piece[0] if piece else tokens[call.last]
            raise NotConstant("an option is written name = value", at)
        name = piece[0].value.lower()
        if name in options:
            raise NotConstant(f"the option {name} is given twice", piece[0])
        try:
            options[name] = read_constant(piece[2:])
        except NotConstant as error:
            raise NotConstant(str(error), error.token or piece[0]) from None
    return read_constant(first, in_path=True), tuple(options.items())


def _is_named(piece: Sequence[Token]) -> bool:
    return len(piece) >= 2 and piece[0].kind not in {NAME, STRING} and piece[1].text in _ASSIGN


_NAMED_BY = frozenset({"=>", ":=", "="})
_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NTZ"})


@dataclass(frozen=True, slots=True)
class _Lake:
    """A lake, and the schema of names without one."""

    name: str
    schema: str


def find_lake_calls(tokens: Sequence[Token]) -> Iterator[Call]:
    """Calls where a table can stand."""
    for _, at, last in table_calls(tokens, NAMES.__contains__):
        yield Call(fold(tokens[at].value), at, last)


def read_lake_call(
    call: Call, tokens: Sequence[Token], before: tuple[str, ...], names: Names, where: Location
) -> FunctionSource:
    """Return what a call means whose name has the parts ``before`` in front of it.

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
        if len(piece) > 2 and piece[1].text in _NAMED_BY:
            named.append((fold(piece[0].value), _constant(piece[2:])))
        else:
            positional.append(_constant(piece))
    return tuple(positional), tuple(named)


def _constant(tokens: Sequence[Token]) -> Constant:
    typed = len(tokens) == 2 and tokens[0].upper in _TYPED
    return read_constant(tokens[1:] if typed else tokens)


def _lake(before: tuple[str, ...], names: Names) -> _Lake:
    """Return what stands before a function's name is a lake, a schema, or both."""
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
