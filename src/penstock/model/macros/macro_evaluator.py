"""The evaluator that a macro in Python gets as its first parameter, as SQLMesh's has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.lazy import exp
from penstock.model.script.at_text import tokens_of
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
        from penstock.model.macros import at_library

        if not isinstance(node, exp.Expr):
            return node
        found = at_library.value(self._scope.expanded(node.sql(self.dialect)), self.dialect)
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
