"""Lists made of a rule and rows made of lists: ``range``, ``unnest``, list comprehensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import refused, spark, unless, whole_number
from penstock.sql.duckdb.lists import array
from penstock.sql.duckdb.spans import span
from penstock.sql.identifiers import fold
from penstock.sql.lake_names import MAINTENANCE, NAMES, PREFIX

_NOT_WHOLE = "float|double|decimal%|string|date|timestamp%"
_LIST = (
    "CASE WHEN {a} {compared} {last} THEN SEQUENCE({a}, {last}, {step}L) WHEN {a} IS NOT NULL "
    "AND {last} IS NOT NULL THEN CAST(ARRAY() AS ARRAY<BIGINT>) END"
)
_A, _B = "CAST(:a AS TIMESTAMP_NTZ)", "CAST(:b AS TIMESTAMP_NTZ)"


def _sequence(node: exp.Expr) -> exp.Expr:
    """A list of BIGINT; of moments, of TIMESTAMP."""
    if isinstance(node.parent, exp.Table):
        return node  # for `_table`
    return _items(node)


def _items(node: exp.Expr) -> exp.Expr:
    start, end, step = (node.args.get(key) for key in ("start", "end", "step"))
    if start is None or end is None:
        raise refused(f"{_name(node)} of this form")
    by = None if step is None else span(step)
    if by is not None:
        return _moments(node, start, end, by)
    size = 1 if step is None else whole_number(step)
    if not size:
        raise refused(f"{_name(node)} with this step")
    short = (1 if size > 0 else -1) if _exclusive(node) else 0
    text = _LIST.format(
        a="CAST(:a AS BIGINT)",
        compared="<=" if size > 0 else ">=",
        last=f"(CAST(:b AS BIGINT) - {short})",
        step=size,
    )
    return unless(_name(node), _NOT_WHOLE, spark(text, a=start, b=end), start, end)


def _moments(
    node: exp.Expr, start: exp.Expr, end: exp.Expr, by: tuple[str, exp.Expr | None]
) -> exp.Expr:
    """By months DuckDB continues from the day that the month before had, Spark from the first."""
    step, amount = by
    if amount is not None or "'-" in step or "'0'" in step:
        raise refused(f"{_name(node)} with this step")
    text = f"IF({_A} <= {_B}, SEQUENCE({_A}, {_B}, {step}), CAST(ARRAY() AS ARRAY<TIMESTAMP_NTZ>))"
    if _exclusive(node):
        text = f"FILTER({text}, e -> e < {_B})"
    if "MONTH" in step or "YEAR" in step:
        text = f"IF(DAY({_A}) > 28, RAISE_ERROR('a series by months from that day'), {text})"
    text = f"IF(:a IS NULL OR :b IS NULL, NULL, {text})"
    return unless(_name(node), "timestamp|string", spark(text, a=start, b=end), start, end)


def _exclusive(node: exp.Expr) -> bool:
    return bool(node.args.get("is_end_exclusive"))


def _name(node: exp.Expr) -> str:
    return "range" if _exclusive(node) else "generate_series"


def _table(node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Identifier):
        return _file(node, node.name) if _is_file(node) else node
    if isinstance(node.this, exp.ReadParquet) and len(node.this.expressions) == 1:
        path = node.this.expressions[0]
        if isinstance(path, exp.Literal) and path.is_string:
            return _file(node, path.name)
    if isinstance(node.this, exp.Anonymous) and fold(node.this.name) in _OF_LAKES:
        return node
    if isinstance(node.this, exp.GenerateSeries):
        return _rows(_items(node.this), _name(node.this), node)
    raise refused(f"the table function {node.this.name or node.this.key}")


_OF_LAKES = NAMES | MAINTENANCE | {f"{PREFIX}{name}" for name in MAINTENANCE}


def _of_lake(node: exp.Expr) -> exp.Expr:
    """A function of the lake, which is called as in Spark's dialect, where a table stands."""
    if not isinstance(node.parent, exp.Table):
        raise refused(f"{fold(node.name)} as a value", f"FROM {fold(node.name)}(...)")
    return node


def _named_argument(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.Anonymous) or fold(node.parent.name) not in _OF_LAKES:
        raise refused(f"the argument {node.this.name} by its name")
    return node


def _is_file(node: exp.Expr) -> bool:
    """A table's name that DuckDB takes for a file when there is no such table."""
    return not node.args.get("db") and node.name.lower().endswith((".parquet", ".csv", ".json"))


def _file(node: exp.Expr, path: str) -> exp.Expr:
    """Parquet holds its types; ``**`` and directories ``key=value`` Spark reads otherwise."""
    if not path.lower().endswith(".parquet") or "**" in path or "=" in path:
        raise refused(f"the file {path}")
    name = path.rsplit("/", 1)[-1].removesuffix(".parquet")
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    return exp.Table(
        this=exp.to_identifier(path, quoted=True),
        db=exp.to_identifier("parquet"),
        alias=alias.copy(),
    )


def _unnest(node: exp.Expr) -> exp.Expr:
    """In a SELECT it is EXPLODE, which sqlglot writes; as a table its column is ``unnest``."""
    if not isinstance(node.parent, exp.From | exp.Join):
        return node
    if len(node.expressions) != 1 or node.args.get("offset"):
        raise refused("unnest of this form")
    return _rows(node.expressions[0], "unnest", node)


def _rows(items: exp.Expr, name: str, node: exp.Expr) -> exp.Expr:
    """A row for each item, in one column called ``name`` if nothing else is said.

    sqlglot writes what is joined like that as LATERAL VIEW.
    """
    join, alias = node.parent, node.args.get("alias")
    if isinstance(join, exp.Join) and (join.args.get("side") or join.args.get("on")):
        raise refused(f"a join with {name} that has a side or a condition")
    columns = [] if alias is None else alias.args.get("columns") or []
    if len(columns) > 1:
        raise refused(f"{name} as a table of several columns")
    table = exp.to_identifier(name) if alias is None or alias.this is None else alias.this.copy()
    shown = [column.copy() for column in columns] or [exp.to_identifier(name)]
    return exp.Unnest(expressions=[items.copy()], alias=exp.TableAlias(this=table, columns=shown))


def _array(node: exp.Expr) -> exp.Expr:
    (only,) = node.expressions if len(node.expressions) == 1 else (None,)
    if isinstance(only, exp.Query):
        raise refused("a list of a subquery's rows")
    return _comprehended(only) if isinstance(only, exp.Comprehension) else array(node)


def _comprehended(node: exp.Expr) -> exp.Expr:
    """``[y + 1 FOR y IN l IF y > 1]``."""
    name, items, condition = node.expression, node.args["iterator"], node.args.get("condition")
    if node.args.get("position") is not None or not isinstance(name, exp.Identifier):
        raise refused("a list comprehension of this form")
    if condition is not None:
        items = _applied("FILTER", items, name, condition)
    return _applied("TRANSFORM", items, name, node.this)


def _applied(function: str, items: exp.Expr, name: exp.Expr, body: exp.Expr) -> exp.Expr:
    step = exp.Lambda(this=body.copy(), expressions=[name.copy()])
    return exp.Anonymous(this=function, expressions=[items.copy(), step])


SEQUENCES: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Array: _array,
    exp.Comprehension: lambda node: node,  # for `_array`, which is around it
    exp.GenerateSeries: _sequence,
    exp.Kwarg: _named_argument,
    exp.ReadParquet: lambda node: node,  # for `_table`
    exp.Table: _table,
    exp.Unnest: _unnest,
}
OF_LAKES: Mapping[str, Callable[[exp.Expr], exp.Expr]] = dict.fromkeys(_OF_LAKES, _of_lake)
