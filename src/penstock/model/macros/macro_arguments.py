"""Arguments and results of macros in Python: the evaluator, texts of SQL as values, values as SQL.

A macro of the project gets the text of each argument as it is written. One whose first parameter
is the evaluator gets, as in SQLMesh, expressions of sqlglot's. A parameter with a type gets a value
of it where the argument is one (SQLMesh's docs, "Typed Macros").
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from penstock.lazy import exp
from penstock.model.macros.at_scope import Call, Made
from penstock.model.script.at_text import tokens_of, unpacked
from penstock.model.time.time_macros import TIMES
from penstock.sql.dialect import SPARK, backticked
from penstock.sql.identifiers import nearest
from penstock.sql.tokens import STRING

if TYPE_CHECKING:
    from penstock.model.macros.at_scope import Scope


_ARGUMENT = "penstock_argument"  # the function around an argument that is read
_LACKING: Mapping[str, str] = {
    "engine_adapter": "a macro cannot query tables: write the query into the SQL that it returns",
    "columns_to_types": "a macro does not know the columns of tables: list them",
    "resolve_table": "write the name of the table, which is the same everywhere",
    "resolve_tables": "write the names of the tables, which are the same everywhere",
    "snapshots": "a macro does not know the versions of models: take it out",
    "get_snapshot": "a macro does not know the versions of models: take it out",
    "this_env": "a macro does not know the environment: take it out, or read a variable",
    "schemas": "a macro does not know the environment: take it out, or read a variable",
    "views": "a macro does not know the environment: take it out, or read a variable",
}


class NotHere(AttributeError):
    """Something of SQLMesh's evaluator that Penstock lacks; ``hint`` is what to write."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"evaluator.{name} does not exist")
        self.hint = hint


class OfRun(LookupError):
    """A time of the run, which is known when the query runs and not before."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is a value of the run, which no macro has")
        self.hint = f'write evaluator.parse_one("@{name}"), or @{name} in the SQL that it returns'


class NoVariable(LookupError):
    """A name that neither the script nor ``[project.variables]`` has."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        super().__init__(f"there is no variable {name!r}")
        near = nearest(name, sorted(names))
        guess = f"did you mean {near!r}? " if near else ""
        self.hint = (
            f"{guess}write {name} = ... in [project.variables] of penstock.toml, or a default: "
            f'evaluator.var("{name}", 0)'
        )


_REQUIRED: Any = object()


class _Locals(dict[str, Any]):
    """Variables by name; those of a run are errors and not absent."""

    def __missing__(self, name: str) -> Any:
        if name in TIMES:
            raise OfRun(name)
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, default) if name not in TIMES else self[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) if name not in TIMES else bool(self[str(name)])


class MacroEvaluator:
    """Stand in for SQLMesh's evaluator: ``locals``, ``dialect``, ``var``, ``parse_one``, ..."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.dialect = scope.dialect
        self.default_catalog: str | None = None
        known = {**scope.macros.variables, **scope.given}
        defined = {name: text for name, text in scope.defined.items() if isinstance(text, str)}
        own = {name: self._value(text) for name, text in {**known, **defined}.items()}
        settings = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in scope.macros.settings.items()
        }
        self.locals: dict[str, Any] = _Locals({**settings, **own})

    def _value(self, text: str) -> Any:
        """A variable as SQLMesh's: of a text its content, of anything else the expression."""
        tokens = tokens_of(text, self.dialect)
        if len(tokens) == 1 and tokens[0].kind == STRING:
            return tokens[0].value
        return self.argument(self._scope.expanded(text))

    @property
    def runtime_stage(self) -> str:
        return str(self.locals.get("runtime_stage", "evaluating"))

    @property
    def gateway(self) -> str | None:
        """The lake of the model."""
        gateway = self.locals.get("gateway")
        return None if gateway is None else str(gateway)

    @property
    def this_model(self) -> str:
        """The name of the model's table, quoted."""
        return self._scope.variable("this_model")

    @property
    def this_model_fqn(self) -> str:
        return self.this_model

    def var(self, name: str, default: Any = _REQUIRED) -> Any:
        """The value of a variable of the script, or of the project, or the default.

        :raises NoVariable: there is neither
        """
        own = name.lower()
        if own in self.locals:
            return self.locals[own]
        if default is _REQUIRED:
            raise NoVariable(name, [*self.locals, *self._scope.macros.settings])
        return default

    def blueprint_var(self, name: str, default: Any = _REQUIRED) -> Any:
        return self.var(name, default)

    def parse_one(self, sql: str | exp.Expr, into: Any = None, **options: Any) -> exp.Expr:
        """The tree of one expression or statement, its macros expanded."""
        import sqlglot

        if not isinstance(sql, str):
            return sql
        text = _readable(self._scope.expanded(sql), self.dialect)
        tree: exp.Expr = sqlglot.parse_one(text, dialect=self.dialect, into=into, **options)
        return with_values(tree)

    def transform(self, expression: exp.Expr) -> exp.Expr:
        """The expression with the macros in it expanded."""
        return self.parse_one(expression.sql(self.dialect))

    def eval_expression(self, node: Any) -> Any:
        """The value of an expression of constants."""
        from penstock.model.macros import at_macros

        if not isinstance(node, exp.Expr):
            return node
        found = at_macros.value(self._scope.expanded(node.sql(self.dialect)), self.dialect)
        if isinstance(found, exp.Literal | exp.Boolean | exp.Null | exp.Neg):
            return found.to_py()
        return found

    def send(self, name: str, *arguments: Any) -> Any:
        """Return what another macro makes."""
        texts = [a if isinstance(a, str) else a.sql(self.dialect) for a in arguments]
        made = self._scope.call(name, texts)
        return self.argument(made) if isinstance(made, str) else [*map(self.argument, made)]

    def argument(self, text: str) -> exp.Expr:
        """An argument as it is written, as an expression."""
        return expression_of(text, self.dialect)

    def __getattr__(self, name: str) -> Any:
        if name in _LACKING:
            raise NotHere(name, _LACKING[name])
        raise AttributeError(f"the evaluator has no {name}")


def expression_of(text: str, dialect: str) -> exp.Expr:
    """The tree of an argument; ``f"{tree}"`` is SQL of the same meaning in the script's dialect.

    sqlglot writes a tree in a dialect of its own unless it is asked. Where that would mean
    something else, or where it reads nothing, the tree is one word: the text.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    def read(sql: str) -> exp.Expr | None:
        try:
            tree = sqlglot.parse_one(f"SELECT {_ARGUMENT}({sql})", dialect=dialect)
        except (SqlglotError, RecursionError):
            return None
        (call, *more) = tree.expressions or [tree]
        alone = isinstance(call, exp.Anonymous) and call.name == _ARGUMENT and not more
        argument: exp.Expr | None = call.expressions[0].pop() if alone else None
        return None if call.expressions else argument

    written = _readable(text.strip(), dialect)
    tree = read(written)
    if tree is None:
        return exp.Var(this=written)
    if str(tree) == tree.sql(dialect) and read(str(tree)) == tree:
        return tree
    if isinstance(tree, exp.Column) and not tree.table:
        return exp.column(exp.to_identifier(written, quoted=False))
    word = exp.Var(this=written)
    return word if isinstance(tree, exp.Func) else exp.Paren(this=word)


def with_values(tree: exp.Expr) -> exp.Expr:
    """A tree whose ``$name`` is written so in every dialect: Spark's of sqlglot has ``${name}``."""

    def written(node: exp.Expr) -> exp.Expr:
        return exp.Var(this=f"${node.name}") if isinstance(node, exp.Parameter) else node

    return tree.transform(written)


def _readable(text: str, dialect: str) -> str:
    """The text as sqlglot's reader of the dialect has it: names of Spark's in backticks."""
    return backticked(text) if dialect == SPARK else text


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
    if base is not typing.Literal and base not in _PLAIN:
        raise _Other
    return _one_of(value, inner) if base is typing.Literal else _PLAIN[base](value)


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
