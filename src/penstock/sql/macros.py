"""Macros as values: their definitions, the form that a call fits, and the text that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.sql.identifiers import DEFAULT_SCHEMA, fold
from penstock.sql.statement import Reader
from penstock.sql.text import SqlExpression
from penstock.sql.tokens import (
    ARGUMENT,
    MARKER,
    NAME,
    NO_VALUE,
    NUMBER,
    STRING,
    WORD,
    Token,
    depth_of,
    tokenize,
)

_DEEPEST = 50
AS_WRITTEN = "sql"  # the "type" of a default that is an expression in the macro's own dialect

# Types of the format as DuckDB's casts name them, for defaults.
_TYPES = {
    **{f"int{8 * n}": kind for n, kind in ((1, "TINYINT"), (2, "SMALLINT"), (4, "INTEGER"))},
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "varchar": "VARCHAR",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """Of a macro. ``type`` is ``None`` for any; ``default`` is text, ``None`` for none."""

    name: str
    type: str | None = None
    default: str | None = None
    default_type: str | None = None


@dataclass(frozen=True, slots=True)
class MacroForm:
    """One overload: ``sql`` is an expression (``scalar``) or a SELECT (``table``)."""

    kind: str
    dialect: str
    sql: str
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro of a lake at one snapshot, or one of a project's scripts, with its overloads.

    One of a script says ``where`` it is written; its schema is its library, and ``tiers`` are the
    schemas in which its definition looks for names (`Book`).
    """

    id: int
    schema_name: str
    name: str
    forms: tuple[MacroForm, ...]
    begin_snapshot: int
    where: str = ""
    tiers: tuple[tuple[str, ...], ...] = ()

    @property
    def kind(self) -> str:
        """``scalar`` or ``table``: that of all its forms."""
        return self.forms[0].kind if self.forms else "scalar"

    @property
    def qualified_name(self) -> str:
        return f"{self.schema_name}.{self.name}"

    @property
    def described(self) -> str:
        """For messages: its name, and where it is."""
        return f"{self.name} ({self.where})" if self.where else self.qualified_name


@dataclass(frozen=True, slots=True)
class Book:
    """The macros that a text may call, and where names without a schema are looked for.

    With ``tiers`` that is in one after another; of the schemas of one tier only one may have it.
    """

    macros: Sequence[Macro]
    path: tuple[str, ...] = (DEFAULT_SCHEMA,)
    open: tuple[str, ...] = ()  # being expanded, outermost first
    lakes: frozenset[str] = frozenset()  # what the lake is called, folded
    tiers: tuple[tuple[str, ...], ...] = ()

    def find(self, schema: str | None, name: str) -> Sequence[Macro]:
        """Return those of the first schema that has any: a scalar and a table macro may share a
        name.

        For ``schema`` the lake's name may stand, unless a schema with macros is called so.
        """
        if self.tiers:
            return self._in_tiers(name) if schema is None else ()
        schemas = {fold(macro.schema_name) for macro in self.macros}
        if schema is not None and fold(schema) in self.lakes - schemas:
            schema = None
        for where in (schema,) if schema is not None else self.path:
            key = fold(where), fold(name)
            found = [one for one in self.macros if (fold(one.schema_name), fold(one.name)) == key]
            if found:
                return found
        return ()

    def _in_tiers(self, name: str) -> Sequence[Macro]:
        """Raises QueryFailed where two schemas of a tier have it."""
        named = [macro for macro in self.macros if fold(macro.name) == fold(name)]
        for tier in self.tiers if named else ():
            found = [macro for macro in named if macro.schema_name in tier]
            if len({macro.schema_name for macro in found}) > 1:
                first, *_, last = found
                raise QueryFailed(
                    f"{name} is a macro of two libraries: {first.where} and {last.where}",
                    hint=f"name one alone in the header: -- use {first.schema_name}",
                )
            if found:
                return found
        return ()

    def names(self) -> set[str]:
        """``main.f``, folded."""
        return {fold(macro.qualified_name) for macro in self.macros}

    def inside(self, macro: Macro) -> Book:
        """For the body of a macro. Raises QueryFailed when that calls itself."""
        named = f"{macro.described}{' (a table)' if macro.kind == 'table' else ''}"
        if named in self.open or len(self.open) >= _DEEPEST:
            chain = " → ".join((*self.open, named))
            raise QueryFailed(
                f"the macro {macro.described} calls itself: {chain}",
                hint="a macro stands before the built-in function of its name, in itself too",
            )
        return replace(self, open=(*self.open, named), tiers=macro.tiers)


def bind(
    macro: Macro, arguments: Sequence[tuple[str | None, str]]
) -> tuple[MacroForm, dict[str, str | Parameter]]:
    """The overload that fits, and by parameter (folded) its argument or, for a default, itself."""
    fitting = [(form, bound) for form in macro.forms if (bound := _fit(form, arguments))]
    if not fitting:
        shapes = " or ".join(_shape(macro, form) for form in macro.forms)
        raise QueryFailed(
            f"the arguments do not fit the macro {macro.described}", hint=f"it is {shapes}"
        )
    exact = [one for one in fitting if len(one[0].parameters) == len(arguments)] or fitting
    if len(exact) > 1:
        raise UnsupportedFeature(
            f"overloads of the macro {macro.described} that only types tell apart",
            hint="read it with DuckDB",
        )
    form, values = exact[0]
    return form, values.values


@dataclass(frozen=True, slots=True)
class _Fit:
    values: dict[str, str | Parameter]


def _fit(form: MacroForm, arguments: Sequence[tuple[str | None, str]]) -> _Fit | None:
    names = [fold(parameter.name) for parameter in form.parameters]
    bound: dict[str, str | Parameter] = {}
    free = list(names)
    for name, value in arguments:
        if name is None and not free:
            return None
        wanted = fold(name) if name is not None else free[0]
        if wanted not in free:
            return None
        free.remove(wanted)
        bound[wanted] = value
    for parameter in form.parameters:
        if fold(parameter.name) in free:
            if parameter.default is None:
                return None
            bound[fold(parameter.name)] = parameter
    return _Fit(bound)


def _shape(macro: Macro, form: MacroForm) -> str:
    parts = [p.name if p.default is None else f"{p.name} := {p.default}" for p in form.parameters]
    return f"{macro.name}({', '.join(parts)})"


def default_text(value: str | Parameter) -> str:
    """An argument as it is, a default as DuckDB's literal."""
    if isinstance(value, str):
        return value
    kind = value.default_type or ""
    text = value.default or ""
    if kind == AS_WRITTEN:
        return text
    quoted = "'" + text.replace("'", "''") + "'"
    if kind == "varchar":
        return quoted
    if kind.startswith(("int", "decimal")) and text.lstrip("-").replace(".", "", 1).isdigit():
        return text
    if kind not in _TYPES:
        raise UnsupportedFeature(f"a default of the type {kind} of the parameter {value.name}")
    return f"CAST({quoted} AS {_TYPES[kind]})"


@dataclass(frozen=True, slots=True)
class Form:
    """One overload: its parameters, and its definition as written."""

    parameters: tuple[Parameter, ...]
    is_table: bool
    text: SqlExpression
    at: int


def read_forms(reader: Reader, parameter: Callable[[Reader], Parameter]) -> tuple[Form, ...]:
    """Return what follows the name of a macro, up to the end of the statement.

    Overloads follow after commas: ``(a) AS a, (a, b) AS a + b``; those of a table have their
    queries in brackets. ``parameter`` reads one with its type and default.
    """
    forms = [_form(reader, parameter)]
    while reader.accept(","):
        forms.append(_form(reader, parameter))
    reader.finish()
    if len({form.is_table for form in forms}) > 1:
        raise reader.wrong("overloads are all expressions or all tables")
    if len({len(form.parameters) for form in forms}) < len(forms):
        raise reader.unsupported(
            "overloads that only types tell apart", "give them other numbers of parameters"
        )
    return tuple(forms)


def _form(reader: Reader, parameter: Callable[[Reader], Parameter]) -> Form:
    at = reader.token.start
    parameters = _parameters(reader, parameter)
    if reader.sees("RETURNS") or reader.sees("RETURN"):
        raise reader.unsupported("RETURNS", "write CREATE MACRO m(a) AS expression")
    reader.expect("AS")
    is_table = reader.accept("TABLE")
    bracketed = is_table and reader.sees("(")
    span = reader.until(",") if bracketed or not is_table else reader.rest()
    text = reader.written(span, "what the macro stands for")
    return Form(parameters, is_table, SqlExpression(text, span[0]), at)


def _parameters(reader: Reader, parameter: Callable[[Reader], Parameter]) -> tuple[Parameter, ...]:
    reader.expect("(")
    parameters: list[Parameter] = []
    while not reader.accept(")"):
        if parameters:
            reader.expect(",")
        at = reader.token.start
        new = parameter(reader)
        if fold(new.name) in {fold(other.name) for other in parameters}:
            raise reader.wrong(f"two parameters are named {new.name!r}", at=at)
        if new.default is None and parameters and parameters[-1].default is not None:
            raise reader.wrong(f"{new.name} needs a default, as those before it", at=at)
        parameters.append(new)
    return tuple(parameters)


_KEYWORDS = frozenset({"INTERVAL", "LATERAL", "DATE", "TIMESTAMP", "CAST"})
_NAMED = frozenset({":=", "=>"})  # what follows the name of an argument


def filled(sql: str, values: Mapping[str, str], dialect: str) -> str:
    """``sql`` with a text in place of each parameter; ``values`` are by name, folded.

    Names of columns after a dot, of aliases, of named arguments and of fields stay. Raises
    UnsupportedFeature for a lambda whose parameter is called like one of them.
    """
    tokens = tokenize(sql, dialect)
    parts: list[str] = []
    position = 0
    openings: list[int] = []
    for at, token in enumerate(tokens):
        if depth_of(token) > 0:
            openings.append(at)
        elif depth_of(token) < 0 and openings:
            openings.pop()
        value = _value(tokens, at, values, openings[-1] if openings else None)
        if value is not None:
            parts += [sql[position : token.start], value]
            position = token.end
    return "".join([*parts, sql[position:]])


def bare(value: str, dialect: str) -> str:
    """An argument as it may stand in an expression: in brackets, unless it is one constant."""
    tokens = tokenize(value, dialect)
    constant = len(tokens) == 1 and tokens[0].kind in {STRING, NUMBER, ARGUMENT}
    return value if constant else f"({value})"


def _value(
    tokens: Sequence[Token], at: int, values: Mapping[str, str], opening: int | None
) -> str | None:
    """Return what stands for the word at ``at``, in the bracket at ``opening``; None where it
    stays.
    """
    token = tokens[at]
    value = values.get(fold(token.value)) if token.kind in {NAME, WORD, MARKER} else None
    if value is None:
        return None
    inside = "" if opening is None else tokens[opening].text
    if token.kind == MARKER:  # the end of a slice, [a:b]
        return f":{value}" if inside == "[" else None
    before = tokens[at - 1] if at else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if after is not None and _is_lambda(tokens, at, after):
        raise UnsupportedFeature(
            f"a lambda's parameter is called {token.text}, like the macro's own",
            hint="give one of them another name",
        )
    stays = before is not None and (before.text == "." or before.upper == "AS")
    stays = stays or _is_named(tokens, at)
    stays = stays or (opening is not None and _names_columns(tokens, opening))
    if after is not None:
        stays = stays or after.text == "(" or after.text in _NAMED
        stays = stays or (after.text == ":" and inside == "{")
        stays = stays or (after.text == "." and _is_alias(tokens, token))
    return None if stays else value


def _is_named(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the word is a name that is given without AS: ``FROM t a``,
    ``(SELECT 1) a``.
    """
    if at < 2:
        return False
    before, ahead = tokens[at - 1], tokens[at - 2]
    if before.text == ")":
        return True
    value = before.kind in {NAME, WORD} and before.upper not in NO_VALUE | _KEYWORDS
    return value and ahead.upper in {"FROM", "JOIN", "SELECT", ",", "."}


def _names_columns(tokens: Sequence[Token], opening: int) -> bool:
    """Return whether a bracket follows the name of a table with its columns: ``t(a, b)``."""
    if opening < 2 or tokens[opening - 1].kind not in {NAME, WORD}:
        return False
    before = tokens[opening - 2]
    if before.text == ")" or before.upper in {"AS", "WITH", "RECURSIVE"}:
        return tokens[opening - 1].upper not in NO_VALUE
    return (
        opening > 2
        and before.kind in {NAME, WORD}
        and tokens[opening - 3].upper in {"FROM", "JOIN", ","}
    )


def _is_lambda(tokens: Sequence[Token], at: int, after: Token) -> bool:
    """``x -> x + 1`` or ``lambda x: ...``; what leads to a field of JSON is none."""
    if after.text == "->":
        return at + 2 >= len(tokens) or tokens[at + 2].kind not in {STRING, NUMBER}
    return at > 0 and tokens[at - 1].upper == "LAMBDA" and after.text == ":"


def _is_alias(tokens: Sequence[Token], wanted: Token) -> bool:
    """Return whether a table of the definition is called so."""
    for before, token in pairwise(tokens):
        if token.kind in {NAME, WORD} and fold(token.value) == fold(wanted.value):
            ends = before.text == ")" or (
                before.kind in {NAME, WORD} and before.upper not in NO_VALUE
            )
            if ends or before.upper in {"AS", "FROM", "JOIN"}:
                return True
    return False
