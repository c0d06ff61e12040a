"""CALL of what keeps a lake in order, and CHECKPOINT, which is all of it.

``CALL lake.merge_adjacent_files(...)`` and ``CALL ducklake_merge_adjacent_files('lake', ...)`` are
the same; the functions and their parameters are in `penstock.lake.maintenance.calls` and below.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError, LakeError
from penstock.lake.format import naming
from penstock.lake.format.naming import TableRef, fold
from penstock.lake.maintenance.calls import CALLS, Call, Parameter
from penstock.lake.methods import add_files, options
from penstock.lake.snapshot import moment
from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.constants import constant
from penstock.lake.statements.existing import existing
from penstock.lake.statements.session import Current, Session
from penstock.lake.writing.adding.fit import Rules
from penstock.sql import lake_functions
from penstock.sql.statement import Reader, begun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OTHER_NAMES = {"table_name": "table", "schema_name": "schema", "files": "path"}
_TYPES = {int: "bigint", str: "string", bool: "boolean", float: "double", datetime: "timestamp"}


def run(session: Session, reader: Reader) -> Answer | DataFrame:
    """``CALL [lake.]name(value, parameter => value, ...)``"""
    reader.expect("CALL")
    start, at = reader.at, reader.token.start
    name = _named(session, reader)
    try:
        return _called(session, reader, name, start, at)
    except (ArgumentError, LakeError) as error:
        error.data.setdefault("at", at)
        raise


def _named(session: Session, reader: Reader) -> str:
    """The function's name, folded. What is before it is this lake, a schema of it, or both:
    another's is not to be done here.
    """
    at = reader.token.start
    *before, name = reader.dotted("a function")
    known = session.catalog.schemas(session.snapshot_id()) if before else ()
    if naming.schema_in_lake(before, reader.lakes, known) is None:
        called = naming.called(reader.lakes)
        raise reader.wrong(
            f"{'.'.join(before)} is not this lake, which is called {called}",
            f"write CALL lake.{name}(...)",
            at,
        )
    return fold(name)


def _called(session: Session, reader: Reader, name: str, start: int, at: int) -> Answer | DataFrame:
    if name in lake_functions.NAMES:
        reader.at = start
        return session.asked(begun(reader).add("SELECT * FROM ").take(reader.rest()), {})
    one = _KNOWN.get(name.removeprefix("ducklake_"))
    if one is None:
        raise _unknown(reader, name, at)
    positional, named = _arguments(session, reader)
    if name.startswith("ducklake_"):
        if not positional:
            raise reader.wrong(f"{name} takes the lake's name first", at=at)
        if not isinstance(positional[0], str) or fold(positional[0]) not in reader.lakes:
            called = naming.called(reader.lakes)
            raise reader.wrong(
                f"{positional[0]!r} is not this lake, which is called {called}",
                f"write CALL {name}('lake', ...)",
                at,
            )
        positional = positional[1:]
    reader.finish()
    given = _bound(session, one, positional, named)
    if one.name in _IN_TRANSACTION:
        return _IN_TRANSACTION[one.name](session, given)
    if one.name in _COMPACTING:
        return _answer(session, one, _compacted(session, one, given))
    if one.name not in _PART_OF:
        _refuse_open(session, one.name)
    return _answer(session, one, one.function(session, **given))


def checkpoint(session: Session, reader: Reader) -> Answer:
    """``CHECKPOINT [lake]``"""
    reader.expect("CHECKPOINT")
    if not reader.done:
        at, name = reader.token.start, reader.name("the lake's name")
        if fold(name) not in reader.lakes:
            called = naming.called(reader.lakes)
            raise reader.wrong(f"{name} is not this lake", f"it is called {called}", at)
    reader.finish()
    one = CALLS["checkpoint"]  # as in DuckDB, commits of its own also beside an open transaction
    alone = replace(session, current=Current())
    return _answer(session, one, one.function(alone))


def _compacted(session: Session, one: Call, given: Mapping[str, Any]) -> Sequence[Any]:
    """Part of the open transaction if there is one, else a commit of its own."""
    if session.transaction is None:
        return one.function(session, **given)
    with session.writing():
        return one.function(session, **given)


def _refuse_open(session: Session, name: str) -> None:
    if session.transaction is not None:
        raise LakeError(
            f"{name} is a commit of its own, and a transaction is open",
            hint="COMMIT or ROLLBACK before",
        )


def _unknown(reader: Reader, name: str, at: int) -> ArgumentError:
    near = get_close_matches(name.removeprefix("ducklake_"), _KNOWN, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(_KNOWN))}"
    problem = reader.wrong(f"there is no function {name}", hint, at)
    return ArgumentError(problem.message, hint=problem.hint, data=problem.data)


def _arguments(session: Session, reader: Reader) -> tuple[list[Any], dict[str, Any]]:
    reader.expect("(")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    while not reader.accept(")"):
        if (positional or named) and not reader.accept(","):
            raise reader.wrong(f", is expected, not {reader.shown()}")
        if reader.ahead(1).text in {"=>", ":="}:
            at, name = reader.token.start, fold(reader.name("a parameter"))
            reader.next()
            if name in named:
                raise reader.wrong(f"the parameter {name} is given twice", at=at)
            named[name] = constant(session, reader)
        elif named:
            raise reader.wrong("values without a name come before those with one")
        else:
            positional.append(constant(session, reader))
    return positional, named


def _bound(
    session: Session, one: Call, positional: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by parameter. Raises ArgumentError naming what there is."""
    places = [parameter for parameter in one.parameters if parameter.positional]
    if len(positional) > len(places):
        shape = ", ".join(p.name for p in places) or "none"
        raise ArgumentError(
            f"{one.name} takes {len(places)} values without a name, not {len(positional)}",
            hint=f"they are: {shape}; give others by name",
        )
    found = {p.name: _typed(session, p, v) for p, v in zip(places, positional, strict=False)}
    for name, value in named.items():
        parameter = one.parameter(name) or one.parameter(_OTHER_NAMES.get(name, name))
        if parameter is None:
            parameter = next((one.parameter(k) for k, v in _OTHER_NAMES.items() if v == name), None)
        if parameter is None:
            raise ArgumentError(
                f"{one.name} has no parameter {name}",
                hint=f"it has {', '.join(p.name for p in one.parameters) or 'none'}",
            )
        found[parameter.name] = _typed(session, parameter, value)
    missing = [p.name for p in places if p.name not in found] if one in _OWN else []
    if missing:
        raise ArgumentError(
            f"{one.name} needs a value of {' and '.join(missing)}",
            hint=f"write CALL {one.name}({', '.join(p.name for p in places)})",
        )
    return found


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
    "UBIGINT[]": lambda value: [int(one) for one in value],
    "VARCHAR": str,
}


def _answer(session: Session, one: Call, rows: Sequence[Any]) -> Answer:
    """The rows of one frozen class under the names and types of its fields."""
    hints = typing.get_type_hints(one.returns)
    names = [field.name for field in fields(one.returns)]
    types = tuple(_TYPES.get(_plain(hints[name]), "string") for name in names)
    values = tuple(
        tuple(_shown(value, kind) for value, kind in zip(_values(row), types, strict=True))
        for row in rows
    )
    return Answer(names, types, values, session.spark)


def _values(row: Any) -> tuple[Any, ...]:
    return tuple(getattr(row, field.name) for field in fields(row))


def _shown(value: Any, kind: str) -> Any:
    """A list of rows is told by its length."""
    if isinstance(value, list | tuple):
        return str(len(value))
    return value if kind != "string" or value is None else str(value)


def _plain(hint: Any) -> Any:
    """``int`` of ``int | None``."""
    inside = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    return inside[0] if len(inside) == 1 else hint


@dataclass(frozen=True, slots=True)
class Nothing:
    """The answer of what has none."""


def _set_option(session: Session, **given: Any) -> Sequence[Nothing]:
    of = {"schema": given.get("schema"), "table": given.get("table_name")}
    if session.transaction is None:
        options.set_option(session.catalog, given["option"], given["value"], **of)
        return ()
    with session.writing() as transaction:
        transaction.set_option(
            options.option_writer(session.catalog, given["option"], given["value"], **of)
        )
    return ()


def _add_data_files(session: Session, **given: Any) -> Sequence[add_files.AddedFile]:
    ref = TableRef.parse(given.pop("table"))
    if given.get("schema") is not None:
        ref = TableRef(given["schema"], ref.name)
    given.pop("schema", None)
    paths, rules = given.pop("path"), Rules(**given)
    if session.transaction is None:
        return add_files.add_data_files(session.catalog, ref, paths, rules).files
    with session.writing() as transaction:
        table = existing(session, transaction, ref)
        files, look = add_files.stage_data_files(session.catalog, table, paths, rules)
        transaction.also(look)
    return files


def _set_commit_message(session: Session, given: Mapping[str, Any]) -> Answer:
    found = session.transaction
    if found is None:
        raise LakeError(
            "a commit message is of a transaction, and none is open",
            hint="BEGIN one, or use lake.transaction(author=, message=, extra=)",
        )
    found.describe(given.get("author"), given.get("commit_message"), given.get("extra_info"))
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
        add_files.AddedFile,
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
_KNOWN: Mapping[str, Call] = {one.name: one for one in _OWN} | dict(CALLS)
