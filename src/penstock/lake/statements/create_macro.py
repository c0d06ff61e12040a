"""CREATE MACRO, a statement of DuckDB's: what it stands for is in DuckDB's SQL.

DuckDB opens no lake with a macro that it cannot parse, so only what Penstock's strict translation
knows is stored; `docs/sql.md` lists that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import UnsupportedFeature
from penstock.lake.format.naming import DEFAULT_SCHEMA, TableRef, fold
from penstock.lake.format.schema import Column
from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.column_values import as_text, fitted
from penstock.lake.statements.session import Session, name_of, table_ref
from penstock.lake.statements.types import column_type
from penstock.sql.duckdb.round_trip import checked
from penstock.sql.literals import NoLiteral, literal
from penstock.sql.macros import MacroForm, Parameter
from penstock.sql.statement import Reader, if_not_exists


def run(session: Session, reader: Reader, or_replace: bool) -> Answer:
    """``CREATE [OR REPLACE] MACRO m(a, b INTEGER := 2) AS expression | TABLE SELECT ...``

    Overloads follow after commas: ``(a) AS a, (a, b) AS a + b``.
    """
    there_may_be = if_not_exists(reader, or_replace)
    ref = table_ref(reader, "a macro", new=True)
    known = session.macro_names()
    forms = [_form(session, reader, known)]
    while reader.accept(","):
        forms.append(_form(session, reader, known))
    reader.finish()
    if len({form.kind for form in forms}) > 1:
        raise reader.wrong("overloads are all expressions or all tables")
    if len({len(form.parameters) for form in forms}) < len(forms):
        raise reader.unsupported(
            "overloads that only types tell apart", "give them other numbers of parameters"
        )
    with session.writing() as transaction:
        transaction.create_macro(
            name_of(ref), tuple(forms), or_replace=or_replace, if_not_exists=there_may_be
        )
    return nothing(session.spark)


def _form(session: Session, reader: Reader, known: set[str]) -> MacroForm:
    at = reader.token.start
    parameters = _parameters(session, reader)
    if reader.sees("RETURNS") or reader.sees("RETURN"):
        raise reader.unsupported("RETURNS", "write CREATE MACRO m(a) AS expression")
    reader.expect("AS")
    is_table = reader.accept("TABLE")
    span = reader.until(",") if not is_table else reader.rest()
    text = reader.written(span, "what the macro stands for")
    try:
        stored, tree = checked(text if is_table else f"SELECT {text}", known)
    except SqlglotError as error:
        said = str(error).splitlines()[0]
        raise reader.wrong(f"the macro is not understood: {said}", at=span[0]) from error
    except UnsupportedFeature as problem:
        raise UnsupportedFeature(
            f"the macro cannot be made: {problem.message}",
            hint="a macro is in DuckDB's SQL, of which docs/sql.md lists what is known",
        ) from problem
    if is_table:
        _require_tables(session, tree)
    else:
        if len(tree.expressions) != 1 or tree.args.get("from_"):
            raise reader.wrong("a scalar macro is one expression", at=at)
        stored = tree.expressions[0].sql("duckdb", comments=False)
    return MacroForm("table" if is_table else "scalar", "duckdb", stored, parameters)


def _require_tables(session: Session, tree: exp.Expr) -> None:
    """DuckDB makes no macro of tables that are not there."""
    names = session.names(session.transaction)
    ctes = {fold(one.alias) for one in tree.find_all(exp.CTE)}
    for one in tree.find_all(exp.Table):
        if isinstance(one.this, exp.Identifier) and (one.db or fold(one.name) not in ctes):
            names.require(TableRef(one.db or DEFAULT_SCHEMA, one.name))


def _parameters(session: Session, reader: Reader) -> tuple[Parameter, ...]:
    reader.expect("(")
    found: list[Parameter] = []
    while not reader.accept(")"):
        if found:
            reader.expect(",")
        at = reader.token.start
        one = _parameter(session, reader)
        if fold(one.name) in {fold(other.name) for other in found}:
            raise reader.wrong(f"two parameters are named {one.name!r}", at=at)
        if one.default is None and found and found[-1].default is not None:
            raise reader.wrong(f"{one.name} needs a default, as those before it", at=at)
        found.append(one)
    return tuple(found)


def _parameter(session: Session, reader: Reader) -> Parameter:
    name = reader.name("a parameter")
    column: Column | None = None
    if reader.token.upper not in {",", ")", ":=", "=>", "DEFAULT"}:
        at = reader.token.start
        column = column_type(reader, name)
        if column.children:
            raise reader.unsupported("a nested type of a parameter", "leave the type out", at)
    if not (reader.accept(":=") or reader.accept("=>") or reader.accept("DEFAULT")):
        return Parameter(name, None if column is None else column.type)
    default = _default(session, reader, column)
    return Parameter(name, None if column is None else column.type, default.text, default.type)


@dataclass(frozen=True, slots=True)
class _Default:
    text: str
    type: str


def _default(session: Session, reader: Reader, column: Column | None) -> _Default:
    """As DuckDB stores it: the value's text and its type. DuckDB itself cannot store NULL."""
    at = reader.token.start
    try:
        one = literal(reader, session.args)
        if reader.token.text not in {",", ")"}:
            raise NoLiteral
        kind = one.type if one.type in {"date", "boolean"} else _kind(one.value)
        text = as_text(one)
        if column is not None:
            fitted(one, column)
            kind = column.type
    except NoLiteral:
        raise reader.unsupported(
            "a default that is no number, text, boolean or date", "write one of these", at
        ) from None
    if text is None:
        raise reader.unsupported("NULL as a default", "write the NULL in the call", at)
    return _Default(text, kind)


def _kind(value: Any) -> str:
    """The type that DuckDB gives a literal."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "int32" if -(2**31) <= value < 2**31 else "int64"
    if isinstance(value, Decimal):
        digits = len(value.as_tuple().digits)
        scale = -int(value.as_tuple().exponent)
        return f"decimal({max(digits, scale + 1)},{scale})"
    return _KINDS.get(type(value), "varchar")


_KINDS = {bool: "boolean", float: "float64", date: "date"}
