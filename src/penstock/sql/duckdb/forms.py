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
        except _Unknown as error:
            raise placed(_refusal(error), node) from None
        if new is not node:
            tree = substitute(tree, node, new)
    return tree


class _Unknown(Exception):
    """A refused form, and what to write instead."""

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.advice = advice


def _refusal(error: _Unknown) -> UnsupportedFeature:
    hint = f"write {error.advice}"
    message = f"{error} cannot be written for Spark"
    return UnsupportedFeature(message, hint=hint, data={"feature": str(error)})


_UNNAMED = "the columns by their names, or a subquery that selects them by name"


# The names of what a query gives.
def _names(query: exp.Expr, columns: Columns) -> list[str] | None:
    if isinstance(query, exp.Subquery | exp.Paren):
        return _names(query.this, columns)
    if isinstance(query, exp.SetOperation):
        return _names(query.this, columns)
    if isinstance(query, exp.Values):
        return _of_values(query)
    if not isinstance(query, exp.Select):
        return None
    names: list[str] = []
    for item in query.expressions:
        found = _of_star(item, query, columns) if item.is_star else [item.alias_or_name]
        if found is None or not all(found):
            return None
        names += found
    return names


def _of_values(node: exp.Expr) -> list[str]:
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    return [f"col{at}" for at in range(width)]


def _of_star(star: exp.Expr, select: exp.Select, columns: Columns) -> list[str] | None:
    """Return what a ``*`` without more than EXCLUDE stands for."""
    inner = star.this if isinstance(star, exp.Column) else star
    if not isinstance(inner, exp.Star) or inner.args.get("replace") or inner.args.get("rename"):
        return None
    known = _sources(select, columns)
    if known is None:
        return None
    wanted = fold(star.table) if isinstance(star, exp.Column) else None
    names = [name for source, names in known for name in names if wanted in {None, source}]
    left_out = {fold(item.name) for item in inner.args.get("except_") or []}
    return [name for name in names if fold(name) not in left_out]


def _sources(select: exp.Select, columns: Columns) -> list[tuple[str, list[str]]] | None:
    """Return the tables of a SELECT, folded, with their columns."""
    sources, joins = sources_of(select)
    if not sources or any(join.args.get("using") or join.args.get("method") for join in joins):
        return None
    found: list[tuple[str, list[str]]] = []
    for source in sources:
        names = _of_source(source, columns)
        if names is None:
            return None
        found.append((called(source), names))
    return found


def _of_source(source: exp.Expr, columns: Columns) -> list[str] | None:
    given = source.alias_column_names
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
        return given or None
    return None if names is None else [*given, *names[len(given) :]]


def _select(select: exp.Expr, columns: Columns) -> exp.Expr:
    assert isinstance(select, exp.Select)
    items: list[exp.Expr] = []
    for item in select.expressions:
        items += _written(item, select, columns)
    for clause in ("where", "having", "qualify"):
        found = select.args.get(clause)
        if found is not None and _columns_in(found) is not None:
            raise _Unknown(f"COLUMNS in {clause.upper()}", "a condition for each column")
    select.set("expressions", items)
    sample = select.args.get("sample")
    if sample is not None:
        _sampled(select, sample)
    return select


def _written(item: exp.Expr, select: exp.Select, columns: Columns) -> Iterator[exp.Expr]:
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star) and (star.args.get("replace") or star.args.get("rename")):
        yield from _replaced(item, star, select, columns)
        return
    chosen = _columns_in(item)
    if chosen is None:
        yield item
        return
    if chosen.args.get("unpack"):
        raise _Unknown("*COLUMNS", "the columns by their names")
    for name in _chosen(chosen, select, columns):
        copy = item.copy()
        for node in list(copy.find_all(exp.Columns)):
            column = exp.column(exp.to_identifier(name, quoted=True))
            copy = substitute(copy, node, column)
        alias = isinstance(copy, exp.Alias | exp.Column)
        yield copy if alias else exp.alias_(copy, name, quoted=True)


def _replaced(
    item: exp.Expr, star: exp.Star, select: exp.Select, columns: Columns
) -> Iterator[exp.Expr]:
    plain = item.copy()
    bare = plain.this if isinstance(plain, exp.Column) else plain
    new = {fold(each.alias): each for each in star.args.get("replace") or []}
    names_of = {fold(each.this.name): each.alias for each in star.args.get("rename") or []}
    bare.set("replace", None)
    bare.set("rename", None)
    names = _of_star(plain, select, columns)
    if names is None:
        form = "* REPLACE" if new else "* RENAME"
        raise _Unknown(f"{form} of a table whose columns are not known yet", _UNNAMED)
    missing = sorted((new.keys() | names_of.keys()) - set(map(fold, names)))
    if missing:
        raise _Unknown(f"* REPLACE of {missing[0]}, which is not a column", "another name")
    table = item.table if isinstance(item, exp.Column) else None
    for name in names:
        if fold(name) in new:
            yield new[fold(name)].copy()
            continue
        column = exp.column(exp.to_identifier(name, quoted=True), table=table or None)
        shown = names_of.get(fold(name))
        yield column if shown is None else exp.alias_(column, shown, quoted=True)


def _columns_in(node: exp.Expr) -> exp.Columns | None:
    found = [
        each for each in node.find_all(exp.Columns) if not isinstance(each.parent, exp.Ordered)
    ]
    if len({each.sql("duckdb") for each in found}) > 1:
        raise _Unknown("several COLUMNS in one expression", "the columns by their names")
    return found[0] if found else None


def _chosen(node: exp.Columns, select: exp.Select, columns: Columns) -> list[str]:
    """Return the columns that a pattern, a list or a ``*`` means."""
    what = node.this
    star = what if what.is_star else exp.Star()
    names = _of_star(star, select, columns)
    if names is None:
        raise _Unknown("COLUMNS of a table whose columns are not known yet", _UNNAMED)
    if what.is_star:
        return names
    if isinstance(what, exp.Array):
        wanted = {fold(item.name) for item in what.expressions}
        return [name for name in names if fold(name) in wanted]
    pattern = text_of(what)
    if pattern is None or not re.fullmatch(r"[\w .|()*+?^$\[\]-]*", pattern):
        raise _Unknown("COLUMNS of this form", "COLUMNS('a pattern'), or the columns by name")
    found = [name for name in names if re.search(pattern, name, re.IGNORECASE)]
    if not found:
        raise _Unknown("COLUMNS that match no column", "another pattern")
    return found


def _by_name(node: exp.Expr, columns: Columns) -> exp.Expr:
    """Each branch selects all names, those of the left one first."""
    if not node.args.get("by_name"):
        return node
    left, right = (_names(branch, columns) for branch in (node.this, node.expression))
    if left is None or right is None:
        raise _Unknown(f"{node.key.upper()} BY NAME of columns that are not known yet", _UNNAMED)
    folded = [fold(name) for name in left]
    every = [*left, *(name for name in right if fold(name) not in folded)]
    for key, own in (("this", left), ("expression", right)):
        branch = node.args[key]
        node.set(key, _selected(branch, every, set(map(fold, own))))
    node.set("by_name", None)
    return node


def _selected(branch: exp.Expr, every: Sequence[str], own: set[str]) -> exp.Expr:
    items = [
        exp.column(exp.to_identifier(name, quoted=True))
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
        raise _Unknown("several PIVOTs of one table", "one in a subquery")
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
        raise _Unknown("PIVOT without USING", "PIVOT t ON k IN ('a', 'b') USING sum(v)")
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
        raise _Unknown(
            "PIVOT without the values of its columns", "PIVOT t ON k IN ('a', 'b') USING sum(v)"
        )
    found: list[tuple[str, exp.Expr]] = []
    for item in field.expressions:
        value = item.this if isinstance(item, exp.PivotAlias) else item
        if text_of(value) is None and whole_number(value) is None:
            raise _Unknown("PIVOT by values of this kind", "texts or whole numbers")
        shown = item.args["alias"].name if isinstance(item, exp.PivotAlias) else _shown(value)
        found.append((shown, value))
    column = field.this
    return (exp.column(column.copy()) if isinstance(column, exp.Identifier) else column), found


def _shown(value: exp.Expr) -> str:
    number = whole_number(value)
    return str(value.name) if number is None else str(number)


def _filtered(
    using: exp.Expr, conditions: Sequence[exp.Expr], name: str, *, alone: bool
) -> exp.Expr:
    aggregate = using.unalias()
    if not isinstance(aggregate, exp.AggFunc):
        raise _Unknown("PIVOT by what is no single aggregate", "USING sum(v)")
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
        raise _Unknown("PIVOT of columns that are not known yet", "GROUP BY with the columns")
    parts = (*(key for key, _ in keys), *using)
    used = {fold(column.name) for part in parts for column in part.find_all(exp.Column)}
    return [
        exp.column(exp.to_identifier(name, quoted=True)) for name in names if fold(name) not in used
    ]


def _unpivot(node: exp.Expr) -> exp.Expr:
    """Write it as Spark does: the other columns, the name and the value; NULLs are omitted."""
    into = node.args.get("into")
    name = into.this.name if into is not None else "name"
    values = [value.name for value in into.expressions] if into is not None else ["value"]
    known = all(isinstance(column, exp.Column) for column in node.expressions)
    if len(values) != 1 or not known or node.args.get("include_nulls"):
        raise _Unknown("UNPIVOT of this form", "UNPIVOT t ON a, b INTO NAME k VALUE v")
    field = exp.In(
        this=exp.to_identifier(name), expressions=[column.copy() for column in node.expressions]
    )
    turned = exp.Pivot(expressions=[exp.to_identifier(values[0])], fields=[field], unpivot=True)
    source = node.this.copy()
    source.set("pivots", [turned])
    return exp.select("*").from_(source)


def _sampled(select: exp.Select, sample: exp.Expr) -> None:
    """``USING SAMPLE 10%`` of the one table."""
    if select.args.get("joins") or select.args.get("from_") is None:
        raise _Unknown("USING SAMPLE over a join", "TABLESAMPLE 10% after a table")
    select.set("sample", None)
    select.args["from_"].this.set("sample", sample)


_RULES: Mapping[type[exp.Expr], Callable[[exp.Expr, Columns], exp.Expr]] = {
    exp.Except: _by_name,
    exp.Intersect: _by_name,
    exp.Pivot: _pivot,
    exp.Select: _select,
    exp.Subquery: _pivoted,
    exp.Table: _pivoted,
    exp.Union: _by_name,
}
