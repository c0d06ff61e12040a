"""Macros that a script may call: `@` macros, libraries, macros and variables of its own.

All are expanded in its text before anything else reads it, in this order; macros of a lake come
after them, when the query is made ready for Spark.

``SET VARIABLE x = value``, ``RESET VARIABLE x`` and ``getvariable('x')``.

A value of constants stands in the text in place of ``getvariable('x')``, so that it prunes files
and names them as a constant does. Any other value, a subquery or a random number, is a temporary
view of one row, which the query reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lazy import exp
from penstock.model.files.source_map import Body
from penstock.model.macros.at_scope import AtMacros
from penstock.model.macros.macro_libraries import TEMPORARY, Libraries, read_macro
from penstock.model.script.at_text import MacroError
from penstock.model.script.script import Statement, is_macro, is_temporary, is_variable, split
from penstock.sql.determinism import EACH_CALL
from penstock.sql.dialect import DUCKDB
from penstock.sql.identifiers import fold, nearest
from penstock.sql.macros import Book, Macro, bare
from penstock.sql.query.edits import Edit, Mapped, edited
from penstock.sql.text import Unreadable, mask, offset, parse_expression, place
from penstock.sql.tokens import (
    ARGUMENT,
    NAME,
    STRING,
    WORD,
    SqlText,
    Token,
    Unclosed,
    depth_of,
    tokenize,
    words,
)

if TYPE_CHECKING:
    from penstock.sql.macro_calls import ExpandedCall


GETVARIABLE = "getvariable"
VIEW = "penstock_variable_{}"


@dataclass(frozen=True, slots=True)
class Variable:
    """``text`` stands for it in a query; ``origin`` says where it is set."""

    name: str
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A statement that sets a variable: ``value`` is None for RESET."""

    name: str
    value: Statement | None


def read_setting(statement: Statement) -> Setting:
    """Return what ``SET VARIABLE x = value`` or ``RESET VARIABLE x`` says. Raises MacroError."""
    tokens = statement.tokens
    reset = statement.word == "RESET"
    shape = "write RESET VARIABLE x" if reset else "write SET VARIABLE x = value"
    if len(tokens) < 3 or tokens[2].kind not in {WORD, NAME}:
        raise MacroError(f"{statement.word} VARIABLE has no name", shape, statement.start)
    name, rest = tokens[2].value, tokens[3:]
    if reset:
        if rest:
            raise MacroError(f"`{rest[0].text}` is not expected here", shape, rest[0].start)
        return Setting(name, None)
    if len(rest) < 2 or rest[0].upper not in {"=", "TO"}:
        at = rest[0].start if rest else statement.end
        raise MacroError(f"the variable {name} has no value", shape, at)
    depth = 0
    for token in rest[1:]:
        depth += depth_of(token)
        if token.text == "," and depth == 0:
            raise MacroError("a statement sets one variable", shape, token.start)
    return Setting(name, Statement(tuple(rest[1:])))


def is_constant(value: str, dialect: str, at: int) -> bool:
    """Return whether a value is the same wherever it stands: no subquery and nothing random in it.

    Raises MacroError for a column, which there is none of.
    """
    tokens = tokenize(value, dialect)
    if any(fold(token.value) in EACH_CALL for token in tokens if token.kind == WORD):
        return False
    arguments = [(token.start, token.end, "1") for token in tokens if token.kind == ARGUMENT]
    try:
        tree = parse_expression(mask(value, arguments), dialect)
    except Unreadable:
        return False  # Spark may read it
    if tree.find(exp.Query) is not None:
        return False
    column = tree.find(exp.Column)
    if column is not None:
        message = f"a variable's value has no column `{column.name}`"
        raise MacroError(message, "write 'text', or (SELECT max(a) FROM t)", at)
    return True


def readings(
    text: str, dialect: str, variables: Mapping[str, Variable]
) -> Iterator[tuple[int, int, Variable]]:
    """The calls of ``getvariable`` in a text. Raises MacroError for one that is never set."""
    if GETVARIABLE not in text.lower():
        return
    tokens = tokenize(text, dialect)
    for at, token in enumerate(tokens[:-1]):
        if token.kind == WORD and fold(token.text) == GETVARIABLE and tokens[at + 1].text == "(":
            yield token.start, _end(tokens, at), _variable(tokens, at, variables)


def _end(tokens: Sequence[Token], at: int) -> int:
    inside = tokens[at + 2 : at + 4]
    if [token.kind for token in inside[:1]] != [STRING] or [t.text for t in inside[1:]] != [")"]:
        hint = "write getvariable('x')"
        raise MacroError("getvariable takes the name as a text", hint, tokens[at].start)
    return inside[1].end


def _variable(tokens: Sequence[Token], at: int, variables: Mapping[str, Variable]) -> Variable:
    name = tokens[at + 2].value
    found = variables.get(fold(name))
    if found is None:
        guess = nearest(name, [each.name for each in variables.values()])
        hint = f"did you mean {guess}?" if guess else f"write SET VARIABLE {name} = ... before it"
        raise MacroError(f"the variable {name} is not set", hint, tokens[at].start)
    return found


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
