"""Resolve the names of tables in sqlglot's tree of a query, as Spark and DuckDB compare them.

sqlglot's own `optimizer.scope` compares names by case, among others (ADR 0031). What a column
derives from, and what is not known of that, is `penstock.model.lineage.scope`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.lazy import exp
from penstock.sql.identifiers import fold

_ODD = ("joins", "laterals", "match", "pivots", "sample")


def sources_of(select: exp.Expr) -> tuple[list[exp.Expr], Sequence[exp.Join]]:
    """Return what a SELECT reads, its FROM first, and the joins. Without a FROM
    it reads nothing.
    """
    start, joins = select.args.get("from_"), select.args.get("joins") or ()
    return [] if start is None else [start.this, *(join.this for join in joins)], joins


def all_sources(select: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the sources of a SELECT, each of those joined in brackets, and its lateral views."""
    waiting = [*sources_of(select)[0], *(select.args.get("laterals") or ())]
    while waiting:
        source = waiting.pop(0)
        joined = [join.this for join in source.args.get("joins") or ()]
        in_brackets = isinstance(source, exp.Subquery) and not isinstance(source.this, exp.Query)
        if in_brackets and not source.alias:
            joined = [source.this, *joined]
        else:
            yield source
        waiting = [*joined, *waiting]


def called(source: exp.Expr) -> str:
    """Return what its columns are qualified by, folded."""
    return fold(source.alias_or_name)


def is_plain(source: exp.Expr) -> bool:
    """Return whether its rows and columns are those of what it names, and of nothing joined."""
    return not source.alias_column_names and not any(map(source.args.get, _ODD))


def common_table(table: exp.Table) -> exp.CTE | None:
    """Return the query of a WITH around the table that its name means."""
    if table.db:
        return None
    name = table.name.lower()
    child: exp.Expr = table
    node = table.parent
    while node is not None:
        visible: list[exp.CTE] = []
        if isinstance(node, exp.With):
            position = next((n for n, cte in enumerate(node.expressions) if cte is child), 0)
            visible = node.expressions[: position + bool(node.args.get("recursive"))]
        else:
            with_ = node.args.get("with_")
            visible = with_.expressions if with_ is not None and with_ is not child else []
        found: exp.CTE | None = next((cte for cte in visible if cte.alias.lower() == name), None)
        if found is not None:
            return found
        child, node = node, node.parent
    return None


def select_around(select: exp.Expr) -> exp.Select | None:
    """Return the SELECT around one whose tables are visible inside."""
    child, node = select, select.parent
    while node is not None and not isinstance(node, exp.Select):
        derived = isinstance(node, exp.From | exp.Join) and node.this is child
        if isinstance(node, exp.CTE) or (derived and not isinstance(child, exp.Lateral)):
            return None
        child, node = node, node.parent
    return node
