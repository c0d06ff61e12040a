"""Macros in queries: a call becomes what the macro stands for, with the arguments in place.

Calls are found in the text's tokens, so that the rest of the text stays as it was written. A macro
stands before a built-in function of its name, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lazy import exp
from penstock.sql.duckdb.guards import whole_number
from penstock.sql.duckdb.text import named, readable
from penstock.sql.duckdb.translate import to_spark
from penstock.sql.identifiers import fold
from penstock.sql.macros import Book, Macro, MacroForm, Parameter, bare, bind, default_text, filled
from penstock.sql.query.edits import Edit, Mapped, edited
from penstock.sql.query.names import common_table
from penstock.sql.query.nesting import is_in_from
from penstock.sql.text import Unreadable, parse_query
from penstock.sql.tokens import NAME, WORD, SqlText, Token, closing, may_be_alias, split_at
from penstock.sql.trust import FUNCTIONS, harmless_expression, harmless_query

_DUCKDB, _SPARK = "duckdb", "spark"


@dataclass(frozen=True, slots=True)
class _Call:
    start: int
    end: int
    macro: Macro
    arguments: tuple[tuple[str | None, str], ...]  # name where given, text
    in_from: bool
    aliased: bool
    in_window: bool = False  # whether OVER or FILTER follows


def called(source: SqlText) -> set[str]:
    """The names, folded, of all functions that a text calls; none when it cannot be read."""
    if "(" not in source.text:
        return set()
    try:
        pairs = pairwise(source.tokens)
    except QueryFailed:
        return set()
    return {fold(name.value) for name, bracket in pairs if bracket.text == "(" and _is_name(name)}


def book_of(source: SqlText, find: Callable[[Sequence[str]], Sequence[Macro]], book: Book) -> Book:
    """``book`` with the macros that a text may call and those that they call.

    ``find`` gives the macros of some names, in any schema.
    """
    names, known = called(source), set[str]()
    while names - known:
        more = find(sorted(names - known))
        known |= names
        book = replace(book, macros=(*book.macros, *more))
        forms = [SqlText(form.sql, form.dialect) for macro in more for form in macro.forms]
        names = {name for form in forms for name in called(form)}
    return book


def expand(text: str | SqlText, book: Book, dialect: str = _SPARK) -> str:
    """The text of `expansion`."""
    return expansion(text, book, dialect).text


def expansion(text: str | SqlText, book: Book, dialect: str = _SPARK) -> Mapped:
    """``text`` without calls of the book's macros; lines stay lines.

    Raises QueryFailed for arguments that do not fit and for recursion, UnsupportedFeature where a
    body is not known to mean the same on Spark.
    """
    source = SqlText(text, dialect) if isinstance(text, str) else text
    calls = expanded_calls(source, book)
    return edited(source.text, (Edit(call.start, call.end, call.text) for call in calls))


@dataclass(frozen=True, slots=True)
class ExpandedCall:
    """``text`` stands for the call of ``macro`` at ``[start:end]``."""

    start: int
    end: int
    text: str
    macro: Macro


def expanded_calls(source: SqlText, book: Book) -> list[ExpandedCall]:
    """The outermost calls of the book's macros in a text, in its order.

    Raises what `expansion` does, with the start of the outermost call in ``data["call"]``.
    """
    if not book.macros:
        return []
    return [_expanded_call(call, source, book) for call in _calls(source, book)]


def _expanded_call(call: _Call, source: SqlText, book: Book) -> ExpandedCall:
    dialect, text = source.dialect, source.text
    try:
        arguments = [(name, expand(value, book, dialect)) for name, value in call.arguments]
        bound = bind(call.macro, arguments)
        with _inside(call.macro):
            body = _BODIES[dialect](call, bound, book)
    except (QueryFailed, UnsupportedFeature) as error:
        error.data = {**error.data, "call": call.start}
        raise
    breaks = "\n" * (text.count("\n", call.start, call.end) - body.count("\n"))
    return ExpandedCall(call.start, call.end, f"{_placed(call, body, dialect)}{breaks}", call.macro)


@contextmanager
def _inside(macro: Macro) -> Iterator[None]:
    """Errors of calls in the definition of a project's macro say in which they are."""
    try:
        yield
    except (QueryFailed, UnsupportedFeature) as error:
        if macro.where and "call" in error.data and " calls itself: " not in error.message:
            error.cause = f"{error.cause}, in {macro.described}"
        raise


def reached(source: SqlText, book: Book) -> tuple[Macro, ...]:
    """The macros that a text calls, and those that their definitions call. Raises QueryFailed."""
    found: dict[Macro, None] = {}
    waiting = [(source, book)]
    while waiting:
        text, scope = waiting.pop()
        for at in range(len(text.tokens) - 1):
            macro, _ = _macro_at(text.tokens, at, scope)
            if macro is not None and macro not in found:
                found[macro] = None
                inner = replace(scope, tiers=macro.tiers)
                waiting += [(SqlText(form.sql, form.dialect), inner) for form in macro.forms]
    return tuple(found)


def expansions(text: str, book: Book, *, expression: bool = False) -> tuple[Mapped, ...]:
    """The steps from a text of DuckDB's to the same without macros: the columns of a query that
    have no alias are named by the calls first.
    """
    if not book.macros:
        return ()
    if expression:
        return (expansion(text, book, _DUCKDB),)
    with_names = named(text, book.names())
    return with_names, expansion(with_names.text, book, _DUCKDB)


def _placed(call: _Call, body: str, dialect: str) -> str:
    if not call.in_from:
        return body if call.in_window else f"({body})"
    mark = '"' if dialect == _DUCKDB else "`"
    name = call.macro.name.replace(mark, mark * 2)
    return f"({body})" if call.aliased else f"({body}) AS {mark}{name}{mark}"


def _calls(source: SqlText, book: Book) -> list[_Call]:
    """The outermost calls, in the order of the text."""
    tokens = source.tokens
    found: list[_Call] = []
    at = 0
    while at + 1 < len(tokens):
        try:
            macro, first = _macro_at(tokens, at, book)
        except QueryFailed as error:
            error.data = {**error.data, "call": tokens[at].start}
            raise
        if macro is None:
            at += 1
            continue
        close = closing(tokens, at + 1)
        if close is None:
            raise QueryFailed(f"the bracket after {tokens[at].text} is not closed")
        start, end = tokens[first].start, tokens[close].end
        inside = tokens[at + 2 : close]
        arguments = tuple(_argument(source.text, part) for part in split_at(inside, ",") if inside)
        in_from = macro.kind == "table"
        aliased = close + 1 < len(tokens) and may_be_alias(tokens[close + 1])
        window = _is_window(tokens, close + 1)
        found.append(_Call(start, end, macro, arguments, in_from, aliased, window))
        at = close + 1
    return found


def _macro_at(tokens: Sequence[Token], at: int, book: Book) -> tuple[Macro | None, int]:
    """The macro that the name at ``at`` calls, and where the call begins: at its schema if any."""
    if tokens[at + 1].text != "(" or not _is_name(tokens[at]) or _is_named(tokens, at):
        return None, at
    schema, first = None, at
    if at >= 2 and tokens[at - 1].text == ".":
        schema, first = tokens[at - 2].value, at - 2
    found = book.find(schema, tokens[at].value)
    if found and first >= 2 and tokens[first - 1].text == ".":
        first -= 2
        if fold(tokens[first].value) not in book.lakes:
            raise QueryFailed(
                f"{tokens[first].text}.{schema}.{tokens[at].text} names a catalog, "
                f"{tokens[first].text!r}, which is not this lake",
                hint=f"write {schema}.{tokens[at].text}(...)",
            )
    if len(found) > 1 or (found and found[0].where):
        kind = "table" if is_in_from(tokens, first) else "scalar"
        fitting = [macro for macro in found if macro.kind == kind]
        if not fitting and found[0].where:
            _check_built_in(found[0], tokens[at])
            return None, first
        found = fitting or found
    return (found[0] if found else None), first


def _check_built_in(macro: Macro, called: Token) -> None:
    """Raise QueryFailed unless a built-in function of the macro's name may be meant: a macro that
    is a table stands before functions in a FROM, one that is an expression before the others.
    """
    if fold(called.value) not in FUNCTIONS | _TABLES:
        is_table = macro.kind == "table"
        raise QueryFailed(
            f"the macro {macro.described} is {'a table' if is_table else 'an expression'}",
            hint="call it in a FROM" if is_table else "make it AS TABLE SELECT ..., for a FROM",
        )


def _is_named(tokens: Sequence[Token], at: int) -> bool:
    """Return whether what stands there is named with its columns, or is a type:
    ``WITH f(a) AS (``.
    """
    if at and tokens[at - 1].upper in {"AS", "::", "WITH", "RECURSIVE", "INTO", "TABLE", "VIEW"}:
        return True
    close = closing(tokens, at + 1)
    after = [token.upper for token in tokens[close + 1 : close + 3]] if close is not None else []
    return after[:1] == ["AS"] and after[1:] in (["("], ["MATERIALIZED"], ["NOT"])


_TABLES = frozenset({"range", "generate_series", "unnest", "glob", "read_text", "read_blob"})


def _is_name(token: Token) -> bool:
    return token.kind in {NAME, WORD}


def _argument(text: str, tokens: Sequence[Token]) -> tuple[str | None, str]:
    if not tokens:
        raise QueryFailed("an argument of a macro is empty")
    name = None
    if len(tokens) > 2 and tokens[1].text in {":=", "=>"}:
        name, tokens = tokens[0].value, tokens[2:]
    return name, text[tokens[0].start : tokens[-1].end]


def _is_window(tokens: Sequence[Token], at: int) -> bool:
    return at < len(tokens) and tokens[at].upper in {"OVER", "FILTER"}


def _in_duckdb(call: _Call, bound: tuple[MacroForm, dict[str, str | Parameter]], book: Book) -> str:
    """The body in DuckDB's SQL, for a text that is."""
    form, values = bound
    if form.dialect != _DUCKDB:
        raise UnsupportedFeature(
            f"the macro {call.macro.described} is of the dialect {form.dialect}, "
            "what calls it of duckdb",
            hint="write it in DuckDB's SQL, which scripts of both dialects can call",
        )
    if call.macro.where:
        return _as_written(call.macro, form, values, book)
    parts = {name: _tree(default_text(v), _DUCKDB) for name, v in values.items()}
    return _body(call.macro, form, book, parts).sql(_DUCKDB)


def _in_spark(call: _Call, bound: tuple[MacroForm, dict[str, str | Parameter]], book: Book) -> str:
    """The body in Spark's SQL, the arguments' text put in as it was written."""
    form, values = bound
    if form.dialect == _SPARK:
        return _as_written(call.macro, form, values, book)
    markers: dict[str, str] = {}
    parts: dict[str, exp.Expr] = {}
    for at, (name, value) in enumerate(values.items()):
        given = isinstance(value, str)
        tree = _tree(default_text(value), _SPARK if given else _DUCKDB)
        if given and not _is_plain(tree):
            marker = f"__penstock_argument_{len(book.open)}_{at}__"
            markers[marker] = str(value)
            tree = exp.column(exp.to_identifier(marker, quoted=False))
        parts[name] = tree
    body = _body(call.macro, form, book, parts)
    for table in () if call.macro.where else body.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not table.db and common_table(table) is None:
            table.set("db", exp.to_identifier(book.path[0]))
    try:
        text = _harmless(call.macro, to_spark(body), book)
    except UnsupportedFeature as problem:
        raise UnsupportedFeature(
            f"the macro {call.macro.described}: {problem.message}",
            hint=problem.hint,
            data=problem.data,
        ) from None
    for marker, value in markers.items():
        text = text.replace(marker, f"({value})")
    return text


_BODIES = {_DUCKDB: _in_duckdb, _SPARK: _in_spark}


def _as_written(
    macro: Macro, form: MacroForm, values: Mapping[str, str | Parameter], book: Book
) -> str:
    """The body as it is written, in its own dialect. What it calls is looked for before the
    arguments are put in, which are the caller's.
    """
    sql = form.sql if macro.where else _harmless(macro, form.sql, book)
    types = {fold(parameter.name): parameter.type for parameter in form.parameters}
    markers: dict[str, str] = {}
    given: dict[str, str] = {}
    for at, (name, value) in enumerate(values.items()):
        given[name] = f"__penstock_argument_{len(book.open)}_{at}__"
        text, type_ = default_text(value), types.get(name) if macro.where else None
        markers[given[name]] = f"CAST({text} AS {type_})" if type_ else bare(text, form.dialect)
    text = expand(filled(sql, given, form.dialect), book.inside(macro), form.dialect)
    for marker, value in markers.items():
        text = text.replace(marker, value)
    return text


def _harmless(macro: Macro, text: str, book: Book) -> str:
    if macro.where:  # one of the project's own
        return text
    check = harmless_query if macro.kind == "table" else harmless_expression
    return check(text, f"the macro {macro.qualified_name}", lambda *name: bool(book.find(*name)))


def _body(macro: Macro, form: MacroForm, book: Book, parts: Mapping[str, exp.Expr]) -> exp.Expr:
    """The tree of a body with its own macros expanded and its parameters replaced."""
    inner = book.inside(macro)
    try:
        text = expand(readable(form.sql, inner.names()), inner, _DUCKDB)
        tree = parse_query(text, _DUCKDB)
    except Unreadable as error:
        raise UnsupportedFeature(f"the macro {macro.described} is not understood{error}") from None
    for function in tree.find_all(exp.Lambda):
        if any(fold(expression.name) in parts for expression in function.expressions):
            raise UnsupportedFeature(
                f"the macro {macro.described} calls a lambda's parameter like its own"
            )
    for column in list(tree.find_all(exp.Column)):
        part = parts.get(fold(column.name)) if not column.table else None
        if part is None:
            continue
        value: exp.Expr = (
            part.copy() if isinstance(part, exp.Literal | exp.Column) else exp.paren(part)
        )
        if isinstance(column.parent, exp.Bracket) and column.parent.this is not column:
            value = _index(part) or value
        if column is tree:
            tree = value
        else:
            column.replace(value)
    return tree


def _index(part: exp.Expr) -> exp.Expr | None:
    """sqlglot keeps indexes counted from 0, but leaves a parameter as it was written."""
    at = whole_number(part)
    return None if at is None else exp.Literal.number(at - 1)


def _is_plain(tree: exp.Expr) -> bool:
    """A literal, whose value a rule may want to see."""
    inner = tree.this if isinstance(tree, exp.Neg) else tree
    return isinstance(inner, exp.Literal | exp.Null | exp.Boolean)


def _tree(text: str, dialect: str) -> exp.Expr:
    try:
        return parse_query(text, dialect)
    except Unreadable as error:
        raise QueryFailed(f"the argument {text} of a macro is not understood{error}") from None
