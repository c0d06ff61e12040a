"""Where in a query a table's rows are looked at: its SELECT, and what stands around it there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.identifiers import fold


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
    """``None`` where rows cannot be left out: samples, pivots, tables that are not in a FROM."""
    select = table.find_ancestor(exp.Select)
    if select is None or _is_odd(table) or any(map(select.args.get, ("match", "sample"))):
        return None
    joins: Sequence[exp.Join] = select.args.get("joins") or ()
    place = _place(table, select, joins)
    if place is None or any(join.args.get("pivots") for join in joins):
        return None
    missing = _may_be_missing(place, joins)
    where = select.args.get("where")
    conditions = [] if where is None else [(where.this, missing)]
    conditions += _ons(place, joins, missing)
    return Scope(
        name=fold(table.alias or table.name),
        schema=fold(table.db) if table.db and not table.alias else None,
        alone=not joins and not select.args.get("laterals"),
        conditions=tuple(conditions),
    )


def _is_odd(table: exp.Table) -> bool:
    alias = table.args.get("alias")
    renamed = alias is not None and bool(alias.args.get("columns"))
    odd = ("sample", "pivots", "laterals", "joins")
    return (
        renamed
        or any(table.args.get(key) for key in odd)
        or isinstance(table.parent, exp.TableSample | exp.Pivot)
    )


def _place(table: exp.Table, select: exp.Select, joins: Sequence[exp.Join]) -> int | None:
    """-1 for the FROM, the number of the join otherwise."""
    start = select.args.get("from_") or select.args.get("from")
    if start is not None and start.this is table:
        return -1
    return next((at for at, join in enumerate(joins) if join.this is table), None)


def _side(join: exp.Join) -> str:
    return str(join.args.get("side") or "").upper()


def _is_plain(join: exp.Join) -> bool:
    """Whether it is a join whose meaning for its two sides is known here."""
    kind = str(join.args.get("kind") or "").upper()
    method = str(join.args.get("method") or "").upper()
    return (
        kind in {"", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"}
        and method in {"", "NATURAL"}
        and join.args.get("match_condition") is None
    )


def _may_be_missing(place: int, joins: Sequence[exp.Join]) -> bool:
    """Whether an outer join (or one not known) can yield rows in which the table has none."""
    own = place >= 0 and (_side(joins[place]) in {"LEFT", "FULL"} or not _is_plain(joins[place]))
    later = (_side(j) in {"RIGHT", "FULL"} or not _is_plain(j) for j in joins[place + 1 :])
    return own or any(later)


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
        if at == place and side in {"", "LEFT"}:
            found.append((on, False))  # tested against the rows themselves
        elif at > place and _drops_left(side, kind):
            found.append((on, missing))
    return found


def _drops_left(side: str, kind: str) -> bool:
    inner = side == "" and kind in {"", "INNER", "CROSS"}
    return inner or side == "RIGHT" or (side, kind) in {("LEFT", "SEMI"), ("", "SEMI")}
