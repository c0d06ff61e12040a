"""Rules for DuckDB's operators and clauses whose meaning or form differs on Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from penstock.sql.duckdb.guards import (
    called,
    is_number,
    placed,
    refused,
    spark,
    text_of,
    unless,
    whole_number,
)
from penstock.sql.duckdb.kinds import is_list, is_text
from penstock.sql.duckdb.lists import contains, item_at, sliced
from penstock.sql.identifiers import fold

_FLOATS = "float|double|decimal%"
_NOT_WHOLE = "float|double|decimal%|string|bigint"
# CAST to VARCHAR of these looks different; concatenation casts.
NOT_AS_TEXT = "float|double|binary|timestamp|struct%|map%|array%|variant|interval%"

_DIGITS = 38  # of Spark's DECIMAL
_SPAN = "__interval"
_SPANS = {
    "to_days": "DAY",
    "to_hours": "HOUR",
    "to_minutes": "MINUTE",
    "to_seconds": "SECOND",
    "to_months": "MONTH",
    "to_years": "YEAR",
    "to_weeks": "WEEK",
}
_UNITS = set(_SPANS.values())
_WRITTEN = re.compile(r"\s*(-?\d+)\s+([a-zA-Z]+?)s?\s*")


def _div(node: exp.Expr) -> exp.Expr:
    """``/`` is DOUBLE's by IEEE: 1 / 0 is infinity."""
    a, b = node.this, node.expression
    quotient = spark(
        "IF(CAST(:b AS DOUBLE) = 0, CAST(:a AS DOUBLE) * CAST('Infinity' AS DOUBLE), "
        "CAST(:a AS DOUBLE) / CAST(:b AS DOUBLE))",
        a=a,
        b=b,
    )
    if (whole_number(b) or 0) != 0:
        quotient = spark("(CAST(:a AS DOUBLE) / CAST(:b AS DOUBLE))", a=a, b=b)
    return unless("/", "float", quotient, a, b)


def _int_div(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    return unless("//", _FLOATS, spark("(:a DIV NULLIF(:b, 0))", a=a, b=b), a, b)


def _mod(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    return unless("%", "float|double", spark("(:a % NULLIF(:b, 0))", a=a, b=b), a, b)


def _add(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    if span(b) is not None:
        return _moved(a, "+", b)
    if span(a) is not None:
        return _moved(b, "+", a)
    return node


def _sub(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    if span(b) is not None:
        return _moved(a, "-", b)
    if whole_number(b) is not None or whole_number(a) is not None:
        return node
    # Days of DuckDB are an INTERVAL of Spark.
    return unless("difference", "date|timestamp%", node, b)


def _date_add(node: exp.Expr) -> exp.Expr:
    if span(node.expression) is None:
        raise refused("date_add of this form")
    return _moved(node.this, "+", node.expression)


def _moved(moment: exp.Expr, sign: str, by: exp.Expr) -> exp.Expr:
    """A DATE moved by an interval is a TIMESTAMP."""
    text, amount = span(by) or ("", None)
    parts = {} if amount is None else {"n": amount}
    moved = spark(f"(CAST(:m AS TIMESTAMP_NTZ) {sign} {text})", m=moment, **parts)
    if amount is not None:
        moved = unless("an interval", _NOT_WHOLE, moved, amount)
    return unless("sum with an interval", "timestamp|string", moved, moment)


def intervals(tree: exp.Expr) -> None:
    """Mark intervals: those that somebody wrote (``INTERVAL 1 DAY``), and as DuckDB prints them
    (``to_days(CAST(trunc(CAST(1 AS DOUBLE)) ...))``).

    Raises UnsupportedFeature for units that are not known.
    """
    for cast in list(tree.find_all(exp.Cast)):
        found = _WRITTEN.fullmatch(text_of(cast.this) or "")
        if cast.args["to"].this.name == "INTERVAL" and found and found[2].upper() in _UNITS:
            _mark(cast, exp.Literal.number(found[1]), found[2].upper())
    for written in list(tree.find_all(exp.Interval)):
        unit = written.text("unit").upper().removesuffix("S")
        if unit not in _UNITS or written.this is None:
            raise placed(refused(f"the interval {written.sql('duckdb')}"), written)
        _mark(written, written.this, unit)
    for call in list(tree.find_all(exp.Func)):
        if _function(call) in _SPANS:
            _mark(call, _amount(call), _SPANS[_function(call)])


def _amount(node: exp.Expr) -> exp.Expr:
    """The number within a function of intervals and the casts that DuckDB prints around it."""
    inner: exp.Expr = node
    while isinstance(inner, exp.Func | exp.Paren):
        inner = (inner.expressions or [inner.this])[0]
    constant = whole_number(inner) is not None or text_of(inner) is not None
    return inner if constant else (node.expressions or [node.this])[0]


def _mark(node: exp.Expr, amount: exp.Expr, unit: str) -> None:
    """A constant is put into the text, whatever else is computed goes along as an argument."""
    value = whole_number(amount)
    text = text_of(amount) or ""
    if value is None and text.strip().removeprefix("-").isdigit():
        value = int(text)
    if value is not None:
        marked = exp.Literal.string(f"INTERVAL '{value}' {unit}")
        node.replace(exp.Anonymous(this=_SPAN, expressions=[marked]))
        return
    if text_of(amount) is not None:
        raise placed(refused(f"the interval {node.sql('duckdb')}"), node)
    made = exp.Literal.string(_COMPUTED[unit])
    node.replace(exp.Anonymous(this=_SPAN, expressions=[made, amount.copy()]))


# Of a computed number, which DuckDB takes as an INTEGER, seconds as DOUBLE.
_COMPUTED = {
    "DAY": "MAKE_DT_INTERVAL(:n)",
    "HOUR": "MAKE_DT_INTERVAL(0, :n)",
    "MINUTE": "MAKE_DT_INTERVAL(0, 0, :n)",
    "SECOND": "MAKE_DT_INTERVAL(0, 0, 0, :n)",
    "WEEK": "MAKE_DT_INTERVAL(7 * :n)",
    "MONTH": "MAKE_YM_INTERVAL(0, :n)",
    "YEAR": "MAKE_YM_INTERVAL(:n)",
}


def _function(node: exp.Func) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return str(name).lower()


def span(node: exp.Expr) -> tuple[str, exp.Expr | None] | None:
    """Spark's text of an interval that `intervals` has marked, and what ``:n`` in it stands for."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Anonymous) or node.name != _SPAN:
        return None
    text, *amount = node.expressions
    return str(text.name), amount[0] if amount else None


def _concatenation(node: exp.Expr) -> exp.Expr:
    if is_list(node.this) or is_list(node.expression):
        raise refused("|| of lists", "list_concat(a, b)")
    return unless("concatenation", NOT_AS_TEXT, node, node.this, node.expression)


def _like(node: exp.Expr) -> exp.Expr:
    r"""DuckDB has no escape character unless one is given, Spark's is ``\``."""
    if isinstance(node.this, exp.Star):
        raise refused("* LIKE")
    if isinstance(node.parent, exp.Escape):
        return node
    if text_of(node.expression) is None or "\\" in node.expression.name:
        raise refused("LIKE with a computed pattern or a backslash")
    return node


def _bracket(node: exp.Expr) -> exp.Expr:
    """``l[1]`` is the first; beyond the end is NULL. sqlglot counts from 0 already."""
    (index,) = node.expressions if len(node.expressions) == 1 else (None,)
    if text_of(index) is not None:
        return node
    if isinstance(index, exp.Slice):
        return sliced(node, index)
    at = whole_number(index)
    if at is None or at == -1:
        raise refused(f"the index {node.sql('duckdb')}")
    return item_at(node.this, at + 1)


def _any(node: exp.Expr) -> exp.Expr:
    """``x = ANY(SELECT ...)`` is how DuckDB prints IN."""
    right = node.expression
    if isinstance(right, exp.Any):
        query = right.this
        while isinstance(query, exp.Subquery | exp.Paren) and not query.args.get("alias"):
            query = query.this
        if isinstance(query, exp.Query):
            return exp.In(this=node.this, query=exp.Subquery(this=query.copy()))
        raise refused("ANY of a list")
    return node


def _only_in_comparison(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.EQ):
        raise refused("ANY")
    return node


def _select(node: exp.Expr) -> exp.Expr:
    if node.args.get("match") or node.args.get("kind") or node.args.get("laterals"):
        raise refused("this form of SELECT")
    unnested = [
        expression for expression in node.expressions for _ in expression.find_all(exp.Explode)
    ]
    if len(unnested) > 1:  # DuckDB goes through them side by side, Spark through each pair
        raise placed(refused("unnest twice in one SELECT"), unnested[1])
    _check_order(node)
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") and isinstance(node, exp.Select):
        return _first_of_each(node, distinct.args["on"])
    return node


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
        raise refused(f"the join {method or kind}")
    return node


def _star(node: exp.Expr) -> exp.Expr:
    """With USING, Spark puts the shared columns first, DuckDB where the left table has them."""
    if node.args.get("replace") or node.args.get("rename"):
        raise refused("* REPLACE")
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
    one, other = _name(left), _name(join.this)
    join.set("using", None)
    join.set("on", spark(" AND ".join(f"{one}.{key} = {other}.{key}" for key in keys)))
    parts = [f"{one}.*", f"{other}.* EXCEPT ({', '.join(keys)})"]
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
    """What a key of DISTINCT ON or its ORDER BY stands for."""
    if isinstance(key, exp.Literal) or (isinstance(key, exp.Column) and key.name == "ALL"):
        raise refused("DISTINCT ON of a position")
    if isinstance(key, exp.Column) and not key.table and fold(key.name) in named:
        return named[fold(key.name)].copy()
    return key.copy()


def _in(node: exp.Expr) -> exp.Expr:
    """``x IN l``, a column, looks into a list."""
    items = node.args.get("field")
    return node if items is None else contains(items, node.this)


def _cte(node: exp.Expr) -> exp.Expr:
    """MATERIALIZED is about the plan only."""
    node.set("materialized", None)
    return node


def _lambda(node: exp.Expr) -> exp.Expr:
    """An index is counted from 1, by Spark from 0."""
    if len(node.expressions) > 1:
        raise refused("a lambda with an index")
    return node


def _literal(node: exp.Expr) -> exp.Expr:
    if not node.is_string and len(re.sub(r"\D", "", node.name)) > _DIGITS:
        raise refused(f"a number of more than {_DIGITS} digits")
    return node


def _set_operation(node: exp.Expr) -> exp.Expr:
    if node.args.get("by_name"):
        raise refused("UNION BY NAME")
    for left, right in zip(_items(node.this), _items(node.expression), strict=False):
        if (is_text(left) and is_number(right)) or (is_number(left) and is_text(right)):
            raise placed(refused(f"{node.key.upper()} of texts and numbers", "a cast"), right)
    return node


def _items(query: exp.Expr) -> list[exp.Expr]:
    """The results of a SELECT, of a set operation's first; none where a star is among them."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    items = query.expressions if isinstance(query, exp.Select) else []
    return [] if any(item.is_star for item in items) else [item.unalias() for item in items]


def _values(node: exp.Expr) -> exp.Expr:
    """Columns without names are ``col0``, ``col1`` and so on; Spark counts from 1."""
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return node
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    name = exp.to_identifier("valueslist") if alias is None else alias.this.copy()
    columns = [exp.to_identifier(f"col{at}") for at in range(width)]
    rows = exp.Values(
        expressions=[row.copy() for row in node.expressions],
        alias=exp.TableAlias(this=name, columns=columns),
    )
    inside = isinstance(node.parent, exp.From | exp.Join)
    return rows if inside else exp.select("*").from_(rows)


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
    """Whether the window, or the one of WINDOW that it names, has an ORDER BY."""
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


def _limit(node: exp.Expr) -> exp.Expr:
    if node.find(exp.Query) is not None:
        raise refused("LIMIT or OFFSET of a query", "the number")
    return node


# Functions of a window for which Spark takes no frame.
_WITHOUT_FRAME = (
    *(exp.CumeDist, exp.DenseRank, exp.Lag, exp.Lead),
    *(exp.Ntile, exp.PercentRank, exp.Rank, exp.RowNumber),
)

_IN_AN_ORDER = (*_WITHOUT_FRAME, exp.FirstValue, exp.LastValue, exp.NthValue)


def _same(node: exp.Expr) -> exp.Expr:
    return node


def _escape(node: exp.Expr) -> exp.Expr:
    if text_of(node.this.expression) is None or text_of(node.expression) is None:
        raise refused("LIKE with a computed pattern")
    return node


OPERATORS: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Add: _add,
    exp.Any: _only_in_comparison,
    exp.Bracket: _bracket,
    exp.CTE: _cte,
    exp.Columns: _columns,
    exp.DPipe: _concatenation,
    exp.DateAdd: _date_add,
    exp.Distinct: _distinct,
    exp.Div: _div,
    exp.EQ: _any,
    exp.Escape: _escape,
    exp.Except: _set_operation,
    exp.ILike: _like,
    exp.In: _in,
    exp.IntDiv: _int_div,
    exp.Intersect: _set_operation,
    exp.Join: _join,
    exp.Lambda: _lambda,
    exp.Like: _like,
    exp.Limit: _limit,
    exp.Literal: _literal,
    exp.Mod: _mod,
    exp.Offset: _limit,
    exp.Ordered: _ordered,
    exp.Select: _select,
    exp.Slice: _same,
    exp.Star: _star,
    exp.Sub: _sub,
    exp.Union: _set_operation,
    exp.Values: _values,
    exp.Window: _window,
    exp.WindowSpec: _frame,
}
