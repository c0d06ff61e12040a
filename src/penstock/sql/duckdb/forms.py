"""Forms of DuckDB's queries that stand for longer ones, written out in DuckDB's own SQL.

``* REPLACE``, ``* RENAME``, ``COLUMNS``, ``UNION BY NAME``, PIVOT and samples. What a ``*`` stands
for has to be known: it is where the columns of the sources are, by their SELECT or by the lake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from penstock.errors import UnsupportedFeature
from penstock.lazy import exp
from penstock.sql.duckdb.guards import placed, substitute, text_of, whole_number
from penstock.sql.duckdb.text import unnamed
from penstock.sql.identifiers import fold
from penstock.sql.query.names import called, common_table, sources_of

Columns = Callable[[exp.Table], Sequence[str] | None]  # of a table, where they are known


def nothing_known(_: exp.Table) -> None:
    """Know no table's columns: for callers that cannot look them up."""


def written_out(tree: exp.Expr, columns: Columns = nothing_known) -> exp.Expr:
    """Write these forms out. The tree is changed.

    Raises UnsupportedFeature with the place, where a form needs columns that are not known.
    """
    for node in reversed(list(tree.walk(bfs=False))):
        rule = _RULES.get(type(node))
        if rule is None:
            continue
        try:
            new = rule(node, columns)
        except UnsupportedFeature as error:
            raise placed(error, node) from None
        if new is not node:
            tree = substitute(tree, node, new)
    return tree


def _unknown(what: str, advice: str) -> UnsupportedFeature:
    """The refusal of a form, with what to write instead."""
    message = f"{what} cannot be written for Spark"
    return UnsupportedFeature(message, hint=f"write {advice}", data={"feature": what})


_PIVOT = "PIVOT t ON k IN ('a', 'b') USING sum(v)"
_UNNAMED = "the columns by their names, or a subquery that selects them by name"


def _names(query: exp.Expr, columns: Columns) -> list[str] | None:
    """Return the names of a query's results; None where they are not known."""
    while isinstance(query, exp.Subquery | exp.Paren | exp.SetOperation):
        query = query.this
    if isinstance(query, exp.Values):
        first = query.expressions[0]
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        return [f"col{place}" for place in range(width)]
    if not isinstance(query, exp.Select):
        return None
    names: list[str] = []
    for item in query.expressions:
        results = _of_star(item, query, columns) if item.is_star else [item.alias_or_name]
        if results is None or not all(results):
            return None
        names += results
    return names


def _of_star(star: exp.Expr, select: exp.Select, columns: Columns) -> list[str] | None:
    """Return what a ``*`` without more than EXCLUDE stands for."""
    inner = star.this if isinstance(star, exp.Column) else star
    sources, joins = sources_of(select)
    is_merged = any(join.args.get("using") or join.args.get("method") for join in joins)
    if not isinstance(inner, exp.Star) or inner.args.get("replace") or inner.args.get("rename"):
        return None
    tables = [(called(source), _of_source(source, columns)) for source in sources]
    if not tables or is_merged or any(names is None for _, names in tables):
        return None
    wanted = {fold(star.table)} if isinstance(star, exp.Column) else {table for table, _ in tables}
    omitted = {fold(item.name) for item in inner.args.get("except_") or []}
    return [
        name
        for table, names in tables
        if table in wanted
        for name in names or []
        if fold(name) not in omitted
    ]


def _of_source(source: exp.Expr, columns: Columns) -> list[str] | None:
    aliases = source.alias_column_names
    names: Sequence[str] | None
    if isinstance(source, exp.Table):
        if source.args.get("pivots"):
            return None
        cte = common_table(source) if isinstance(source.this, exp.Identifier) else None
        if cte is None or cte is source.find_ancestor(exp.CTE):
            names = columns(source)
        else:
            names = cte.alias_column_names or _names(cte.this, columns)
    elif isinstance(source, exp.Subquery | exp.Values):
        names = _names(source, columns)
    else:
        return aliases or None
    return None if names is None else [*aliases, *names[len(aliases) :]]


def _select(select: exp.Expr, columns: Columns) -> exp.Expr:
    assert isinstance(select, exp.Select)
    items = [new for item in select.expressions for new in _written(item, select, columns)]
    for clause in ("where", "having", "qualify"):
        condition = select.args.get(clause)
        if condition is not None and _columns_in(condition) is not None:
            raise _unknown(f"COLUMNS in {clause.upper()}", "a condition for each column")
    select.set("expressions", items)
    sample = select.args.get("sample")
    if sample is not None:  # ``USING SAMPLE 10%`` of the one table
        if select.args.get("joins") or select.args.get("from_") is None:
            raise _unknown("USING SAMPLE over a join", "TABLESAMPLE 10% after a table")
        select.set("sample", None)
        select.args["from_"].this.set("sample", sample)
    return select


def _written(item: exp.Expr, select: exp.Select, columns: Columns) -> Iterator[exp.Expr]:
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star) and (star.args.get("replace") or star.args.get("rename")):
        yield from _replaced(item, star, select, columns)
        return
    pattern = _columns_in(item)
    if pattern is None:
        yield item
        return
    if pattern.args.get("unpack"):
        raise _unknown("*COLUMNS", "the columns by their names")
    for name in _chosen(pattern, select, columns):
        copy = item.copy()
        for node in list(copy.find_all(exp.Columns)):
            copy = substitute(copy, node, exp.column(name, quoted=True))
        is_named = isinstance(copy, exp.Alias | exp.Column)
        yield copy if is_named else exp.alias_(copy, name, quoted=True)


def _replaced(
    item: exp.Expr, star: exp.Star, select: exp.Select, columns: Columns
) -> Iterator[exp.Expr]:
    new = {fold(value.alias): value for value in star.args.get("replace") or []}
    aliases = {fold(value.this.name): value.alias for value in star.args.get("rename") or []}
    plain = item.copy()
    for clause in ("replace", "rename"):
        (plain.this if isinstance(plain, exp.Column) else plain).set(clause, None)
    names = _of_star(plain, select, columns)
    if names is None:
        form = "* REPLACE" if new else "* RENAME"
        raise _unknown(f"{form} of a table whose columns are not known yet", _UNNAMED)
    missing = sorted((new.keys() | aliases.keys()) - set(map(fold, names)))
    if missing:
        raise _unknown(f"* REPLACE of {missing[0]}, which is not a column", "another name")
    table = item.table if isinstance(item, exp.Column) else None
    for name in names:
        if fold(name) in new:
            yield new[fold(name)].copy()
            continue
        column = exp.column(exp.to_identifier(name, quoted=True), table=table or None)
        alias = aliases.get(fold(name))
        yield column if alias is None else exp.alias_(column, alias, quoted=True)


def _columns_in(node: exp.Expr) -> exp.Columns | None:
    patterns = [
        pattern
        for pattern in node.find_all(exp.Columns)
        if not isinstance(pattern.parent, exp.Ordered)
    ]
    if len({pattern.sql("duckdb") for pattern in patterns}) > 1:
        raise _unknown("several COLUMNS in one expression", "the columns by their names")
    return patterns[0] if patterns else None


def _chosen(node: exp.Columns, select: exp.Select, columns: Columns) -> list[str]:
    """Return the columns that a pattern, a list or a ``*`` means."""
    chosen = node.this
    names = _of_star(chosen if chosen.is_star else exp.Star(), select, columns)
    if names is None:
        raise _unknown("COLUMNS of a table whose columns are not known yet", _UNNAMED)
    if chosen.is_star:
        return names
    if isinstance(chosen, exp.Array):
        wanted = {fold(item.name) for item in chosen.expressions}
        return [name for name in names if fold(name) in wanted]
    pattern = text_of(chosen)
    if pattern is None or not re.fullmatch(r"[\w .|()*+?^$\[\]-]*", pattern):
        raise _unknown("COLUMNS of this form", "COLUMNS('a pattern'), or the columns by name")
    matches = [name for name in names if re.search(pattern, name, re.IGNORECASE)]
    if not matches:
        raise _unknown("COLUMNS that match no column", "another pattern")
    return matches


def _by_name(node: exp.Expr, columns: Columns) -> exp.Expr:
    """Each branch selects all names, those of the left one first."""
    if not node.args.get("by_name"):
        return node
    left, right = (_names(branch, columns) for branch in (node.this, node.expression))
    if left is None or right is None:
        raise _unknown(f"{node.key.upper()} BY NAME of columns that are not known yet", _UNNAMED)
    folded = [fold(name) for name in left]
    every = [*left, *(name for name in right if fold(name) not in folded)]
    for key, own in (("this", left), ("expression", right)):
        branch = node.args[key]
        node.set(key, _selected(branch, every, set(map(fold, own))))
    node.set("by_name", None)
    return node


def _selected(branch: exp.Expr, every: Sequence[str], own: set[str]) -> exp.Expr:
    items = [
        exp.column(name, quoted=True)
        if fold(name) in own
        else exp.alias_(exp.Null(), name, quoted=True)
        for name in every
    ]
    inner = branch.this if isinstance(branch, exp.Subquery) else branch
    named = exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=exp.to_identifier("branch")))
    return exp.select(*items).from_(named)


def _pivot(node: exp.Expr, columns: Columns) -> exp.Expr:
    """``PIVOT t ON k IN (...) USING agg GROUP BY g``, or UNPIVOT; one behind a table is for
    `_pivoted`.
    """
    if node.arg_key == "pivots":
        return node
    if node.args.get("unpivot"):
        return _unpivot(node)
    return _grouped(node.this, node.expressions, node.args.get("using") or [], node, columns)


def _pivoted(node: exp.Expr, columns: Columns) -> exp.Expr:
    """``t PIVOT (agg FOR k IN (...))``."""
    pivots = node.args.get("pivots") or []
    if not pivots or pivots[0].args.get("unpivot"):
        return node
    (pivot,) = pivots if len(pivots) == 1 else (None,)
    if pivot is None:
        raise _unknown("several PIVOTs of one table", "one in a subquery")
    source = node.copy()
    source.set("pivots", None)
    alias = pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("pivoted"))
    fields = pivot.args.get("fields") or []
    query = _grouped(source, fields, pivot.expressions, pivot, columns)
    return exp.Subquery(this=query, alias=alias.copy())


def _grouped(
    source: exp.Expr,
    fields: Sequence[exp.Expr],
    using: Sequence[exp.Expr],
    pivot: exp.Expr,
    columns: Columns,
) -> exp.Expr:
    keys = [_values(field) for field in fields]
    if not using:
        raise _unknown("PIVOT without USING", _PIVOT)
    group = pivot.args.get("group")
    by = list(group.expressions) if group is not None else _others(source, keys, using, columns)
    items = [item.copy() for item in by]
    for values in product(*(found for _, found in keys)):
        conditions = [
            exp.EQ(this=column.copy(), expression=value.copy())
            for (column, _), (_, value) in zip(keys, values, strict=True)
        ]
        name = "_".join(text for text, _ in values)
        items += [_filtered(each, conditions, name, alone=len(using) == 1) for each in using]
    query = exp.select(*items).from_(source.copy())
    return query.group_by(*(item.copy() for item in by)) if by else query


def _values(field: exp.Expr) -> tuple[exp.Expr, list[tuple[str, exp.Expr]]]:
    """Return the column of ``k IN (...)``, and the values with the names that they give."""
    if not isinstance(field, exp.In) or not field.expressions:
        raise _unknown("PIVOT without the values of its columns", _PIVOT)
    values: list[tuple[str, exp.Expr]] = []
    for item in field.expressions:
        value = item.this if isinstance(item, exp.PivotAlias) else item
        number = whole_number(value)
        if text_of(value) is None and number is None:
            raise _unknown("PIVOT by values of this kind", "texts or whole numbers")
        shown = str(value.name) if number is None else str(number)
        values.append((item.args["alias"].name if value is not item else shown, value))
    column = field.this
    return (exp.column(column.copy()) if isinstance(column, exp.Identifier) else column), values


def _filtered(
    using: exp.Expr, conditions: Sequence[exp.Expr], name: str, *, alone: bool
) -> exp.Expr:
    aggregate = using.unalias()
    if not isinstance(aggregate, exp.AggFunc):
        raise _unknown("PIVOT by what is no single aggregate", "USING sum(v)")
    condition = exp.and_(*(each.copy() for each in conditions))
    value = exp.Filter(this=aggregate.copy(), expression=exp.Where(this=condition))
    called = using.alias or unnamed(aggregate.sql("duckdb", normalize_functions="lower")) or ""
    shown = name if alone and not using.alias else f"{name}_{called}"
    return exp.alias_(value, shown, quoted=True)


def _others(
    source: exp.Expr,
    keys: Sequence[tuple[exp.Expr, object]],
    using: Sequence[exp.Expr],
    columns: Columns,
) -> list[exp.Expr]:
    """Return the columns by which a PIVOT without GROUP BY groups: all that it does not name."""
    names = _of_source(source, columns)
    if names is None:
        raise _unknown("PIVOT of columns that are not known yet", "GROUP BY with the columns")
    parts = (*(key for key, _ in keys), *using)
    used = {fold(column.name) for part in parts for column in part.find_all(exp.Column)}
    return [exp.column(name, quoted=True) for name in names if fold(name) not in used]


def _unpivot(node: exp.Expr) -> exp.Expr:
    """Write it as Spark does: the other columns, the name and the value; NULLs are omitted."""
    into = node.args.get("into")
    name = into.this.name if into is not None else "name"
    values = [value.name for value in into.expressions] if into is not None else ["value"]
    known = all(isinstance(column, exp.Column) for column in node.expressions)
    if len(values) != 1 or not known or node.args.get("include_nulls"):
        raise _unknown("UNPIVOT of this form", "UNPIVOT t ON a, b INTO NAME k VALUE v")
    field = exp.In(
        this=exp.to_identifier(name), expressions=[column.copy() for column in node.expressions]
    )
    turned = exp.Pivot(expressions=[exp.to_identifier(values[0])], fields=[field], unpivot=True)
    source = node.this.copy()
    source.set("pivots", [turned])
    return exp.select("*").from_(source)


_RULES: Mapping[type[exp.Expr], Callable[[exp.Expr, Columns], exp.Expr]] = {
    exp.Except: _by_name,
    exp.Intersect: _by_name,
    exp.Pivot: _pivot,
    exp.Select: _select,
    exp.Subquery: _pivoted,
    exp.Table: _pivoted,
    exp.Union: _by_name,
}
