"""DuckDB's ``rowid`` in queries: a column of every table that only who names it sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from penstock.errors import UnsupportedFeature
from penstock.lake.format.naming import fold
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.sql.tables import Analysis, Reference
from penstock.sql.text import Edit, braces

ROWID = "rowid"


def wanted(analysis: Analysis) -> set[int]:
    """Where the tables are named whose row ids the query may mean.

    A name without a table is of the nearest SELECT that reads tables of the lake.
    """
    tables = {id(table.node): table for table in analysis.tables}
    found: set[int] = set()
    for column in analysis.tree.find_all(exp.Column):
        if fold(column.name) == ROWID and not isinstance(column.this, exp.Star):
            found |= {one.start for one in _meant(column, tables)}
    return found


def _meant(column: exp.Column, tables: dict[int, Reference]) -> list[Reference]:
    select = column.find_ancestor(exp.Select)
    while select is not None:
        sources = [
            tables[id(table)]
            for table in select.find_all(exp.Table)
            if id(table) in tables and table.find_ancestor(exp.Select) is select
        ]
        if column.table:
            sources = [source for source in sources if _called(source) == fold(column.table)]
        if sources:
            return sources
        select = select.find_ancestor(exp.Select)
    return []


def _called(one: Reference) -> str:
    assert one.node is not None, "a reference outside of a tree"
    return fold(one.node.alias or one.name)


def hidden(analysis: Analysis, exposed: Sequence[Reference]) -> Iterator[Edit]:
    """``*`` does not have the row ids of the tables that were given them."""
    selects: dict[int, tuple[exp.Select, list[Reference]]] = {}
    for one in exposed:
        select = one.node.find_ancestor(exp.Select) if one.node is not None else None
        if select is None:
            raise UnsupportedFeature("rowid in this form of query", hint="write a SELECT")
        selects.setdefault(id(select), (select, []))[1].append(one)
    for select, tables in selects.values():
        _check_joins(select)
        for star in select.find_all(exp.Star):
            if star.find_ancestor(exp.Select) is select:
                yield from _hide(analysis, select, star, tables)


def _check_joins(select: exp.Select) -> None:
    joins: Iterable[exp.Join] = select.args.get("joins") or ()
    if any(str(join.args.get("method") or "").upper() == "NATURAL" for join in joins):
        raise UnsupportedFeature(
            "rowid over a NATURAL join", hint="name the columns of the join in USING"
        )


def _hide(
    analysis: Analysis, select: exp.Select, star: exp.Star, tables: Sequence[Reference]
) -> Iterator[Edit]:
    holder = star.parent
    if isinstance(holder, exp.Count):
        return
    qualifier = None
    if isinstance(holder, exp.Column):
        qualifier, holder = fold(holder.table), holder.parent
    if holder is not select:
        raise UnsupportedFeature("rowid beside a * inside an expression", hint="name the columns")
    names = [
        f"{quoted(table.node.alias or table.name)}.{ROWID}"
        for table in tables
        if table.node is not None and qualifier in {None, _called(table)}
    ]
    if not names:
        return
    left_out = braces(", ".join(names))
    end = int(star.meta["end"]) + 1
    listed = next((t for t in analysis.tokens if t.start >= end), None)
    if listed is not None and listed.text.upper() in {"EXCEPT", "EXCLUDE"}:
        opening = next(t for t in analysis.tokens if t.start > listed.start)
        yield Edit(opening.end, opening.end, f"{left_out}, ")
    else:
        yield Edit(end, end, f" EXCEPT ({left_out})")
