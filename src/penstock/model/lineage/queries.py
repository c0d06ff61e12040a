"""A query's tree resolved once into the relation that it makes, with all of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from penstock.lazy import exp
from penstock.model.lineage.expressions import value_of
from penstock.model.lineage.relation import NOTHING, Column, Doubt, Relation, Rest, Value, joined
from penstock.model.lineage.scope import Scope
from penstock.model.lineage.sources import add_from, add_source, function_name
from penstock.model.lineage.values import FILTER, GROUP
from penstock.sql.dialect import DUCKDB, SPARK
from penstock.sql.duckdb.text import cast_name
from penstock.sql.identifiers import fold

_ROUNDS = 50  # of a recursive query, whose inputs can only grow
_SETS = (exp.Union, exp.Except, exp.Intersect)


def relation_of(
    tree: exp.Expr, visible: Mapping[str, Relation], dialect: str
) -> tuple[Relation, tuple[Doubt, ...]]:
    """Return what a query makes of the relations that it may name, by folded name, and the columns
    that it names and nothing returns.
    """
    scope = Scope(visible, _query, dialect)
    return _query(tree, scope), tuple(scope.lacks)


def _query(tree: exp.Expr, around: Scope) -> Relation:
    rule = _RULES.get(type(tree))
    if rule is None:
        return Relation(missing=Doubt(f"{tree.key.upper()} is not a query that is understood"))
    visible = _with(tree, around)
    return rule(tree, around if visible is around.visible else around.seeing(visible))


def _with(tree: exp.Expr, around: Scope) -> Mapping[str, Relation]:
    with_ = tree.args.get("with_")
    if with_ is None:
        return around.visible
    visible = dict(around.visible)
    for cte in with_.expressions:
        name, names = fold(cte.alias), cte.alias_column_names
        if with_.args.get("recursive") and isinstance(cte.this, _SETS):
            visible[name] = _recursive(cte.this, name, names, around.seeing(visible))
        else:
            visible[name] = _query(cte.this, around.seeing(visible)).renamed(names)
    return visible


def _recursive(tree: exp.Expr, name: str, names: Sequence[str], around: Scope) -> Relation:
    """The first branch, then all branches with what was found, until nothing more is."""
    branches = _branches(tree)
    relation = _query(branches[0][1], around).renamed(names)
    for _ in range(_ROUNDS):
        visible = {**around.visible, name: relation}
        again = _query(tree, around.seeing(visible)).renamed(names)
        if again == relation:
            return relation
        relation = again
    doubt = Doubt(f"the recursion of {name} has too many steps to follow")
    return replace(relation, rows=Value(relation.rows.inputs, (*relation.rows.doubts, doubt)))


def _select(tree: exp.Expr, around: Scope) -> Relation:
    scope = around.inside()
    rows = [add_from(tree, scope)]
    scope.windows = {fold(window.name): window for window in tree.args.get("windows") or ()}
    made = _projections(tree, scope)
    columns, missing = made.columns, made.missing
    for clause in ("where", "having", "qualify"):
        node = tree.args.get(clause)
        rows.append(value_of(None if node is None else node.this, scope, FILTER))
    rows += _grouped(tree, columns, scope)
    rows += _limited(tree, columns, scope)
    rows.append(_distinct(tree, columns, missing, scope))
    return replace(made, rows=joined(rows), counted=scope.counted())


def _projections(tree: exp.Expr, scope: Scope) -> Relation:
    columns: list[Column] = []
    missing: Doubt | None = None
    rest: list[Rest] = []
    unsure = False
    for node in tree.expressions:
        made = _projection(node, scope)
        columns += made.columns
        missing = missing or made.missing
        rest += made.rest
        unsure |= made.unsure
        if isinstance(node, exp.Alias) and made.columns:
            scope.aliases.setdefault(fold(node.alias), made.columns[0].value)
    return Relation(tuple(columns), missing=missing, rest=tuple(rest), unsure=unsure)


def _projection(node: exp.Expr, scope: Scope) -> Relation:
    if isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    ):
        return _star(node, scope)
    if isinstance(node, exp.Aliases):
        value = value_of(node.this, scope)
        return Relation(tuple(Column(each.name, value) for each in node.expressions))
    if node.find(exp.Columns) is not None:
        return Relation(missing=Doubt("COLUMNS(...) names columns by a pattern"))
    name = function_name(node)
    unnamed = isinstance(node, exp.Inline | exp.Posexplode | exp.Stack)
    if unnamed or fold(name) in {"json_tuple", "inline_outer"}:
        doubt = Doubt(f"the columns of {name}(...) have no names in the query")
        return Relation(missing=doubt, every=value_of(node, scope))
    return Relation((Column(_name(node, scope.dialect), value_of(node, scope)),))


def _name(node: exp.Expr, dialect: str) -> str:
    """Return the name of a column; empty where it is not certain."""
    if isinstance(node, exp.Alias | exp.Column):
        return str(node.alias_or_name)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column) and dialect == SPARK:
        return str(node.this.name)  # Spark names a cast as its column
    if isinstance(node, exp.Cast) and dialect == DUCKDB:
        return cast_name(node) or ""
    return str(node.expression.name) if isinstance(node, exp.Dot) else ""


def _star(node: exp.Expr, scope: Scope) -> Relation:
    """``*`` or ``t.*`` with what it leaves out, replaces and renames."""
    is_own = isinstance(node, exp.Star)
    table = None if is_own else node.args.get("table")
    star = scope.star(table.name if table is not None else None)
    options = (node if is_own else node.this).args
    without = frozenset(fold(each.name) for each in options.get("except_") or ())
    values = {fold(each.alias): value_of(each.this, scope) for each in options.get("replace") or ()}
    names = {fold(each.this.name): each.alias for each in options.get("rename") or ()}
    columns = [
        replace(c, name=names.get(fold(c.name), c.name))
        if fold(c.name) not in values
        else Column(names.get(fold(c.name), c.name), values[fold(c.name)])
        for c in star.columns
        if fold(c.name) not in without
    ]
    missing = star.missing
    if missing is not None:
        start = None if table is None else table.meta.get("start")
        known_as_star = "cannot be expanded" in missing.reason
        reason = missing.reason if known_as_star else f"a star cannot be expanded: {missing.reason}"
        missing = Doubt(reason, missing.offset if start is None else int(start))
    gone = without | frozenset(values) | frozenset(names)
    rest = tuple(Rest(each.relation, each.without | gone) for each in star.rest)
    known = {fold(column.name) for column in star.columns}
    columns += [Column(name, v) for name, v in values.items() if missing and name not in known]
    return Relation(tuple(columns), missing=missing, rest=rest, unsure=star.unsure)


def _key(node: exp.Expr, columns: Sequence[Column], scope: Scope, kind: str) -> Value:
    """A key of GROUP BY or ORDER BY: an expression, or the number of a column."""
    inner = node.this if isinstance(node, exp.Ordered | exp.Paren) else node
    if isinstance(inner, exp.Literal) and not inner.is_string:
        at = int(inner.name) - 1 if inner.name.isdigit() else -1
        return columns[at].value.used(kind) if 0 <= at < len(columns) else Value()
    return value_of(inner, scope, kind)


def _grouped(tree: exp.Expr, columns: Sequence[Column], scope: Scope) -> list[Value]:
    group = tree.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        keys = [node for node in tree.expressions if node.find(exp.AggFunc) is None]
        return [value_of([node.unalias() for node in keys], scope, GROUP)]
    others = [node for name, node in group.args.items() if name != "expressions"]
    keys = [each for node in others if isinstance(node, list) for each in node]
    return [_key(node, columns, scope, GROUP) for node in (*group.expressions, *keys)]


def _limited(tree: exp.Expr, columns: Sequence[Column], scope: Scope) -> list[Value]:
    """ORDER BY decides which rows there are only where not all of them are taken."""
    distinct = tree.args.get("distinct")  # a flag of set operations
    chosen = isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None
    order = tree.args.get("order")
    limits = any(tree.args.get(name) is not None for name in ("limit", "offset"))
    if order is None or not (limits or chosen):
        return []
    scope = scope.with_aliases_first()
    if any(fold(each.this.name) == "all" for each in order.expressions):
        return [joined(column.value for column in columns).used(FILTER)]
    return [_key(each, columns, scope, FILTER) for each in order.expressions]


def _distinct(
    tree: exp.Expr, columns: Sequence[Column], missing: Doubt | None, scope: Scope
) -> Value:
    distinct = tree.args.get("distinct")
    if distinct is None:
        return Value()
    on = distinct.args.get("on")
    if on is not None:
        return value_of(on, scope.with_aliases_first(), GROUP)
    value = joined(column.value for column in columns).used(GROUP)
    return value if missing is None else Value(value.inputs, (*value.doubts, missing))


def _branches(tree: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """The branches of set operations, each with the operation before it, from the left."""
    found: list[tuple[exp.Expr, exp.Expr]] = []
    node = tree
    while isinstance(node, _SETS) and (node is tree or node.args.get("with_") is None):
        found.append((node, node.expression))
        node = node.this
    first = (tree, node)
    return [first, *reversed(found)]


def _set(tree: exp.Expr, around: Scope) -> Relation:
    (_, first), *others = _branches(tree)
    relation = _query(first, around)
    for operation, branch in others:
        relation = _combined(operation, relation, _query(branch, around))
    return _ordered(tree, relation, around)


def _combined(operation: exp.Expr, left: Relation, right: Relation) -> Relation:
    combine = _by_name if operation.args.get("by_name") else _by_position
    columns, missing = combine(left, right, isinstance(operation, exp.Union))
    rows = [left.rows, right.rows]
    if not isinstance(operation, exp.Union):
        both = (*left.columns, *right.columns)
        rows.append(joined(column.value for column in both).used(FILTER))
    elif operation.args.get("distinct"):
        rows.append(joined(column.value for column in columns).used(GROUP))
    counted = left.counted | (right.counted if isinstance(operation, exp.Union) else NOTHING)
    unsure = left.unsure or right.unsure
    return Relation(columns, joined(rows), missing, counted=counted, unsure=unsure)


def _by_position(
    left: Relation, right: Relation, adds: bool
) -> tuple[tuple[Column, ...], Doubt | None]:
    if left.missing is not None:
        reason = f"which columns a set operation puts together is not known: {left.missing.reason}"
        return (), Doubt(reason, left.missing.offset)
    if not adds:  # the values are those of the left side
        return left.columns, None
    doubts: tuple[Doubt, ...] = () if right.missing is None else (right.missing,)
    if right.missing is None and len(left.columns) != len(right.columns):
        counts = f"{len(left.columns)} and {len(right.columns)}"
        doubts = (Doubt(f"the branches of a set operation have {counts} columns"),)
    if doubts:
        return tuple(
            Column(c.name, Value(c.value.inputs, (*c.value.doubts, *doubts))) for c in left.columns
        ), None
    pairs = zip(left.columns, right.columns, strict=True)
    return tuple(Column(c.name, joined([c.value, other.value])) for c, other in pairs), None


def _by_name(
    left: Relation, right: Relation, adds: bool
) -> tuple[tuple[Column, ...], Doubt | None]:
    missing = left.missing or right.missing
    columns: list[Column] = []
    for column in left.columns:
        other = right.find(column.name) if adds else None
        values = [column.value, *([other.value] if other is not None else [])]
        columns.append(Column(column.name, joined(values)))
    for column in right.columns:
        if fold(column.name) not in left.by_name and adds:
            own = left.find(column.name)
            values = [column.value, *([own.value] if own is not None else [])]
            columns.append(Column(column.name, joined(values)))
    return tuple(columns), missing


def _subquery(tree: exp.Expr, around: Scope) -> Relation:
    """A query in brackets, perhaps with an ORDER BY and LIMIT of its own."""
    return _ordered(tree, _query(tree.this, around), around)


def _ordered(tree: exp.Expr, relation: Relation, around: Scope) -> Relation:
    """Add what ORDER BY and LIMIT of a whole query decide."""
    inside = around.inside()
    inside.aliases = {fold(column.name): column.value for column in relation.columns}
    rows = _limited(tree, relation.columns, inside)
    return replace(relation, rows=joined([relation.rows, *rows])) if rows else relation


def _values(tree: exp.Expr, around: Scope) -> Relation:
    scope = around.inside()
    add_source(tree, scope)
    return scope.sources[0].relation


def _table(tree: exp.Expr, around: Scope) -> Relation:
    """A join in brackets of its own."""
    scope = around.inside()
    rows = add_source(tree, scope)
    return replace(scope.star(), rows=rows)


_RULES: Mapping[type[exp.Expr], Callable[[exp.Expr, Scope], Relation]] = {
    exp.Select: _select,
    exp.Union: _set,
    exp.Except: _set,
    exp.Intersect: _set,
    exp.Subquery: _subquery,
    exp.Paren: _subquery,
    exp.Table: _table,
    exp.Values: _values,
}
