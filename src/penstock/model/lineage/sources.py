"""Sources of a SELECT by its FROM: tables, subqueries, functions, VALUES, pivots, joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from penstock.lazy import exp
from penstock.model.lineage.expressions import value_of
from penstock.model.lineage.relation import NOTHING, Column, Doubt, Relation, Rest, Value, joined
from penstock.model.lineage.scope import Scope, Source
from penstock.model.lineage.values import CONDITION, GROUP, JOIN
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import fold

#: functions of a FROM whose rows come from their arguments alone
_GENERATORS: tuple[type[exp.Expr], ...] = (
    *(exp.Explode, exp.GenerateSeries, exp.Inline, exp.Posexplode, exp.Stack, exp.Unnest),
)
_NAMED_GENERATORS = frozenset(
    {"flatten", "generate_series", "inline_outer", "json_tuple", "range", "variant_explode"}
)


def add_from(select: exp.Expr, scope: Scope) -> Value:
    """Fill the scope of a SELECT; what decides which rows there are is returned."""
    start = select.args.get("from_")
    rows = [] if start is None else [add_source(start.this, scope)]
    rows += [_lateral_view(lateral, scope) for lateral in select.args.get("laterals") or ()]
    rows += [_join(join, scope) for join in select.args.get("joins") or ()]
    return joined(rows)


def add_source(node: exp.Expr, scope: Scope) -> Value:
    """Add one table with the joins that belong to it."""
    if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query | exp.Values):
        rows = _in_brackets(node, scope)
    else:
        reader = _RELATIONS.get(type(node))
        doubt = Doubt(f"{node.key.upper()} in a FROM is not understood")
        relation = Relation(missing=doubt) if reader is None else reader(node, scope)
        relation = _pivoted(relation, node, scope)
        scope.sources.append(Source(_alias(node), relation))
        rows = relation.rows
    following = [_join(join, scope) for join in node.args.get("joins") or ()]
    laterals = [_lateral_view(each, scope) for each in node.args.get("laterals") or ()]
    return joined([rows, *laterals, *following])


def _in_brackets(node: exp.Subquery, scope: Scope) -> Value:
    """``(t JOIN u ON ...)``: with an alias only that names its columns."""
    if not node.alias:
        return add_source(node.this, scope)
    inside = scope.inside()
    rows = add_source(node.this, inside)
    relation = replace(inside.star(), rows=rows)
    scope.sources.append(Source(node.alias, relation.renamed(node.alias_column_names)))
    return rows


def _alias(node: exp.Expr) -> str:
    if isinstance(node, exp.Lateral):
        named = node.args.get("alias")
        return named.name if named is not None else ""
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
        return node.alias or function_name(node.this)
    return str(node.alias_or_name)


def _table(node: exp.Expr, scope: Scope) -> Relation:
    if isinstance(node.this, exp.Func):
        return _function(node.this, node, scope)
    relation = None if node.args.get("db") else scope.visible.get(fold(node.name))
    if relation is None:
        return Relation(missing=Doubt(f"the columns of {node.name} are not known"))
    return relation.renamed(node.alias_column_names)


def _subquery(node: exp.Expr, scope: Scope) -> Relation:
    # In DuckDB a subquery may name the tables before it without LATERAL.
    around = scope if scope.dialect != SPARK or scope.outer is None else scope.outer
    return scope.queries(node.this, around.seeing(scope.visible)).renamed(node.alias_column_names)


def _values(node: exp.Expr, scope: Scope) -> Relation:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    first = 1 if scope.dialect == SPARK else 0
    columns = [
        Column(f"col{number + first}", joined(value_of(each, scope) for each in values))
        for number, values in enumerate(zip(*rows, strict=False))
    ]
    return Relation(tuple(columns)).renamed(node.alias_column_names)


def _lateral(node: exp.Expr, scope: Scope) -> Relation:
    if isinstance(node.this, exp.Subquery):
        return scope.queries(node.this.this, scope).renamed(node.alias_column_names)
    return _function(node.this, node, scope)


def _lateral_view(node: exp.Expr, scope: Scope) -> Value:
    relation = _function(node.this, node, scope)
    scope.sources.append(Source(_alias(node), relation))
    return relation.rows


def _unnest(node: exp.Expr, scope: Scope) -> Relation:
    return _generated(value_of(node.expressions, scope), node)


def _function(call: exp.Expr, node: exp.Expr, scope: Scope) -> Relation:
    """The rows of a function in a FROM."""
    if isinstance(call, _GENERATORS) or fold(function_name(call)) in _NAMED_GENERATORS:
        return _generated(value_of(list(call.iter_expressions()), scope), node)
    arguments = value_of(list(call.iter_expressions()), scope)
    reason = f"what {function_name(call)}(...) reads is not known"
    doubts = (*arguments.doubts, Doubt(reason))
    names = node.alias_column_names
    columns = tuple(Column(name, Value(arguments.inputs, doubts)) for name in names)
    missing = None if names else Doubt(reason)
    return Relation(columns, Value(NOTHING, (Doubt(reason),)), missing)


def _generated(value: Value, node: exp.Expr) -> Relation:
    """Every column derives from the arguments, whatever it is called."""
    names = node.alias_column_names
    if names:
        return Relation(tuple(Column(name, value) for name in names))
    return Relation(missing=Doubt("the function gives its columns no names"), every=value)


def function_name(call: exp.Expr) -> str:
    return call.name if isinstance(call, exp.Anonymous) else str(call.key)


_RELATIONS: Mapping[type[exp.Expr], Callable[[exp.Expr, Scope], Relation]] = {
    exp.Table: _table,
    exp.Subquery: _subquery,
    exp.Values: _values,
    exp.Lateral: _lateral,
    exp.Unnest: _unnest,
}


def _join(join: exp.Expr, scope: Scope) -> Value:
    """Add the right side; its own rows and the condition are returned."""
    before = len(scope.sources)
    rows = add_source(join.this, scope)
    names = {each.name: each.meta.get("start") for each in join.args.get("using") or ()}
    doubts: tuple[Doubt, ...] = ()
    if str(join.args.get("method") or "").upper() == "NATURAL":
        common, doubts = _common(scope.sources, before)
        names = dict.fromkeys(common)
    keys = [_merge(name, offset, join, scope, before) for name, offset in names.items()]
    on = value_of([join.args.get("on"), join.args.get("match_condition")], scope, JOIN)
    if str(join.args.get("kind") or "").upper() in {"SEMI", "ANTI"}:
        del scope.sources[before:]
    return joined([rows, *keys, on, Value(NOTHING, doubts)])


def _common(sources: Sequence[Source], before: int) -> tuple[list[str], tuple[Doubt, ...]]:
    """The columns that both sides of a NATURAL join have."""
    for source in sources:
        if source.relation.missing is not None:
            reason = f"a NATURAL join joins by unknown columns: {source.relation.missing.reason}"
            return [], (Doubt(reason),)
    left = {fold(c.name): c.name for source in sources[:before] for c in source.relation.columns}
    right = {fold(c.name) for source in sources[before:] for c in source.relation.columns}
    return [name for folded, name in left.items() if folded in right], ()


def _merge(name: str, offset: int | None, join: exp.Expr, scope: Scope, before: int) -> Value:
    """One column of USING, which both sides have; what it derives from as a join key."""
    left = replace(scope, sources=scope.sources[:before], outer=None).column([name], offset)
    right = replace(scope, sources=scope.sources[before:], merged={}, outer=None)
    right_value = right.column([name], offset)
    side = str(join.args.get("side") or "").upper()
    both = joined([left, right_value])
    kept = {"RIGHT": right_value, "FULL": both}.get(side, left)
    if str(join.args.get("kind") or "").upper() not in {"SEMI", "ANTI"}:
        merged = {fold(name): Column(name, kept), **scope.merged}
        merged[fold(name)] = Column(name, kept)
        scope.merged = merged
    return both.used(JOIN)


def _pivoted(relation: Relation, node: exp.Expr, scope: Scope) -> Relation:
    for pivot in node.args.get("pivots") or ():
        turn = _unpivot if pivot.args.get("unpivot") else _pivot
        names = pivot.alias_column_names
        relation = turn(pivot, relation, scope).renamed(names)
    return relation


def _only(relation: Relation, scope: Scope) -> Scope:
    inside = scope.inside()
    inside.sources.append(Source("", relation))
    return inside


def _used_names(nodes: Sequence[exp.Expr]) -> frozenset[str]:
    return frozenset(fold(column.name) for node in nodes for column in node.find_all(exp.Column))


def _pivot(pivot: exp.Expr, relation: Relation, scope: Scope) -> Relation:
    """Each new column derives from all aggregates; which row goes where, from the FOR columns."""
    inside = _only(relation, scope)
    keys = [field.this for field in pivot.args.get("fields") or ()]
    used = _used_names([*pivot.expressions, *keys])
    value = joined([value_of(pivot.expressions, inside), value_of(keys, inside, CONDITION)])
    made = [Column(column.name, value) for column in pivot.args.get("columns") or ()]
    group = pivot.args.get("group")
    columns = [column for column in relation.columns if fold(column.name) not in used]
    if group is not None:
        names = _used_names([group])
        columns = [column for column in columns if fold(column.name) in names]
    rows = [relation.rows, joined(column.value for column in columns).used(GROUP)]
    missing = relation.missing if group is None else None
    if not made:
        missing = Doubt("PIVOT names its new columns by what the data has")
    rest = (Rest(relation, used),) if missing is not None and made else ()
    counted = relation.counted  # engines differ in how they name the new columns
    return Relation((*columns, *made), joined(rows), missing, rest, counted=counted, unsure=True)


def _unpivot(pivot: exp.Expr, relation: Relation, scope: Scope) -> Relation:
    """The names of columns become rows of one column, their values rows of others."""
    inside = _only(relation, scope)
    fields = pivot.args.get("fields") or ()
    sources = [each for field in fields for each in field.expressions]
    used = _used_names(sources)
    tuples = [_members(source) for source in sources]
    names = [name for node in pivot.expressions for name in _members(node)]
    values = [
        Column(name.name, joined(value_of(members[at], inside) for members in tuples))
        for at, name in enumerate(names)
        if all(at < len(members) for members in tuples)
    ]
    named = [Column(field.this.name) for field in fields]
    columns = [column for column in relation.columns if fold(column.name) not in used]
    rest = (Rest(relation, used),) if relation.missing is not None else ()
    return Relation(
        (*columns, *named, *values),
        relation.rows,
        relation.missing,
        rest,
        counted=relation.counted,
        unsure=True,
    )


def _members(node: exp.Expr) -> list[exp.Expr]:
    node = node.this if isinstance(node, exp.PivotAlias) else node
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]
