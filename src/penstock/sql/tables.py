"""Find the tables that a SELECT names, their places, and what its conditions say of each.

Read with sqlglot, which runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lazy import exp
from penstock.sql.dialect import parse
from penstock.sql.identifiers import fold
from penstock.sql.query.edits import edited, table_first
from penstock.sql.query.names import called, common_table, is_plain, sources_of
from penstock.sql.text import Span, mask, wrong
from penstock.sql.time_travel import Clause, Travel, find_clauses, travel
from penstock.sql.tokens import SqlText, Token

# `parquet.`/path`` and its like are files to Spark, not tables.
FORMATS = {"parquet", "csv", "json", "orc", "text", "avro", "xml", "binaryfile"}
_NEAREST = {
    "insert": "lake.table(name).append(df)",
    "merge": "lake.table(name).merge(df, keys)",
    "create": "lake.table(name).replace(df)",
    "delete": "lake.table(name).delete(condition)",
    "update": "lake.table(name).update(assignments, condition)",
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A table named at ``text[start:end]``, which includes its time travel but not its alias."""

    start: int
    end: int
    schema: str | None
    name: str
    travel: Travel | None
    aliased: bool
    node: exp.Table | None = field(default=None, compare=False, repr=False)  # in the tree
    catalog: str | None = None  # of ``lake.main.t``

    @property
    def called(self) -> str:
        """Return what its columns are qualified by, folded."""
        return fold(self.name) if self.node is None else called(self.node)


@dataclass(frozen=True, slots=True)
class Qualifier:
    """``main.`` of a column written ``main.orders.id``, at ``text[start:end]``.

    The lake's name may stand before it (``catalog``).
    """

    start: int
    end: int
    schema: str
    name: str
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """One SELECT as read: its text, its tree, and what it names, in the order of the text."""

    text: str
    tree: exp.Expression
    tokens: Sequence[Token] = field(repr=False)
    tables: tuple[Reference, ...]
    qualifiers: tuple[Qualifier, ...]
    files: tuple[str, ...] = ()  # what Spark reads as files, as written in its own SQL


def analyse(query: str | SqlText) -> Analysis:
    """Read one SELECT, in Spark's dialect with the lake's time travel added.

    Raises Unreadable; UnsupportedFeature for other statements, naming what does it instead.
    """
    source = SqlText(query) if isinstance(query, str) else query
    text, tokens = source.text, source.tokens
    clauses = {tokens[clause.first - 1].end: clause for clause in find_clauses(tokens)}
    spans = [(tokens[c.first].start, tokens[c.last].end, "") for c in clauses.values()]
    tree = _only_select(parse(mask(text, spans)))
    named = [table for table in named_tables(tree) if fold(table.db) not in FORMATS]
    references = [_reference(table, clauses, tokens, text) for table in named]
    if clauses:
        clause = next(iter(clauses.values()))
        raise wrong("no table is before the snapshot", text, tokens[clause.first].start)
    columns = [_qualifier(c) for c in tree.find_all(exp.Column) if c.args.get("db") is not None]
    return Analysis(
        text,
        tree,
        tokens,
        tuple(references),
        tuple(sorted(columns, key=lambda q: q.start)),
        tuple(table.sql("spark") for table in tree.find_all(exp.Table) if _is_file(table)),
    )


def _only_select(trees: Sequence[Any]) -> exp.Expression:
    if len(trees) != 1:
        raise QueryFailed(
            f"one SELECT is expected, the text holds {len(trees)} statements",
            hint="run them one by one",
        )
    tree: exp.Expression = trees[0]
    if not isinstance(tree, exp.Query | exp.Values):
        kind = tree.key if tree.key != "command" else str(tree.this).lower()
        raise UnsupportedFeature(
            f"{kind.upper()} is not a statement that sql() runs",
            hint=f"use {_NEAREST[kind]}" if kind in _NEAREST else "write a SELECT",
            data={"statement": kind},
        )
    return tree


def named_tables(tree: exp.Expr) -> list[exp.Table]:
    """Names after FROM or JOIN that are not common table expressions, in the order of the text.

    Functions are left out, and names in hints, which speak of aliases.
    """
    named = [table for table in _all_tables(tree) if _is_name(table)]
    tables = [table for table in named if common_table(table) is None]
    return sorted(tables, key=lambda table: span_of(table)[0])


def _all_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """``tree.find_all(exp.Table)`` that passes over columns and literals, which most nodes are."""
    column, leaves = exp.Column, {type(None), bool, str, exp.Identifier, exp.Literal}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Table):
            yield node
        for value in node.args.values():
            kind = type(value)
            if kind in leaves:
                continue
            # A plain name, not `t.* REPLACE ((SELECT ...) AS x)`.
            if kind is column and type(value.args.get("this")) is exp.Identifier:
                continue
            below = value if kind is list else (value,)
            waiting += [each for each in below if isinstance(each, exp.Expr)]


def span_of(table: exp.Table) -> Span:
    """Return where the name stands in the text."""
    parts = table.parts
    return int(parts[0].meta["start"]), int(parts[-1].meta["end"]) + 1


def _is_name(table: exp.Table) -> bool:
    named = all(isinstance(part, exp.Identifier) and "start" in part.meta for part in table.parts)
    return named and table.find_ancestor(exp.Hint) is None


def _is_file(table: exp.Table) -> bool:
    """Return whether it is neither a table of the lake nor a function."""
    if isinstance(table.this, exp.Identifier):
        return fold(table.db) in FORMATS
    return not isinstance(table.this, exp.Func)


def _reference(
    table: exp.Table, clauses: dict[int, Clause], tokens: Sequence[Token], text: str
) -> Reference:
    """Takes the table's clause out of ``clauses``, which are by the end of what is before them."""
    start, end = span_of(table)
    clause, when = clauses.pop(end, None), None
    if clause is not None:
        last = tokens[clause.last].end
        when, end = travel(clause, text, text[start:last]), last
    if table.args.get("version") or table.args.get("when"):
        raise UnsupportedFeature(
            f"what follows {text[start:end]} names no snapshot",
            hint="write AT (VERSION => 3)",
            data={"reference": text[start:end]},
        )
    return Reference(
        start=start,
        end=end,
        schema=table.db or None,
        name=table.name,
        travel=when,
        aliased=bool(table.alias),
        node=table,
        catalog=table.catalog or None,
    )


def _qualifier(column: exp.Column) -> Qualifier:
    db, table, catalog = column.args["db"], column.args["table"], column.args.get("catalog")
    first = db if catalog is None else catalog
    return Qualifier(
        start=first.meta["start"],
        end=table.meta["start"],
        schema=db.name,
        name=table.name,
        catalog=None if catalog is None else catalog.name,
    )


_TABLE = re.compile(r"\btable\b", re.I)


def in_full(source: SqlText) -> SqlText:
    """The text with every ``TABLE t`` that is a query of its own written out."""
    if not _TABLE.search(source.text):
        return source
    try:
        edits = table_first(source.tokens)
    except QueryFailed:
        return source
    return SqlText(edited(source.text, edits).text) if edits else source


@dataclass(frozen=True, slots=True)
class Scope:
    """A table as one SELECT has it.

    ``name`` is what its columns are qualified with, folded; ``alone`` that there is no other
    source of rows, so that names without a qualifier are its own. ``conditions`` are those that
    every row of it must satisfy to matter, each with whether an outer join may have put NULLs in
    the row's place before.
    """

    name: str
    schema: str | None  # None as well when it has an alias
    alone: bool
    conditions: tuple[tuple[exp.Expr, bool], ...]


def scope_of(table: exp.Table) -> Scope | None:
    """``None`` where rows cannot be left out: samples, pivots, tables that are not in a FROM, the
    right side of an ASOF JOIN.
    """
    select = table.find_ancestor(exp.Select)
    if select is None or _is_odd(table) or any(map(select.args.get, ("match", "sample"))):
        return None
    sources, joins = sources_of(select)
    place = next((at for at, source in enumerate(sources, -1) if source is table), None)
    if place is None or any(join.args.get("pivots") for join in joins):
        return None
    if place >= 0 and str(joins[place].args.get("method") or "").upper() == "ASOF":
        return None  # without a row that a condition drops, an earlier one would be the nearest
    # Whether an outer join (or one not known) can yield rows in which the table has none.
    own = place >= 0 and (_side(joins[place]) in {"LEFT", "FULL"} or not _is_plain(joins[place]))
    later = (_side(j) in {"RIGHT", "FULL"} or not _is_plain(j) for j in joins[place + 1 :])
    missing = own or any(later)
    where = select.args.get("where")
    conditions = [] if where is None else [(where.this, missing)]
    conditions += _ons(place, joins, missing)
    return Scope(
        name=called(table),
        schema=fold(table.db) if table.db and not table.alias else None,
        alone=not joins and not select.args.get("laterals"),
        conditions=tuple(conditions),
    )


def _is_odd(table: exp.Table) -> bool:
    return not is_plain(table) or isinstance(table.parent, exp.TableSample | exp.Pivot)


def _side(join: exp.Join) -> str:
    return str(join.args.get("side") or "").upper()


def _is_plain(join: exp.Join) -> bool:
    """Return whether it is a join whose meaning for its two sides is known here."""
    kind = str(join.args.get("kind") or "").upper()
    method = str(join.args.get("method") or "").upper()
    return (
        kind in {"", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"}
        and method in {"", "NATURAL"}
        and join.args.get("match_condition") is None
    )


def _ons(place: int, joins: Sequence[exp.Join], missing: bool) -> list[tuple[exp.Expr, bool]]:
    """The ON conditions that rows must satisfy to matter.

    An inner join drops the rows of both its sides that fail; the others keep the rows of one side
    whatever the ON says, and of the other side only those that satisfy it matter.
    """
    found: list[tuple[exp.Expr, bool]] = []
    for at, join in enumerate(joins):
        on, side = join.args.get("on"), _side(join)
        kind = str(join.args.get("kind") or "").upper()
        if on is None or not _is_plain(join) or at < place:
            continue
        drops_left = (
            side == "RIGHT"
            or (side == "" and kind in {"", "INNER", "CROSS", "SEMI"})
            or (side, kind) == ("LEFT", "SEMI")
        )
        if at == place and side in {"", "LEFT"}:
            found.append((on, False))  # tested against the rows themselves
        elif at > place and drops_left:
            found.append((on, missing))
    return found
