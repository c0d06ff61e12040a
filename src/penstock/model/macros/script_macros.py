"""Macros that a script may call: `@` macros, libraries, macros and variables of its own.

All are expanded in its text before anything else reads it, in this order; macros of a lake come
after them, when the query is made ready for Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.model.files.source_map import Body
from penstock.model.macros.at_scope import AtMacros
from penstock.model.macros.macro_libraries import TEMPORARY, Libraries
from penstock.model.macros.macro_statement import read_macro
from penstock.model.macros.variables import (
    GETVARIABLE,
    VIEW,
    Variable,
    is_constant,
    read_setting,
    readings,
)
from penstock.model.script.at_text import MacroError
from penstock.model.script.script import Statement, is_macro, is_temporary, is_variable, split
from penstock.sql.dialect import DUCKDB
from penstock.sql.identifiers import fold
from penstock.sql.macros import Book, Macro, bare
from penstock.sql.query.edits import Edit, Mapped, edited
from penstock.sql.text import Unreadable, offset, place
from penstock.sql.tokens import NAME, WORD, SqlText, Unclosed, words

if TYPE_CHECKING:
    from penstock.sql.macro_calls import ExpandedCall


# What is in the text of a script that makes or reads macros and variables of its own.
_OWN = ("macro", "function", "variable")


@dataclass(frozen=True, slots=True)
class ScriptMacros:
    """``uses`` are the libraries that the script's header names."""

    at: AtMacros = field(default_factory=AtMacros)
    libraries: Libraries = field(default_factory=Libraries)
    uses: tuple[str, ...] = ()

    def saying(self, **variables: str) -> ScriptMacros:
        return replace(self, at=self.at.saying(**variables))

    def using(self, uses: tuple[str, ...]) -> ScriptMacros:
        return replace(self, uses=uses)


@dataclass(frozen=True, slots=True)
class Expanded:
    """``libraries`` are the names of those that the script calls, and they."""

    mapped: Mapped
    bodies: tuple[Body, ...] = ()
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Edit:
    """``text[start:end]`` becomes ``text``, which comes from ``origin`` if that is said."""

    start: int
    end: int
    text: str
    origin: str = ""


@dataclass(slots=True)
class _Reading:
    """A script that is read statement by statement; ``used`` are the libraries that it calls."""

    text: str
    dialect: str
    macros: ScriptMacros
    manual: bool = False
    temporary: dict[tuple[str, str], Macro] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    views: int = 0
    used: dict[str, None] = field(default_factory=dict)
    edits: list[_Edit] = field(default_factory=list)

    @property
    def tiers(self) -> tuple[tuple[str, ...], ...]:
        return self.macros.libraries.tiers((TEMPORARY,), self.macros.uses)

    @property
    def book(self) -> Book:
        macros = (*self.temporary.values(), *self.macros.libraries.macros)
        return Book(macros, tiers=self.tiers)

    def line(self, at: int) -> str:
        return f"line {place(self.text, at)[0]}"


def expand_calls(
    text: str, start: int, dialect: str, macros: ScriptMacros, *, manual: bool = False
) -> Expanded | None:
    """The text with its calls expanded from ``start`` on; ``None`` where it has none.

    Raises MacroError with the place in ``text``.
    """
    said = text[start:].lower()
    if not any(word in said for word in (*_OWN, *macros.libraries.names)):
        return None
    try:
        tokens = words(text, dialect, start)
    except Unclosed:
        return None  # which reading the query reports
    reading = _Reading(text, dialect, macros, manual)
    for statement in split(tokens):
        reading.edits += _edits(statement, reading)
    if not reading.edits:
        return None
    mapped = edited(text, [Edit(e.start, e.end, e.text) for e in reading.edits])
    return Expanded(mapped, tuple(_bodies(reading.edits)), tuple(reading.used))


def _bodies(edits: Sequence[_Edit]) -> Iterator[Body]:
    moved = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        at = edit.start + moved
        if edit.origin:
            yield Body(at, at + len(edit.text), edit.origin)
        moved += len(edit.text) - (edit.end - edit.start)


def _edits(statement: Statement, reading: _Reading) -> list[_Edit]:
    if is_temporary(statement):
        _make(statement, reading)
    elif is_variable(statement):
        return _set(statement, reading)
    elif not is_macro(statement):  # which is a macro of the lake
        return _expanded(statement, reading, query=True)
    return []


def _make(statement: Statement, reading: _Reading) -> None:
    """Know a macro of the script's own from here on."""
    where = reading.line(statement.start)
    try:
        made = read_macro(reading.text, statement, reading.dialect, TEMPORARY, where)
        made = replace(made, macro=replace(made.macro, tiers=reading.tiers))
        made.put(reading.temporary)
    except (QueryFailed, UnsupportedFeature) as error:
        line, column = error.data.get("line"), error.data.get("column")
        at = offset(reading.text, line, column) if line and column else statement.start
        hint = error.hint or "write CREATE TEMP MACRO name(a, b) AS expression"
        raise MacroError(error.cause, hint, at) from None


def _set(statement: Statement, reading: _Reading) -> list[_Edit]:
    """Know the value of a variable from here on; one that is not constant becomes a view."""
    setting = read_setting(statement)
    name, origin = setting.name, f"the variable {setting.name}, {reading.line(statement.start)}"
    if setting.value is None:
        reading.variables[fold(name)] = Variable(name, "NULL", origin)
        return []
    first, last = setting.value.start, setting.value.end
    inside = _expanded(setting.value, reading, query=False)
    edits = [Edit(each.start, each.end, each.text) for each in inside]
    value = edited(reading.text, edits, first, last).text
    if is_constant(value, reading.dialect, first):
        reading.variables[fold(name)] = Variable(name, bare(value, reading.dialect), origin)
        return []
    if reading.manual:
        hint = "write the subquery where its value is used"
        raise MacroError("a variable of a manual script is a constant", hint, first)
    reading.views += 1
    view = VIEW.format(reading.views)
    reading.variables[fold(name)] = Variable(name, f"(SELECT value FROM {view})", origin)
    opening = _Edit(statement.start, first, f"CREATE TEMP VIEW {view} AS SELECT (")
    return [opening, *inside, _Edit(last, last, ") AS value")]


def _expanded(statement: Statement, reading: _Reading, *, query: bool) -> list[_Edit]:
    """The calls in a statement; ``query`` if its columns have names."""
    pairs = pairwise(statement.tokens)
    called = {fold(t.value) for t, after in pairs if after.text == "(" and t.kind in {WORD, NAME}}
    own = {name for name, _ in reading.temporary}
    if called.isdisjoint(reading.macros.libraries.names | own | {GETVARIABLE}):
        return []
    book = reading.book
    # Late: a script that calls nothing of these needs no translator.
    from penstock.sql.macro_calls import expanded_calls, reached

    start = statement.start
    source = SqlText(reading.text[start : statement.end], reading.dialect)
    try:
        calls = expanded_calls(source, book)
        macros = reached(source, book) if calls else ()
    except (QueryFailed, UnsupportedFeature) as error:
        hint = error.hint or "correct the call"
        raise MacroError(error.message, hint, start + int(error.data.get("call", 0))) from None
    reading.used |= {macro.schema_name: None for macro in macros if macro.schema_name != TEMPORARY}
    edits = [_of_call(call, start, reading) for call in calls]
    for first, last, variable in _readings(source.text, start, reading):
        if not any(call.start <= first < call.end for call in calls):
            edits.append(_Edit(start + first, start + last, variable.text, variable.origin))
    return edits + (_names(source, start, edits) if query and reading.dialect == DUCKDB else [])


def _of_call(call: ExpandedCall, start: int, reading: _Reading) -> _Edit:
    at = start + call.start
    try:
        found = [Edit(a, b, v.text) for a, b, v in _readings(call.text, 0, reading)]
    except MacroError as error:
        raise MacroError(f"{error}, in {call.macro.described}", error.hint, at) from None
    text = edited(call.text, found).text
    return _Edit(at, start + call.end, text, f"the macro {call.macro.name}, {call.macro.where}")


def _readings(text: str, start: int, reading: _Reading) -> list[tuple[int, int, Variable]]:
    try:
        return list(readings(text, reading.dialect, reading.variables))
    except MacroError as error:
        error.at += start
        raise


def _names(source: SqlText, start: int, edits: Sequence[_Edit]) -> list[_Edit]:
    """DuckDB's names for the columns that have none of their own: those of the calls."""
    from penstock.sql.duckdb.text import naming

    try:
        found = naming(source.text)
    except Unreadable:
        return []  # which reading the query reports
    places = {start + each.start: each.text for each in found if each.start == each.end}
    return [
        _Edit(at, at, text)
        for at, text in places.items()
        if not any(edit.start < at < edit.end for edit in edits)
    ]
