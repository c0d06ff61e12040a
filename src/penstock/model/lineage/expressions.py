"""Find what an expression derives from: a walk over its tree, with a rule for each kind of node.

The walk has its own stack, so that conditions of a thousand terms are no deeper than others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from penstock.lazy import exp
from penstock.model.lineage.relation import Dependency, Doubt, Value, within
from penstock.model.lineage.scope import Scope, whole
from penstock.model.lineage.values import CONDITION, VALUE, WINDOW
from penstock.sql.dialect import SPARK
from penstock.sql.duckdb.functions import NAMED
from penstock.sql.identifiers import fold
from penstock.sql.trust import FUNCTIONS


@dataclass(slots=True)
class _Walk:
    waiting: list[tuple[exp.Expr, str, Scope]]
    inputs: set[Dependency] = field(default_factory=set)
    doubts: dict[Doubt, None] = field(default_factory=dict)

    def push(self, node: object, kind: str, scope: Scope) -> None:
        """Walk a node, or each of several."""
        if isinstance(node, list):
            self.waiting += [(each, kind, scope) for each in node if isinstance(each, exp.Expr)]
        elif isinstance(node, exp.Expr):
            self.waiting.append((node, kind, scope))

    def add(self, value: Value, kind: str) -> None:
        self.inputs |= value.used(kind).inputs
        self.doubts |= dict.fromkeys(value.doubts)


Rule = Callable[[exp.Expr, str, Scope, _Walk], None]


def value_of(node: object, scope: Scope, kind: str = VALUE) -> Value:
    """Return what ``node`` (an expression, a list of them, or nothing) derives from."""
    walk = _Walk([])
    walk.push(node, kind, scope)
    while walk.waiting:
        at, use, names = walk.waiting.pop()
        rule = _RULES.get(type(at))
        if rule is not None:
            rule(at, use, names, walk)
        else:
            walk.waiting += [(child, use, names) for child in at.iter_expressions()]
    return Value(frozenset(walk.inputs), tuple(walk.doubts))


def parts_of(column: exp.Expr) -> tuple[list[str], int | None]:
    """The names that a column is written with, and where they stand."""
    parts = [column.args[key] for key in ("catalog", "db", "table", "this") if column.args.get(key)]
    start = parts[0].meta.get("start")
    return [part.name for part in parts], None if start is None else int(start)


def _column(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    if isinstance(node.this, exp.Star):
        table = node.args.get("table")
        walk.add(whole(scope.star(table.name if table else None)), kind)
    else:
        walk.add(scope.column(*parts_of(node)), kind)


def _star(_node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    walk.add(whole(scope.star()), kind)


def _count(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    """``count(*)`` and ``count(1)`` derive from rows, not from a column."""
    table = node.this.args.get("table") if isinstance(node.this, exp.Column) else None
    if isinstance(node.this, exp.Star | exp.Literal):
        walk.add(Value(scope.counted()), kind)
    elif table is not None and isinstance(node.this.this, exp.Star):
        source = scope.source(table.name)
        walk.add(Value(source.relation.counted) if source else Value(), kind)
    else:
        walk.push(list(node.iter_expressions()), kind, scope)


def _parts(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    """Walk the parts of a node that a value derives from, each as what it acts."""
    for name, use in _USES[type(node)].items():
        walk.push(node.args.get(name), within(kind, use), scope)


def _window(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    walk.push(node.this, kind, scope)
    for window in _definitions(node, scope):
        walk.push(window.args.get("partition_by"), within(kind, WINDOW), scope)
        walk.push(window.args.get("order"), within(kind, WINDOW), scope)


def _definitions(node: exp.Expr, scope: Scope) -> Iterator[exp.Expr]:
    """The window itself, and those that it names: ``OVER w``, ``OVER (w ORDER BY a)``."""
    seen: set[str] = set()
    window: exp.Expr | None = node
    while window is not None:
        yield window
        named = window.args.get("alias")
        name = "" if named is None else fold(named.name)
        window = None if name in seen else scope.windows.get(name)
        seen.add(name)


def _order(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    """``array_agg(a ORDER BY b)``; the keys alone where nothing is ordered."""
    walk.push(node.this, kind, scope)
    keys = within(kind, WINDOW) if node.this is not None else kind
    walk.push(node.expressions, keys, scope)


def _lambda(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    walk.push(node.this, kind, scope.binding([each.name for each in node.expressions]))


def _comprehension(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    names = [node.args[key].name for key in ("expression", "position") if node.args.get(key)]
    inside = scope.binding(names)
    walk.push(node.this, kind, inside)
    walk.push(node.args.get("iterator"), kind, scope)
    walk.push(node.args.get("condition"), within(kind, CONDITION), inside)


def _query(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    relation = scope.queries(node, scope)
    for column in relation.columns:
        walk.add(column.value, kind)
    walk.add(relation.rows, kind)
    if relation.missing is not None:
        walk.doubts[relation.missing] = None


def _exists(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    """Note that which rows there are counts, and not what they hold."""
    if not isinstance(node.this, exp.Query):  # the function of lists
        walk.push(list(node.iter_expressions()), kind, scope)
        return
    relation = scope.queries(node.this, scope)
    rows = relation.rows
    walk.add(rows if rows.inputs or rows.doubts else Value(relation.counted), kind)


def _columns(_node: exp.Expr, _kind: str, _scope: Scope, walk: _Walk) -> None:
    walk.doubts[Doubt("COLUMNS(...) names columns by a pattern")] = None


def _called(node: exp.Expr, kind: str, scope: Scope, walk: _Walk) -> None:
    """A function that sqlglot has no name for: those of the dialect read their arguments alone."""
    walk.push(list(node.iter_expressions()), kind, scope)
    name = fold(node.name)
    if name not in (FUNCTIONS if scope.dialect == SPARK else FUNCTIONS | NAMED.keys()):
        walk.doubts[Doubt(f"{name}(...) may be a macro that reads more")] = None


def _nothing(_node: exp.Expr, _kind: str, _scope: Scope, _walk: _Walk) -> None:
    """Names of types, units and parameters."""


_IF: Mapping[str, str] = {"this": CONDITION, "true": VALUE, "false": VALUE}
#: nodes of which not all parts act alike, or act at all: name of a part -> how it acts
_USES: Mapping[type[exp.Expr], Mapping[str, str]] = {
    exp.Case: {"this": CONDITION, "default": VALUE, "ifs": VALUE},
    exp.If: _IF,
    exp.Nvl2: _IF,
    exp.Filter: {"this": VALUE, "expression": CONDITION},
    exp.PropertyEQ: {"expression": VALUE},  # name := value
    exp.Kwarg: {"expression": VALUE},
    exp.Alias: {"this": VALUE},
    exp.Aliases: {"this": VALUE},
}

_RULES: Mapping[type[exp.Expr], Rule] = {
    **dict.fromkeys(_USES, _parts),
    exp.Column: _column,
    exp.Star: _star,
    exp.Count: _count,
    exp.Window: _window,
    exp.Order: _order,
    exp.Lambda: _lambda,
    exp.Comprehension: _comprehension,
    exp.Select: _query,
    exp.Union: _query,
    exp.Except: _query,
    exp.Intersect: _query,
    exp.Subquery: _query,
    exp.Exists: _exists,
    exp.Columns: _columns,
    exp.Anonymous: _called,
    exp.AnonymousAggFunc: _called,
    **dict.fromkeys((exp.DataType, exp.Identifier, exp.Var, exp.Placeholder), _nothing),
    **dict.fromkeys((exp.Parameter, exp.Literal), _nothing),
}
