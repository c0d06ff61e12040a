"""Find the hidden columns that a query reads, by its tables, and leave them out of its ``*``.

A name means a hidden column only where it can mean nothing else: a real column of that name, of any
table that is visible there, comes first, and so does an alias in the clauses that can name one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import UnsupportedFeature
from penstock.lake.format.naming import fold
from penstock.lake.reading.hidden import COLUMNS, NAMES, ROWID
from penstock.lazy import exp
from penstock.sql.identifiers import quoted
from penstock.sql.query.edits import Edit, braces
from penstock.sql.query.names import all_sources, called, common_table, select_around
from penstock.sql.tables import Analysis, Reference

# Clauses in which Spark finds no alias of the SELECT.
_WITHOUT_ALIASES = frozenset({"where", "joins", "from_", "laterals"})


@dataclass(frozen=True, slots=True)
class Mention:
    """A hidden column ``name`` of one of ``tables``.

    It is one only where none of ``rivals``, which include them, has a real column of that name.
    """

    name: str
    tables: tuple[Reference, ...]
    rivals: tuple[Reference, ...] = ()


def mentions(analysis: Analysis) -> list[Mention]:
    """Return the names in a query that may be hidden columns, as far as its text tells."""
    tables = {id(table.node): table for table in analysis.tables}
    found = (
        _mention(column, tables)
        for column in analysis.tree.find_all(exp.Column)
        if fold(column.name) in NAMES and not isinstance(column.this, exp.Star)
    )
    return [mention for mention in found if mention is not None]


def by_table(mentioned: Iterable[Mention]) -> dict[int, frozenset[str]]:
    """The names by the place of the table."""
    names: dict[int, frozenset[str]] = {}
    for mention in mentioned:
        for table in mention.tables:
            names[table.start] = names.get(table.start, frozenset()) | {mention.name}
    return names


def _mention(column: exp.Column, tables: Mapping[int, Reference]) -> Mention | None:
    """Find what a column names: a table by its qualifier, else the tables of the nearest SELECT
    that has some. ``rowid`` without a qualifier is that of these tables, whatever stands beside.
    """
    name, qualifier = fold(column.name), fold(column.table)
    select = column.find_ancestor(exp.Select)
    strict = name != ROWID and not qualifier
    if strict and select is not None and _is_alias(column, select):
        return None
    own: list[Reference] = []
    around: list[Reference] = []
    while select is not None:
        named, others = _sources(select, tables)
        if qualifier:
            own = [table for table in named if table.called == qualifier]
            others = [other for other in others if called(other) == qualifier]
            if own or others:
                break
        else:
            if strict and any(_may_have(other, name) for other in others):
                return None
            around += named
            own = own or named
            if own and not strict:
                break
        select = select_around(select)
    return Mention(name, tuple(own), tuple(around) if strict else ()) if own else None


def _is_alias(column: exp.Column, select: exp.Select) -> bool:
    """Return whether an item of the SELECT has this name, where the column may mean it."""
    item: exp.Expr = column
    while item.parent is not select:
        assert item.parent is not None, "the SELECT is around it"
        item = item.parent
    if item.arg_key in _WITHOUT_ALIASES:
        return False
    name = fold(column.name)
    return any(
        each is not item and name in map(fold, _names_of(each)) and not _is_hidden(each, name)
        for each in select.expressions
    )


def _names_of(item: exp.Expr) -> Sequence[str]:
    if isinstance(item, exp.Aliases):
        return [alias.name for alias in item.aliases]
    return [item.output_name]


def _is_hidden(item: exp.Expr, name: str) -> bool:
    """Return whether it is the name alone, which gives it no other meaning."""
    return isinstance(item, exp.Column) and not item.table and fold(item.name) == name


def _sources(
    select: exp.Select, tables: Mapping[int, Reference]
) -> tuple[list[Reference], list[exp.Expr]]:
    """Return what a SELECT reads: tables and views by name, and all else."""
    named: list[Reference] = []
    others: list[exp.Expr] = []
    for source in all_sources(select):
        if id(source) in tables and not source.args.get("pivots") and not source.alias_column_names:
            named.append(tables[id(source)])
        else:
            others.append(source)
    return named, others


def _may_have(source: exp.Expr, name: str) -> bool:
    """Return whether a subquery, common table expression or function may have a column."""
    columns = source.alias_column_names
    if columns:
        return name in map(fold, columns)
    query = source.this if isinstance(source, exp.Subquery) else None
    cte = common_table(source) if isinstance(source, exp.Table) else None
    if cte is not None:
        query = None if cte.alias_column_names else cte.this
    if not isinstance(query, exp.Query) or query.is_star or source.args.get("pivots"):
        return True
    return name in map(fold, query.named_selects)


def excluded(analysis: Analysis, exposed: Mapping[int, Collection[str]]) -> Iterator[Edit]:
    """Exclude from ``*`` the hidden columns that were added to tables, by their places."""
    selects: dict[int, tuple[exp.Select, list[Reference]]] = {}
    for reference in analysis.tables:
        names = exposed.get(reference.start)
        if not names:
            continue
        select = reference.node.find_ancestor(exp.Select) if reference.node is not None else None
        if select is None:
            raise _unsupported(names, "in this form of query", "write a SELECT")
        selects.setdefault(id(select), (select, []))[1].append(reference)
    for select, tables in selects.values():
        shown = {name for table in tables for name in exposed[table.start]}
        _check_joins(select, shown)
        columns = [
            (table.called, f"{quoted(table.node.alias or table.name)}.{name}")
            for table in tables
            if table.node is not None
            for name in COLUMNS
            if name in exposed[table.start]
        ]
        for star in select.find_all(exp.Star):
            if star.find_ancestor(exp.Select) is select:
                yield from _exclude(analysis, select, star, columns, shown)


def _unsupported(names: Iterable[str], where: str, hint: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{' and '.join(sorted(names))} {where}", hint=hint)


def _check_joins(select: exp.Select, names: Collection[str]) -> None:
    joins: Iterable[exp.Join] = select.args.get("joins") or ()
    if any(str(join.args.get("method") or "").upper() == "NATURAL" for join in joins):
        raise _unsupported(names, "over a NATURAL join", "name the columns of the join in USING")


def _exclude(
    analysis: Analysis,
    select: exp.Select,
    star: exp.Star,
    columns: Sequence[tuple[str, str]],
    shown: Collection[str],
) -> Iterator[Edit]:
    """``columns`` are hidden ones with what their table is called."""
    holder = star.parent
    if isinstance(holder, exp.Count):
        return
    qualifier = None
    if isinstance(holder, exp.Column):
        qualifier, holder = fold(holder.table), holder.parent
    if holder is not select:
        raise _unsupported(shown, "beside a * inside an expression", "name the columns")
    names = [column for table, column in columns if qualifier in {None, table}]
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
