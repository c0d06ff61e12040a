"""``CREATE MACRO`` in a library, and ``CREATE TEMP MACRO`` in a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.lazy import exp
from penstock.model.script.references import is_sparks_own, own_masks
from penstock.model.script.script import MACRO_WORDS, QUERY_WORDS, Statement
from penstock.sql.dialect import SPARK, parse
from penstock.sql.identifiers import fold
from penstock.sql.macros import AS_WRITTEN, Form, Macro, MacroForm, Parameter, read_forms
from penstock.sql.statement import Reader, if_not_exists
from penstock.sql.text import Unreadable, mask, parse_expression, wrong
from penstock.sql.time_travel import find_clauses
from penstock.sql.tokens import Token, tokenize


@dataclass(frozen=True, slots=True)
class NewMacro:
    """A macro as a statement makes it."""

    macro: Macro
    or_replace: bool
    there_may_be: bool
    text: str
    at: int

    def put(self, macros: dict[tuple[str, str], Macro]) -> None:
        """Add it to those of its script, by name and kind: an expression and a table may share a
        name. Raises QueryFailed where there is one.
        """
        key = fold(self.macro.name), self.macro.kind
        other = macros.get(key)
        if other is not None and self.there_may_be:
            return
        if other is not None and not self.or_replace:
            message = f"the macro {self.macro.name} is made twice, first at {other.where}"
            raise wrong(message, self.text, self.at, "give one another name, or OR REPLACE")
        macros[key] = self.macro


def read_macro(text: str, statement: Statement, dialect: str, schema: str, where: str) -> NewMacro:
    """The macro that a statement of ``text`` makes. Raises QueryFailed, UnsupportedFeature."""
    reader = Reader(
        text, statement.start, statement.end, tokens=list(statement.tokens), dialect=dialect
    )
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    reader.accept_any("TEMP", "TEMPORARY")
    reader.accept_any(*MACRO_WORDS)
    there_may_be = if_not_exists(reader, or_replace)
    at = reader.token.start
    name = reader.dotted("a macro")
    if len(name) > 1:
        raise reader.wrong("the macro has a plain name", f"write CREATE MACRO {name[-1]}(...)", at)
    forms = tuple(_checked(form, text, dialect) for form in read_forms(reader, _parameter))
    macro = Macro(0, schema, name[0], forms, 0, where)
    return NewMacro(macro, or_replace, there_may_be, text, at)


def _parameter(reader: Reader) -> Parameter:
    """``a``, ``a INTEGER``, ``a := 1 + 1``: the type and default are kept as written."""
    name = reader.name("a parameter")
    span = reader.until(",", ":=", "=>", "DEFAULT")
    type_ = reader.text[slice(*span)] or None
    if reader.accept_any(":=", "=>", "DEFAULT") is None:
        return Parameter(name, type_)
    at = reader.token.start
    default = reader.expression(",", what="a default")
    try:
        tree = parse_expression(default.text, reader.dialect)
    except Unreadable as error:
        raise reader.wrong(f"the default of {name} cannot be read{error}", at=at) from None
    if tree.find(exp.Column, exp.Select) is not None:
        hint = "write a constant, or an expression of constants"
        raise reader.wrong(f"the default of {name} reads columns or a query", hint, at)
    return Parameter(name, type_, default.text, AS_WRITTEN)


def _checked(form: Form, text: str, dialect: str) -> MacroForm:
    """Raises QueryFailed for a definition that cannot be read, with its place."""
    tokens = tokenize(text, dialect, *form.text.span)
    at = form.text.start
    for token in tokens:
        if token.text == "@":
            hint = "write the macro with parameters, and give it @... in the call"
            raise wrong("a macro's definition has no @ macros", text, token.start, hint)
    if not form.is_table and tokens[0].upper in QUERY_WORDS and tokens[0].text != "(":
        hint = "write AS TABLE SELECT ... for a table, AS (SELECT ...) for one value"
        raise wrong("a scalar macro is one expression", text, at, hint)
    tree = _tree(form, text, tokens, dialect)
    if tree is not None and not form.is_table and not _is_expression(tree):
        raise wrong("a scalar macro is one expression", text, at, "write AS TABLE SELECT ...")
    if tree is not None and form.is_table and not isinstance(tree, exp.Query):
        raise wrong("a table macro is a query", text, at, "write AS TABLE SELECT ...")
    kind = "table" if form.is_table else "scalar"
    return MacroForm(kind, dialect, form.text.text, form.parameters)


def _tree(form: Form, text: str, tokens: Sequence[Token], dialect: str) -> exp.Expr | None:
    """``None`` where Spark alone can read it."""
    clauses = [
        (tokens[clause.first].start, tokens[clause.last].end, "") for clause in find_clauses(tokens)
    ]
    before = "" if form.is_table else "SELECT "
    start, end = form.text.span
    masked = mask(text, [*own_masks(tokens), *clauses])[start:end]
    try:
        return parse(f"{before}{masked}", dialect)[0]
    except Unreadable as error:
        message = f"the macro cannot be read{error}"
        if dialect == SPARK and is_sparks_own(tokens, message):
            return None
        place = start + max(error.at - len(before), 0)
        raise wrong(message, text, place, "correct the SQL") from None


def _is_expression(tree: exp.Expr) -> bool:
    clauses = ("from_", "where", "group", "order", "limit")
    return len(tree.expressions) == 1 and not any(tree.args.get(clause) for clause in clauses)
