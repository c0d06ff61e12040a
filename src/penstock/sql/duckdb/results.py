"""Rules about the results of whole queries: set operations, ORDER BY ALL and positions.

Only Spark knows their types, and of a star not even the text tells how many there are. So the text
asks Spark for the type of the query's row. The question stands in the WHERE of the first SELECT
and is answered when the query is analysed: nothing of it is left in the plan (`guards.unless`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from penstock.lazy import exp
from penstock.sql.duckdb import guards
from penstock.sql.identifiers import fold

# A letter for each type in the row: S for what holds others, T for a text, ? for NULL, else N.
_KINDS = f"ARRAY_JOIN(REGEXP_EXTRACT_ALL(TYPEOF(:row), '{guards.ANY_TYPE}', 1), ';')"
for _types, _letter in (
    ("(array|struct|map);?", "S"),
    ("string;?", "T"),
    ("void;?", "?"),
    ("[a-z][^;]*;?", "N"),
):
    _KINDS = f"REGEXP_REPLACE({_KINDS}, '{_types}', '{_letter}')"
_HAS_NESTED = "TYPEOF(:row) RLIKE '[:<,](array|struct)<'"
_NESTED = "TYPEOF(:o0) LIKE 'struct%' OR TYPEOF(:o0) LIKE 'array%'"
_CAST = "a cast to one type"


def _set_operation(node: exp.Expr) -> exp.Expr:
    """Of a text and a number DuckDB makes texts, Spark numbers (and dates of a text and a date)."""
    if _holder(node) is not None:  # which looks at the branches of all
        return node
    what = f"{node.key.upper()} of texts and other values"
    branches = list(_branches(node))
    if _known_alike(what, branches) or _recursive(node):
        return node
    together = f"REPLACE(REPLACE({_kinds('o0')}, 'T', '[T?]'), 'N', '[N?]')"
    each = ", ".join(_kinds(f"o{at}") for at in range(1, len(branches) + 1))
    alike = f"CONCAT_WS(';', {each}, '') RLIKE CONCAT('^(', {together}, ';)*$')"
    _guard(node, what, _CAST, f"NOT ({alike})", node, *branches)
    # Of structs whose fields differ in order: DuckDB puts them together by name, Spark by position.
    fields = ", ".join(_fields(f"o{position}") for position in range(1, len(branches) + 1))
    alike = f"CONCAT_WS(';', {fields}, '') = REPEAT(CONCAT({_fields('o0')}, ';'), {len(branches)})"
    check = f"TYPEOF(:o0) LIKE 'struct<%struct<%' AND NOT ({alike})"
    what = f"{node.key.upper()} of structs with fields in another order"
    _guard(node, what, "the fields in one order", check, node, *branches)
    return node


# What is balanced within so many brackets, and the name of a column, behind which all is balanced.
_BALANCED = "[^<>]"
for _ in range(6):
    _BALANCED = f"([^<>]|<{_BALANCED}*>)"
_TOP_NAME = f"(?<=^|,)[^<>,:]+:(?={_BALANCED}*$)"
_SCALAR = "(?<=^|[:<,])(interval [a-z ]+|[a-z_]+([(][0-9]+,[0-9]+[)])?)(?=$|[,<>])"


def _fields(row: str) -> str:
    """The nested fields of a row's type: without names of columns and types of values."""
    inner = f"REGEXP_REPLACE(LOWER(TYPEOF(:{row})), '^struct<|>$', '')"
    return f"REGEXP_REPLACE(REGEXP_REPLACE({inner}, '{_TOP_NAME}', ''), '{_SCALAR}', '')"


def _kinds(row: str) -> str:
    return _KINDS.replace(":row", f":{row}")


def _holder(node: exp.Expr) -> exp.Expr | None:
    """The set operation that a set operation is a branch of."""
    parent = node.parent
    while isinstance(parent, exp.Subquery):
        parent = parent.parent
    held = isinstance(parent, exp.SetOperation) and not node.args.get("with_")
    return parent if held else None


def _branches(query: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what a set operation puts together, those within its branches as well, in order."""
    for branch in (query.this, query.expression):
        inner = branch.unnest()
        if isinstance(inner, exp.SetOperation) and not inner.args.get("with_"):
            yield from _branches(inner)
        else:
            yield inner


def _known_alike(what: str, branches: list[exp.Expr]) -> bool:
    """Return whether the texts among the results are known, and stand beside texts only."""
    rows = [_items(branch) for branch in branches]
    for column in zip(*rows, strict=False):
        number = next((item for item in column if guards.is_number(item)), None)
        text = next((item for item in column if guards.is_text(item)), None)
        if number is not None and text is not None:
            later = max(number, text, key=column.index)
            raise guards.placed(guards.refused(what, _CAST), later)
    known = all(
        isinstance(item, exp.Null)
        or guards.is_text(item)
        or guards.is_number(item)
        or guards.is_condition(item)
        for row in rows
        for item in row
    )
    return known and all(rows)


def _items(query: exp.Expr) -> list[exp.Expr]:
    """The results of a SELECT; none where a star is among them."""
    items = query.expressions if isinstance(query, exp.Select) else []
    return [] if any(item.is_star for item in items) else [item.unalias() for item in items]


def _recursive(node: exp.Expr) -> bool:
    """Return whether it makes a recursive table: its branches cannot be looked at on their own."""
    cte = node.parent
    name = fold(cte.alias) if isinstance(cte, exp.CTE) else None
    return name in {fold(table.name) for table in node.find_all(exp.Table)}


def _guard(query: exp.Expr, what: str, advice: str, check: str, *rows: exp.Expr) -> None:
    """Refuse ``query`` where ``check`` holds, in which ``:o0``, ``:o1`` are rows of ``rows``."""
    _guard_value(query, what, advice, check, [_row(row, query) for row in rows])


def _guard_value(
    query: exp.Expr, what: str, advice: str, check: str, asked: list[exp.Expr]
) -> None:
    select = query
    while not isinstance(select, exp.Select):
        select = select.this
    where = select.args.get("where")
    condition = exp.true() if where is None else where.this
    select.set("where", exp.Where(this=guards.guarded(what, advice, [check], condition, asked)))


def _row(query: exp.Expr, root: exp.Expr, column: exp.Expr | None = None) -> exp.Expr:
    """A value of the type of the query's row, or of its ``column``, never computed, for a place
    within ``root``.
    """
    alone = guards.unguarded(query)
    for clause in ("order", "limit", "offset", *(["with_"] if query is root else [])):
        alone.set(clause, None)
    if column is None:  # which names a result as it is
        _name_plainly(alone)
    row = exp.select(column.copy()) if column is not None else guards.spark("SELECT STRUCT(*)")
    assert isinstance(row, exp.Select)
    return exp.Subquery(this=row.from_(exp.Subquery(this=alone), copy=False))


def _name_plainly(query: exp.Expr) -> None:
    """Rename results whose name is an expression, as ``{'a': 1}``: it looks like part of a type."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    for position, item in enumerate(query.expressions if isinstance(query, exp.Select) else []):
        if isinstance(item, exp.Alias) and not re.fullmatch(r"\w+", item.alias):
            item.set("alias", exp.to_identifier(f"_{position}"))


def check_positions(query: exp.Expr) -> None:
    """A list or struct is sorted otherwise in DuckDB, also by ORDER BY ALL or a position."""
    order = query.args.get("order")
    unknown = False
    for key in order.expressions if order is not None else []:
        position = guards.whole_number(key.this)
        everything = fold(key.this.name) == "all"
        if position is None and not everything:
            continue
        column = None if position is None else _column(query, position)
        if column is None:
            unknown = True
        elif guards.in_order("", column) is not column:
            asked = _row(query, query, column)
            _guard_value(query, "ORDER BY of struct, array", "", _NESTED, [asked])
    if unknown:
        what = "ORDER BY ALL or a position beside a list or struct"
        _guard(query, what, "the columns to sort by", _HAS_NESTED.replace(":row", ":o0"), query)


def _column(query: exp.Expr, position: int) -> exp.Expr | None:
    """A result by its name, or as it is where its type is known; ``None`` behind a star."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    items = _items(query)
    if not 0 < position <= len(items):
        return None
    item = items[position - 1]
    if guards.in_order("", item) is item:
        return item
    names = [fold(other.alias_or_name) for other in query.expressions]
    name = query.expressions[position - 1].alias_or_name
    return exp.column(name, quoted=True) if name and names.count(fold(name)) == 1 else None


RESULTS: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Except: _set_operation,
    exp.Intersect: _set_operation,
    exp.Union: _set_operation,
}
