"""Arguments and results of macros in Python: texts of SQL as values, and values as SQL.

A macro of the project gets the text of each argument as it is written. One whose first parameter
is the evaluator gets, as in SQLMesh, expressions of sqlglot's. A parameter with a type gets a value
of it where the argument is one (SQLMesh's docs, "Typed Macros").
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from penstock.lazy import exp
from penstock.model.macros.at_scope import Call, Made
from penstock.model.macros.macro_evaluator import MacroEvaluator, expression_of, with_values
from penstock.model.script.at_text import unpacked

EVALUATED = "__penstock_gets_evaluator__"  # marks functions of SQLMesh's decorator
_FIRST = frozenset({"evaluator", "context", "_"})
_NAMES: Mapping[str, object] = {"t": typing, "typing": typing, "MacroEvaluator": MacroEvaluator}


def call_with(function: Callable[..., Any], call: Call) -> Any:
    """Return what a function returns for a call in a script. Raises what it raises."""
    hints = _hints(function)
    signature = inspect.signature(function)
    if gets_evaluator(function, signature, hints):
        evaluator = MacroEvaluator(call.scope)
        positional = (evaluator, *map(evaluator.argument, call.plain))
        named = {name: evaluator.argument(text) for name, text in call.named.items()}
        bound = signature.bind(*positional, **named)
        convert: Callable[[Any, Any, str], Any] = _converted
    else:
        bound = signature.bind(*call.plain, **call.named)
        convert = _of_text
    for name, value in bound.arguments.items():
        hint, kind = hints.get(name), signature.parameters[name].kind
        if hint is None or isinstance(value, MacroEvaluator):
            continue
        if kind is inspect.Parameter.VAR_POSITIONAL:
            made: Any = tuple(convert(each, hint, call.scope.dialect) for each in value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            made = {key: convert(v, hint, call.scope.dialect) for key, v in value.items()}
        else:
            made = convert(value, hint, call.scope.dialect)
        bound.arguments[name] = made
    bound.apply_defaults()
    return function(*bound.args, **bound.kwargs)


def gets_evaluator(
    function: Callable[..., Any], signature: inspect.Signature, hints: Mapping[str, Any]
) -> bool:
    """Return whether the first parameter is the evaluator: by the decorator,
    its name or its type.
    """
    if getattr(function, EVALUATED, False):
        return True
    first = next(iter(signature.parameters.values()), None)
    if first is None or first.kind is inspect.Parameter.VAR_POSITIONAL:
        return False
    said = hints.get(first.name, first.annotation)
    return first.name in _FIRST or said is MacroEvaluator or said == "MacroEvaluator"


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters; none where one of them is not known."""
    try:
        return typing.get_type_hints(function, localns={**_NAMES, "exp": exp})
    except (NameError, TypeError, AttributeError):
        return {}


def _of_text(text: str, hint: Any, dialect: str) -> Any:
    """The text of an argument of a macro without evaluator: texts of SQL stay as written."""
    if _is_text(hint):
        return text
    base, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if base in (list, tuple, Sequence) and (not inner or _is_text(inner[0])):
        items = unpacked(text.strip(), dialect)
        return items if base is not tuple else tuple(items)
    return _converted(expression_of(text, dialect), hint, dialect)


def _is_text(hint: Any) -> bool:
    if hint is str or hint is Any or hint is object or _is_sql(hint):
        return True
    return _is_union(hint) and any(map(_is_text, typing.get_args(hint)))


def _is_sql(hint: Any) -> bool:
    """Return whether a type is SQLMesh's ``SQL``, its own or that of the stand-in."""
    return getattr(hint, "__name__", "") == "SQL" and getattr(hint, "__supertype__", None) is str


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


class _Other(Exception):
    """An argument is not of the type that the parameter has."""


def _converted(value: Any, hint: Any, dialect: str) -> Any:
    """An expression as a value of the type; as it is where it is none, as in SQLMesh."""
    try:
        return _as(value, hint, dialect)
    except _Other:
        return value


def _as(value: Any, hint: Any, dialect: str) -> Any:
    if hint is Any or hint is None or not isinstance(value, exp.Expr):
        return value
    if _is_union(hint):
        return _first_of(value, typing.get_args(hint), dialect)
    if _is_sql(hint):
        return value.sql(dialect)
    base, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if base in (list, tuple, Sequence):
        return _list_as(value, base, inner, dialect)
    if isinstance(base, type) and issubclass(base, exp.Expr):
        return _expression_as(value, base, dialect)
    return _one_of(value, inner) if base is typing.Literal else _PLAIN.get(base, _no)(value)


def _no(_: Any) -> Any:
    raise _Other


def _first_of(value: Any, hints: Sequence[Any], dialect: str) -> Any:
    for hint in hints:
        try:
            is_null = hint is type(None) and isinstance(value, exp.Null)
            return _as(value, None if is_null else hint, dialect)
        except _Other:
            continue
    raise _Other


def _one_of(value: Any, allowed: Sequence[Any]) -> Any:
    said = value.this if hasattr(value, "this") else None
    for each in allowed:
        if isinstance(each, bool) == isinstance(said, bool) and str(each) == str(said):
            return each
    raise _Other


def _list_as(value: Any, base: Any, inner: Sequence[Any], dialect: str) -> Any:
    if isinstance(value, exp.Paren):
        items = [value.this]
    elif isinstance(value, exp.Array | exp.Tuple):
        items = value.expressions
    else:
        raise _Other
    if base is not tuple:
        return [_converted(item, inner[0], dialect) for item in items] if inner else items
    if not inner:
        return tuple(items)
    hints = [inner[0]] * len(items) if inner[-1] is ... else inner
    if len(hints) != len(items):
        raise _Other
    return tuple(_converted(item, hint, dialect) for item, hint in zip(items, hints, strict=True))


def _expression_as(value: Any, wanted: Any, dialect: str) -> Any:
    """An expression of the class; a text is read as one, and a column as the table of its name."""
    from sqlglot import Parser, exp, parse_one
    from sqlglot.errors import SqlglotError

    if isinstance(value, wanted):
        return value
    text = value.this if isinstance(value, exp.Literal) else value.sql(dialect)
    into = wanted if wanted in Parser.EXPRESSION_PARSERS else None
    if into is None and not isinstance(value, exp.Literal):
        raise _Other
    try:
        found = parse_one(text, into=into, dialect=dialect)
    except (SqlglotError, ValueError):
        raise _Other from None
    if not isinstance(found, wanted):
        raise _Other
    return found


def _number(of: Callable[[str], Any]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        negative = isinstance(value, exp.Neg)
        literal = value.this if negative else value
        if not isinstance(literal, exp.Literal):
            raise _Other
        try:
            number = of(literal.this)
        except (ValueError, ArithmeticError):
            raise _Other from None
        return -number if negative else number

    return convert


def _string(value: Any) -> str:
    if isinstance(value, exp.Literal):
        return str(value.this)
    if isinstance(value, exp.Column) and not value.table:
        name = str(value.name)  # of one in quotes these are a part, as it is a word of its own
        quoted = name[:1] == name[-1:] == "`"
        return name[1:-1].replace("``", "`") if quoted else name
    raise _Other


def _boolean(value: Any) -> bool:
    if not isinstance(value, exp.Boolean):
        raise _Other
    return bool(value.this)


def _of_iso(of: Callable[[str], Any]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        try:
            return of(_string(value))
        except ValueError:
            raise _Other from None

    return convert


_PLAIN: Mapping[Any, Callable[[Any], Any]] = {
    int: _number(int),
    float: _number(float),
    Decimal: _number(Decimal),
    str: _string,
    bool: _boolean,
    datetime: _of_iso(datetime.fromisoformat),
    date: _of_iso(date.fromisoformat),
}


def made_of(result: object, dialect: str) -> Made:
    """The SQL of what a macro returned. Raises TypeError for what has none."""
    if isinstance(result, list | tuple):
        return [_sql_of(each, dialect) for each in result if each is not None]
    return _sql_of(result, dialect)


def _sql_of(value: object, dialect: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, exp.Expr):
        return str(with_values(value).sql(dialect))
    try:
        return str(exp.convert(value).sql(dialect))
    except ValueError:
        said = type(value).__name__
        raise TypeError(
            f"it returned {said}, and a macro returns SQL, a value, an expression of sqlglot's, "
            "or a list of these"
        ) from None
