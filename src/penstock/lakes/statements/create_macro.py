"""CREATE MACRO, a statement of DuckDB's, with a definition in DuckDB's SQL.

DuckDB opens no lake with a macro that it cannot parse, so only what Penstock's strict translation
knows is stored; `docs/sql.md` lists that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.naming import DEFAULT_SCHEMA, TableRef
from penstock.lakes.format.schema import Column
from penstock.lakes.statements.columns import column_type
from penstock.lakes.statements.session import Answer, Session, name_of, nothing
from penstock.lakes.statements.values import as_text, fitted
from penstock.lazy import exp
from penstock.sql.duckdb.translate import checked
from penstock.sql.literals import NoLiteral, literal
from penstock.sql.macros import Form, MacroForm, Parameter, read_forms
from penstock.sql.query.names import common_table
from penstock.sql.statement import Reader, StatementText, TableName, if_not_exists
from penstock.sql.text import Unreadable


@dataclass(frozen=True, slots=True)
class CreateMacro:
    macro: TableName
    or_replace: bool
    there_may_be: bool
    forms: tuple[Form, ...]
    statement: StatementText


def parse(reader: Reader, or_replace: bool) -> CreateMacro:
    """Return what follows ``CREATE [OR REPLACE] MACRO``: ``m(a, b INTEGER := 2) AS expression |
    TABLE SELECT ...``.

    Overloads follow after commas: ``(a) AS a, (a, b) AS a + b``.
    """
    there_may_be = if_not_exists(reader, or_replace)
    macro = reader.table("a macro")
    forms = read_forms(reader, _parameter)
    return CreateMacro(macro, or_replace, there_may_be, forms, reader.statement)


def execute(session: Session, create: CreateMacro) -> Answer:
    ref, known = session.ref(create.macro, new=True), session.macro_names()
    forms = tuple(_stored(session, create.statement, form, known) for form in create.forms)
    with session.writing() as transaction:
        transaction.create_macro(
            name_of(ref), forms, or_replace=create.or_replace, if_not_exists=create.there_may_be
        )
    return nothing(session.spark)


def _stored(session: Session, statement: StatementText, form: Form, known: set[str]) -> MacroForm:
    """The form as the catalog has it, which DuckDB is known to read."""
    text, at = form.text.text, form.text.start
    before = "" if form.is_table else "SELECT "
    try:
        stored, tree = checked(f"{before}{text}", known)
    except Unreadable as error:
        at += max(error.at - len(before), 0)
        raise statement.wrong(f"the macro is not understood{error}", at) from error
    except UnsupportedFeature as problem:
        raise UnsupportedFeature(
            f"the macro cannot be made: {problem.message}",
            hint="a macro is in DuckDB's SQL, of which docs/sql.md lists what is known",
        ) from problem
    if form.is_table:
        _require_tables(session, tree)
    else:
        if len(tree.expressions) != 1 or tree.args.get("from_"):
            raise statement.wrong("a scalar macro is one expression", form.at)
        stored = tree.expressions[0].sql("duckdb", comments=False)
    return MacroForm("table" if form.is_table else "scalar", "duckdb", stored, form.parameters)


def _require_tables(session: Session, tree: exp.Expr) -> None:
    """Check that the tables in a macro exist: DuckDB requires it."""
    names = session.names(session.transaction)
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and common_table(table) is None:
            names.require(TableRef(table.db or DEFAULT_SCHEMA, table.name))


def _parameter(reader: Reader) -> Parameter:
    name = reader.name("a parameter")
    column: Column | None = None
    if reader.token.upper not in {",", ")", ":=", "=>", "DEFAULT"}:
        at = reader.token.start
        column = column_type(reader, name)
        if column.children:
            raise reader.unsupported("a nested type of a parameter", "leave the type out", at)
    if not (reader.accept(":=") or reader.accept("=>") or reader.accept("DEFAULT")):
        return Parameter(name, None if column is None else column.type)
    default = _default(reader, column)
    return Parameter(name, None if column is None else column.type, default.text, default.type)


@dataclass(frozen=True, slots=True)
class _Default:
    text: str
    type: str


def _default(reader: Reader, column: Column | None) -> _Default:
    """A default as DuckDB stores it: the value's text and type. DuckDB cannot store NULL."""
    at = reader.token.start
    try:
        value = literal(reader, reader.args)
        if reader.token.text not in {",", ")"}:
            raise NoLiteral
        kind = value.type if value.type in {"date", "boolean"} else _kind(value.value)
        text = as_text(value)
        if column is not None:
            fitted(value, column)
            kind = column.type
    except NoLiteral:
        raise reader.unsupported(
            "a default that is not a number, text, boolean or date", "write one of these", at
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
