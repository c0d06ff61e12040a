"""CALL of maintenance and other functions of a lake, and CHECKPOINT, all maintenance at once.

``CALL lake.merge_adjacent_files(...)`` and ``CALL ducklake_merge_adjacent_files('lake', ...)`` are
the same, and ``SELECT ... FROM`` either runs it as well. The functions and their parameters are in
`penstock.lakes.maintenance.calls` and below.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError, LakeError, QueryFailed
from penstock.lakes import methods
from penstock.lakes.format import naming
from penstock.lakes.format.naming import TableRef, fold
from penstock.lakes.maintenance.calls import CALLS, Call, Parameter
from penstock.lakes.queries.travel import from_now
from penstock.lakes.snapshot import moment
from penstock.lakes.statements.session import Answer, Current, Session, nothing
from penstock.lakes.statements.targets import existing
from penstock.lakes.writing.adding.fit import Rules
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql
from penstock.sql import identifiers
from penstock.sql.identifiers import quote_identifier
from penstock.sql.literals import Literal, NoLiteral, literal
from penstock.sql.query.nesting import table_calls
from penstock.sql.statement import Reader, StatementText, begun
from penstock.sql.text import Span, SqlExpression, blank, breaks
from penstock.sql.tokens import NAME, WORD, Token, may_be_alias, tokenize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OTHER_NAMES = {"table_name": "table", "schema_name": "schema", "files": "path"}
_TYPES = {int: "bigint", str: "string", bool: "boolean", float: "double", datetime: "timestamp"}
Argument = Literal | SqlExpression  # as written, or to be computed


@dataclass(frozen=True, slots=True)
class Invocation:
    """A CALL: the arguments in brackets, unless the function is one of queries, whose text is
    ``whole``; ``before`` is what stands before the function's name, ``at`` where that begins.
    """

    before: tuple[str, ...]
    name: str
    at: int
    statement: StatementText
    whole: Span | None = None
    positional: tuple[Argument, ...] = ()
    named: Mapping[str, Argument] = field(default_factory=dict)


def parse(reader: Reader) -> Invocation:
    """``CALL [lake.]name(value, parameter => value, ...)``"""
    reader.expect("CALL")
    return _invocation(reader)


def _invocation(reader: Reader) -> Invocation:
    start, at = reader.at, reader.token.start
    *before, name = reader.dotted("a function")
    name = fold(name)
    if name in identifiers.NAMES:
        reader.at = start
        return Invocation(tuple(before), name, at, reader.statement, reader.rest())
    positional, named = _arguments(reader)
    reader.finish()
    return Invocation(tuple(before), name, at, reader.statement, None, positional, named)


_RESULT = "__penstock_called"
_MAINTAINS = re.compile(
    rf"\b(?:{identifiers.PREFIX})?(?:{'|'.join(sorted(identifiers.MAINTENANCE))})\b", re.I
)


def is_read(text: str, dialect: str) -> bool:
    """Return whether a query reads from a function of CALL."""
    if _MAINTAINS.search(text) is None:
        return False
    try:
        tokens = tokenize(text, dialect)
    except QueryFailed:  # who runs it says what is wrong
        return False
    return next(_calls_in(tokens), None) is not None


def _calls_in(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The first and last tokens of the functions of CALL that stand where a table can."""
    calls = table_calls(
        tokens, lambda name: name.removeprefix(identifiers.PREFIX) in identifiers.MAINTENANCE
    )
    for first, _, last in calls:
        yield first, last


def read_from(session: Session, reader: Reader) -> DataFrame | None:
    """Run the function of CALL that a query reads from, then the query over its rows.

    Returns ``None`` for a query that reads from none. Raises QueryFailed for one that names two.
    """
    text, tokens = reader.text[: reader.end], reader.tokens
    if _MAINTAINS.search(text, reader.start) is None:
        return None
    calls = list(_calls_in(tokens))
    if not calls:
        return None
    if len(calls) > 1:
        at = tokens[calls[1][0]].start
        raise reader.wrong("a statement runs one function", "write a statement for each", at=at)
    [(first, last)] = calls
    start, end = tokens[first].start, tokens[last].end
    inside = Reader(text, start, end, lakes=reader.lakes, args=reader.args)
    invocation = _invocation(inside)
    following = tokens[last + 1] if last + 1 < len(tokens) else None
    aliased = following is not None and may_be_alias(following)
    shown = _RESULT if aliased else f"{_RESULT} AS {quote_identifier(invocation.name, mark='`')}"
    answer = execute(session, invocation)
    rows = answer.to_df() if isinstance(answer, Answer) else answer
    query = f"{blank(text[: reader.start])}{text[reader.start : start]}{shown}"
    return session.query(f"{query}{breaks(text, start, end)}{text[end:]}", {_RESULT: rows})


def _arguments(reader: Reader) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
    reader.expect("(")
    positional: list[Argument] = []
    named: dict[str, Argument] = {}
    while not reader.accept(")"):
        if (positional or named) and not reader.accept(","):
            raise reader.wrong(f", is expected, not {reader.shown()}")
        if reader.token.kind in {WORD, NAME} and reader.ahead(1).text in {"=>", ":=", "="}:
            at, name = reader.token.start, fold(reader.name("a parameter"))
            reader.next()
            if name in named:
                raise reader.wrong(f"the parameter {name} is given twice", at=at)
            named[name] = _argument(reader)
        elif named:
            raise reader.wrong("values without a name come before those with one")
        else:
            positional.append(_argument(reader))
    return tuple(positional), named


def _argument(reader: Reader) -> Argument:
    """A literal, a list of literals or a marker; any other expression has to be computed."""
    at = reader.at
    try:
        value = Literal(_plain_value(literal(reader, reader.args)))
        if reader.token.text in {",", ")"}:
            return value
    except (NoLiteral, ValueError, QueryFailed):
        pass
    reader.at = at
    return reader.expression(",", what="a value")


def _plain_value(written: Literal) -> Any:
    if written.type == "list" and isinstance(written.value, list):
        items = written.value
        return [_plain_value(item) if isinstance(item, Literal) else item for item in items]
    if written.type in {"map", "struct"}:
        raise NoLiteral
    return written.value


def execute(session: Session, call: Invocation) -> Answer | DataFrame:
    try:
        return _called(session, call)
    except (ArgumentError, LakeError) as error:
        error.data.setdefault("at", call.at)
        raise


def _called(session: Session, call: Invocation) -> Answer | DataFrame:
    _refuse_other_lakes(session, call)
    name, statement = call.name, call.statement
    if call.whole is not None:
        return session.asked(begun(statement).add("SELECT * FROM ").take(call.whole), {})
    function = _KNOWN.get(name.removeprefix("ducklake_"))
    if function is None:
        raise _unknown(call)
    positional = [_computed(session, value) for value in call.positional]
    named = {key: _computed(session, value) for key, value in call.named.items()}
    if name.startswith("ducklake_"):
        if not positional:
            raise statement.wrong(f"{name} takes the lake's name first", call.at)
        if not isinstance(positional[0], str) or fold(positional[0]) not in session.lakes:
            called = naming.called(session.lakes)
            raise statement.wrong(
                f"{positional[0]!r} is not this lake, which is called {called}",
                call.at,
                f"write CALL {name}('lake', ...)",
            )
        positional = positional[1:]
    arguments = _bound(session, function, positional, named)
    if function.name in _IN_TRANSACTION:
        return _IN_TRANSACTION[function.name](session, arguments)
    if function.name in _COMPACTING:
        return _answer(session, function, _compacted(session, function, arguments))
    if function.name not in _PART_OF:
        _refuse_open(session, function.name)
    return _answer(session, function, function.function(session, **arguments))


def _refuse_other_lakes(session: Session, call: Invocation) -> None:
    """Check that the qualifier of the function names this lake, a schema of it, or both."""
    known = session.catalog.schemas(session.snapshot_id()) if call.before else ()
    if naming.schema_in_lake(call.before, session.lakes, known) is None:
        called = naming.called(session.lakes)
        raise call.statement.wrong(
            f"{'.'.join(call.before)} is not this lake, which is called {called}",
            call.at,
            f"write CALL lake.{call.name}(...)",
        )


def _computed(session: Session, value: Argument) -> Any:
    """The value of an argument; ``now()`` plus or minus an interval needs no session."""
    if isinstance(value, Literal):
        return value.value
    moment = from_now(value.tree)
    if moment is not None:
        return moment
    with explained():
        row = run_sql(session.spark(), f"SELECT {value.text}", args=dict(session.args)).collect()[0]
        return row[0]


def parse_checkpoint(reader: Reader) -> None:
    """``CHECKPOINT [lake]``"""
    reader.expect("CHECKPOINT")
    if not reader.done:
        at, name = reader.token.start, reader.name("the lake's name")
        if fold(name) not in reader.lakes:
            called = naming.called(reader.lakes)
            raise reader.wrong(f"{name} is not this lake", f"it is called {called}", at)
    reader.finish()


def checkpoint(session: Session, _: None) -> Answer:
    function = CALLS["checkpoint"]  # as in DuckDB, commits of its own beside an open transaction
    apart = replace(session, current=Current())
    return _answer(session, function, function.function(apart))


def _compacted(session: Session, function: Call, arguments: Mapping[str, Any]) -> Sequence[Any]:
    """Run as part of the open transaction, or as a commit of its own."""
    if session.transaction is None:
        return function.function(session, **arguments)
    with session.writing():
        return function.function(session, **arguments)


def _refuse_open(session: Session, name: str) -> None:
    if session.transaction is not None:
        raise LakeError(
            f"{name} is a commit of its own, and a transaction is open",
            hint="COMMIT or ROLLBACK before",
        )


def _unknown(call: Invocation) -> ArgumentError:
    near = get_close_matches(call.name.removeprefix("ducklake_"), _KNOWN, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(_KNOWN))}"
    problem = call.statement.wrong(f"function {call.name} does not exist", call.at, hint)
    return ArgumentError(problem.message, hint=problem.hint, data=problem.data)


def _bound(
    session: Session, function: Call, positional: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by parameter. Raises ArgumentError listing the parameters."""
    places = [parameter for parameter in function.parameters if parameter.positional]
    if len(positional) > len(places):
        shape = ", ".join(p.name for p in places) or "none"
        raise ArgumentError(
            f"{function.name} takes {len(places)} values without a name, not {len(positional)}",
            hint=f"they are: {shape}; give others by name",
        )
    bound = {p.name: _typed(session, p, v) for p, v in zip(places, positional, strict=False)}
    for name, value in named.items():
        parameter = function.parameter(name) or function.parameter(_OTHER_NAMES.get(name, name))
        if parameter is None:
            parameter = next(
                (function.parameter(k) for k, v in _OTHER_NAMES.items() if v == name), None
            )
        if parameter is None:
            raise ArgumentError(
                f"{function.name} has no parameter {name}",
                hint=f"it has {', '.join(p.name for p in function.parameters) or 'none'}",
            )
        bound[parameter.name] = _typed(session, parameter, value)
    missing = [p.name for p in places if p.name not in bound] if function in _OWN else []
    if missing:
        raise ArgumentError(
            f"{function.name} needs a value of {' and '.join(missing)}",
            hint=f"write CALL {function.name}({', '.join(p.name for p in places)})",
        )
    return bound


def _typed(session: Session, parameter: Parameter, value: Any) -> Any:
    if value is None:
        return None
    convert = _CONVERTED.get(parameter.type)
    try:
        if parameter.type == "TIMESTAMPTZ":
            aware = isinstance(value, datetime) and value.tzinfo is not None
            return value if aware else moment(value, session.zone())
        return value if convert is None else convert(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{parameter.name} is {parameter.type}, not {value!r}", hint="write it otherwise"
        ) from error


def _boolean(value: Any) -> bool:
    words = {"true": True, "false": False, "1": True, "0": False}
    if str(value).lower() not in words:
        raise ValueError(value)
    return words[str(value).lower()]


_CONVERTED: Mapping[str, Callable[[Any], Any]] = {
    "BOOLEAN": _boolean,
    "DOUBLE": float,
    "UBIGINT": int,
    "UBIGINT[]": lambda value: [int(item) for item in value],
    "VARCHAR": str,
}


def _answer(session: Session, function: Call, rows: Sequence[Any]) -> Answer:
    """The rows of one frozen class under the names and types of its fields."""
    hints = typing.get_type_hints(function.returns)
    names = [column.name for column in fields(function.returns)]
    types = tuple(_TYPES.get(_plain(hints[name]), "string") for name in names)
    values = tuple(
        tuple(_shown(value, kind) for value, kind in zip(_values(row), types, strict=True))
        for row in rows
    )
    return Answer(names, types, values, session.spark)


def _values(row: Any) -> tuple[Any, ...]:
    return tuple(getattr(row, column.name) for column in fields(row))


def _shown(value: Any, kind: str) -> Any:
    """A list of rows is shown as its length."""
    if isinstance(value, list | tuple):
        return str(len(value))
    return value if kind != "string" or value is None else str(value)


def _plain(hint: Any) -> Any:
    """``int`` of ``int | None``."""
    inside = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    return inside[0] if len(inside) == 1 else hint


@dataclass(frozen=True, slots=True)
class Nothing:
    """The answer of a function without a result."""


def _set_option(session: Session, **arguments: Any) -> Sequence[Nothing]:
    of = {"schema": arguments.get("schema"), "table": arguments.get("table_name")}
    if session.transaction is None:
        methods.set_option(session.catalog, arguments["option"], arguments["value"], **of)
        return ()
    with session.writing() as transaction:
        transaction.set_option(
            methods.option_writer(session.catalog, arguments["option"], arguments["value"], **of)
        )
    return ()


def _add_data_files(session: Session, **arguments: Any) -> Sequence[methods.AddedFile]:
    ref = TableRef.parse(arguments.pop("table"))
    if arguments.get("schema") is not None:
        ref = TableRef(arguments["schema"], ref.name)
    arguments.pop("schema", None)
    paths, rules = arguments.pop("path"), Rules(**arguments)
    if session.transaction is None:
        return methods.add_data_files(session.catalog, ref, paths, rules).files
    with session.writing() as transaction:
        table = existing(session, transaction, ref)
        files, look = methods.stage_data_files(session.catalog, table, paths, rules)
        transaction.on_commit(look)
    return files


def _set_commit_message(session: Session, arguments: Mapping[str, Any]) -> Answer:
    transaction = session.transaction
    if transaction is None:
        raise LakeError(
            "a commit message is of a transaction, and none is open",
            hint="BEGIN one, or use lake.transaction(author=, message=, extra=)",
        )
    transaction.describe(
        arguments.get("author"), arguments.get("commit_message"), arguments.get("extra_info")
    )
    return nothing(session.spark)


_IN_TRANSACTION: Mapping[str, Callable[[Session, Mapping[str, Any]], Answer]] = {
    "set_commit_message": _set_commit_message
}
_PART_OF = frozenset({"add_data_files", "set_option"})  # of an open transaction
_COMPACTING = frozenset({"flush_inlined_data", "merge_adjacent_files", "rewrite_data_files"})
_OWN = (
    Call(
        "set_option",
        _set_option,
        Nothing,
        (
            Parameter("option", "VARCHAR", positional=True),
            Parameter("value", "ANY", positional=True),
            *(Parameter("schema", "VARCHAR"), Parameter("table_name", "VARCHAR")),
        ),
    ),
    Call(
        "add_data_files",
        _add_data_files,
        methods.AddedFile,
        (
            Parameter("table", "VARCHAR", positional=True),
            Parameter("path", "ANY", positional=True),
            *(Parameter("schema", "VARCHAR"), Parameter("allow_missing", "BOOLEAN")),
            Parameter("ignore_extra_columns", "BOOLEAN"),
            Parameter("hive_partitioning", "BOOLEAN"),
        ),
    ),
    Call(
        "set_commit_message",
        _set_option,
        Nothing,
        (
            Parameter("author", "VARCHAR", positional=True),
            Parameter("commit_message", "VARCHAR", positional=True),
            Parameter("extra_info", "VARCHAR"),
        ),
    ),
)
_KNOWN: Mapping[str, Call] = {call.name: call for call in _OWN} | dict(CALLS)
