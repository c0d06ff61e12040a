"""Rules for the clauses of DuckDB's queries whose meaning or form differs on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import called, placed, refused, same_fields, spark
from penstock.sql.identifiers import fold


def _select(node: exp.Expr) -> exp.Expr:
    if node.args.get("match") or node.args.get("kind") or node.args.get("laterals"):
        raise refused("this form of SELECT")
    unnested = [
        expression for expression in node.expressions for _ in expression.find_all(exp.Explode)
    ]
    if len(unnested) > 1:
        _unnest_side_by_side(node, unnested)
    _check_order(node)
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") and isinstance(node, exp.Select):
        return _first_of_each(node, distinct.args["on"])
    return node


def _unnest_side_by_side(select: exp.Expr, items: list[exp.Expr]) -> None:
    """Write one generator for several: DuckDB takes an item of each list, Spark each combination.

    A shorter list, and one that is NULL, is NULL in the rows that it lacks.
    """
    expressions = list(select.expressions)
    start = next(index for index, item in enumerate(expressions) if item is items[0])
    are_neighbors = expressions[start : start + len(items)] == items
    are_named = all(isinstance(item, exp.Alias) for item in items)
    are_plain = all(isinstance(item.unalias(), exp.Explode) for item in items)
    if not (are_neighbors and are_named and are_plain):
        advice = "them beside each other: unnest(a) AS x, unnest(b) AS y"
        raise placed(refused("several unnest that are not adjacent columns", advice), items[1])
    lists = [spark("COALESCE(:items, ARRAY())", items=item.unalias().this) for item in items]
    generator = exp.Inline(this=exp.ArraysZip(expressions=lists))
    names = [item.args["alias"].copy() for item in items]
    expressions[start : start + len(items)] = [exp.Aliases(this=generator, expressions=names)]
    select.set("expressions", expressions)


def _check_order(select: exp.Expr) -> None:
    """In an expression of ORDER BY a name is the table's column first, to Spark an alias first."""
    order = select.args.get("order")
    if order is None:
        return
    aliases = [item for item in select.expressions if isinstance(item, exp.Alias)]
    hidden = {fold(item.alias) for item in aliases if _names(item.this, fold(item.alias))}
    for column in order.find_all(exp.Column):
        alone = isinstance(column.parent, exp.Ordered)
        if not alone and not column.table and fold(column.name) in hidden:
            what = f"ORDER BY an expression of {column.name}, which an alias hides,"
            raise placed(refused(what), column)


def _names(node: exp.Expr, name: str) -> bool:
    return any(fold(column.name) == name for column in node.find_all(exp.Column))


def _join(node: exp.Expr) -> exp.Expr:
    method, kind = (str(node.args.get(key) or "").upper() for key in ("method", "kind"))
    if kind not in {"", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"} or method not in {"", "NATURAL"}:
        asof = method == "ASOF"
        advice = "it in a model, which has ASOF JOIN" if asof else "a join with ON"
        raise refused(f"the join {method or kind}", advice)
    return node


def _star(node: exp.Expr) -> exp.Expr:
    """With USING, Spark puts the shared columns first, DuckDB where the left table has them."""
    select = node.parent
    if not isinstance(select, exp.Select):
        return node
    joins = select.args.get("joins") or []
    if any(join.args.get("method") == "NATURAL" for join in joins):
        raise refused("* over a NATURAL join")
    if not any(join.args.get("using") for join in joins):
        return node
    return _by_source(node, select, joins)


def _by_source(star: exp.Expr, select: exp.Select, joins: list[exp.Join]) -> exp.Expr:
    """``l.*, r.* EXCEPT (k) FROM l JOIN r ON l.k = r.k`` for ``* FROM l JOIN r USING (k)``."""
    left, join = (select.args.get("from_") or select.args["from"]).this, joins[0]
    side = str(join.args.get("side") or "").upper()
    shared = list(join.args["using"])
    bare = {fold(c.name) for c in select.find_all(exp.Column) if not c.table}
    odd = len(joins) > 1 or side not in {"", "LEFT"} or bare & {fold(k.name) for k in shared}
    if odd or star.args.get("except_") or star.args.get("except"):
        raise refused("* over a join USING of this kind")
    keys = [key.sql("databricks") for key in shared]
    of_left, of_right = _name(left), _name(join.this)
    join.set("using", None)
    pairs = [spark(f"{of_left}.{key} = {of_right}.{key}") for key in keys]
    conditions = [same_fields("USING", pair, pair.this, pair.expression) for pair in pairs]
    join.set("on", exp.and_(*conditions, copy=False))
    parts = [f"{of_left}.*", f"{of_right}.* EXCEPT ({', '.join(keys)})"]
    if str(join.args.get("kind") or "").upper() in {"SEMI", "ANTI"}:
        del parts[1]
    stars = [spark(f"SELECT {part}").expressions[0] for part in parts]
    at = select.expressions.index(star)
    select.set("expressions", [*select.expressions[:at], *stars, *select.expressions[at + 1 :]])
    return star


def _name(source: exp.Expr) -> str:
    alias = source.args.get("alias")
    name = alias.this if alias is not None else source.this
    return str(name.sql("databricks"))


def _ordered(node: exp.Expr) -> exp.Expr:
    """``ORDER BY ALL`` is printed as ``ORDER BY COLUMNS(*)``. NULLs come last, always."""
    if isinstance(node.this, exp.Columns):
        if not isinstance(node.this.this, exp.Star):
            raise refused("COLUMNS")
        return exp.Ordered(this=exp.column("ALL"), desc=node.args.get("desc"))
    return node


def _columns(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.Ordered):
        raise refused("COLUMNS")
    return node


def _distinct(node: exp.Expr) -> exp.Expr:
    if node.args.get("on") and not isinstance(node.parent, exp.Select):
        raise refused("DISTINCT ON")
    return node


def _first_of_each(select: exp.Select, on: exp.Expr) -> exp.Expr:
    """``DISTINCT ON (k) ... ORDER BY o``: the first row of each ``k`` in that order."""
    order = select.args.get("order")
    odd = any(select.args.get(key) for key in ("group", "having", "qualify", "windows"))
    if order is None or odd or select.find(exp.AggFunc, exp.Window) is not None:
        raise refused("DISTINCT ON without ORDER BY, or of groups or windows")
    named = {
        fold(expression.alias): expression.this
        for expression in select.expressions
        if isinstance(expression, exp.Alias)
    }
    keys = [_meant(key, named) for key in on.expressions]
    by = [item.copy() for item in order.expressions]
    for item in by:
        item.set("this", _meant(item.this, named))
    window = exp.Window(this=exp.RowNumber(), partition_by=keys, order=exp.Order(expressions=by))
    select.set("distinct", None)
    select.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    return select


def _meant(key: exp.Expr, named: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return what a key of DISTINCT ON or its ORDER BY stands for."""
    if isinstance(key, exp.Literal) or (isinstance(key, exp.Column) and key.name == "ALL"):
        raise refused("DISTINCT ON of a position")
    if isinstance(key, exp.Column) and not key.table and fold(key.name) in named:
        return named[fold(key.name)].copy()
    return key.copy()


def _cte(node: exp.Expr) -> exp.Expr:
    """MATERIALIZED is about the plan only."""
    node.set("materialized", None)
    return node


def _values(node: exp.Expr) -> exp.Expr:
    """Columns without names are ``col0``, ``col1`` and so on; Spark counts from 1."""
    alias, rows = node.args.get("alias"), _in_one_order(node.expressions)
    if alias is not None and alias.args.get("columns"):
        node.set("expressions", rows)
        return node
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    name = exp.to_identifier("valueslist") if alias is None else alias.this.copy()
    columns = [exp.to_identifier(f"col{at}") for at in range(width)]
    named = exp.Values(expressions=rows, alias=exp.TableAlias(this=name, columns=columns))
    inside = isinstance(node.parent, exp.From | exp.Join)
    return named if inside else exp.select("*").from_(named)


def _in_one_order(rows: list[exp.Expr]) -> list[exp.Expr]:
    """Copies of rows, their structs with the fields in the order of the first row's."""
    copies = [row.copy() for row in rows]
    cells = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in copies]
    for column in zip(*cells, strict=False):
        names = _field_names(column[0])
        for struct in column[1:]:
            order = _field_names(struct)
            if order != names and names and sorted(order) == sorted(names):
                fields = dict(zip(order, struct.expressions, strict=True))
                struct.set("expressions", [fields[name] for name in names])
            elif order != names and names and order:
                raise placed(refused("VALUES of structs with other fields", "the same"), struct)
    return copies


def _field_names(node: exp.Expr) -> list[str]:
    """The folded names of a struct that is written out; none of anything else."""
    fields = node.expressions if isinstance(node, exp.Struct) else []
    return [fold(field.this.name) for field in fields if isinstance(field, exp.PropertyEQ)]


def _frame(node: exp.Expr) -> exp.Expr:
    if node.args.get("exclude"):
        raise refused("a window frame with EXCLUDE")
    if node.args.get("kind") == "GROUPS":
        raise refused("a window frame of GROUPS")
    if isinstance(node.parent, exp.Window) and isinstance(node.parent.this, _WITHOUT_FRAME):
        raise refused(f"{called(node.parent.this)} with a frame")
    return node


def _window(node: exp.Expr) -> exp.Expr:
    """Without an order DuckDB's is chance."""
    call = (
        node.this.this if isinstance(node.this, exp.IgnoreNulls | exp.RespectNulls) else node.this
    )
    if isinstance(call, _IN_AN_ORDER) and not _is_ordered(node):
        raise refused(f"{called(call)} in a window without ORDER BY", "OVER (ORDER BY ...)")
    return node


def _is_ordered(window: exp.Expr) -> bool:
    """Return whether the window, or the one of WINDOW that it names, has an ORDER BY."""
    if window.args.get("order") is not None:
        return True
    select, name = window.find_ancestor(exp.Select), window.args.get("alias")
    if select is None or name is None:
        return False
    known = select.args.get("windows") or []
    return any(
        fold(other.name) == fold(name.name) and _is_ordered(other)
        for other in known
        if other is not window
    )


def _sample(node: exp.Expr) -> exp.Expr:
    """Each row with that chance; which rows those are is another at each run, in both."""
    percent = node.args.get("percent")
    if node.args.get("seed") or not isinstance(percent, exp.Literal) or percent.is_string:
        advice = "10%, or ORDER BY random() LIMIT n for so many rows"
        raise refused("a sample of rows, or one that can be repeated,", advice)
    return exp.TableSample(percent=percent.copy())


def _lateral(node: exp.Expr) -> exp.Expr:
    if node.args.get("view") or not isinstance(node.this, exp.Subquery):
        raise refused("LATERAL of this form", "LATERAL (SELECT ...)")
    return node


def _unpivoted(node: exp.Expr) -> exp.Expr:
    """Others have been written out (`forms`)."""
    if not node.args.get("unpivot") or node.args.get("include_nulls"):
        raise refused("PIVOT of this form")
    return node


def _limit(node: exp.Expr) -> exp.Expr:
    if node.args.get("limit_options") is not None:
        raise refused("LIMIT of a share of the rows", "the number of rows")
    if node.find(exp.Query) is not None:
        raise refused("LIMIT or OFFSET of a query", "the number")
    return node


# Functions of a window for which Spark takes no frame.
_WITHOUT_FRAME = (
    *(exp.CumeDist, exp.DenseRank, exp.Lag, exp.Lead),
    *(exp.Ntile, exp.PercentRank, exp.Rank, exp.RowNumber),
)


_IN_AN_ORDER = (*_WITHOUT_FRAME, exp.FirstValue, exp.LastValue, exp.NthValue)


CLAUSES: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.CTE: _cte,
    exp.Columns: _columns,
    exp.Distinct: _distinct,
    exp.Join: _join,
    exp.Lateral: _lateral,
    exp.Limit: _limit,
    exp.LimitOptions: lambda node: node,  # for `_limit`
    exp.Pivot: _unpivoted,
    exp.Offset: _limit,
    exp.Ordered: _ordered,
    exp.Select: _select,
    exp.Star: _star,
    exp.TableSample: _sample,
    exp.Values: _values,
    exp.Window: _window,
    exp.WindowSpec: _frame,
}
