"""The definition of a macro: ``(a, b := 2) AS expression``, ``(a) AS TABLE SELECT ...``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.sql.identifiers import fold
from penstock.sql.macros import Parameter
from penstock.sql.statement import Reader
from penstock.sql.text import SqlExpression


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
