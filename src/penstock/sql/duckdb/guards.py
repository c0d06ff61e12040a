"""Parts of the rules for DuckDB's SQL: refusals, text for Spark with parts put in, guards.

Columns have no type before Spark analyses a query. What an expression is by its form alone (a
text, a list, a DOUBLE, true or false) is decided by the last functions of this file; what depends
on a column's type is left to Spark (`unless`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import sqlglot

from penstock.errors import UnsupportedFeature
from penstock.lazy import exp

_SPARK = "databricks"
_MARK = "refused: "
_ADVICE = "; write "
# CAST to VARCHAR of these looks different; concatenation casts.
NOT_AS_TEXT = "float|double|binary|timestamp|struct%|map%|array%|variant|interval%"
_REFUSAL = re.compile(f"`{_MARK}([^`]*)`")


def refused(what: str, advice: str = "") -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{what} of DuckDB is not known to mean the same on Spark",
        hint=f"write {advice}" if advice else "read it with DuckDB, or write the query for Spark",
        data={"feature": what},
    )


def placed(error: UnsupportedFeature, node: exp.Expr) -> UnsupportedFeature:
    """The refusal of a node, with the offset where it begins as ``data["start"]``.

    Of a node without a place it is the place of what holds it.
    """
    holder: exp.Expr | None = node
    while holder is not None:
        starts = [int(part.meta["start"]) for part in holder.walk() if "start" in part.meta]
        if starts:
            error.data.setdefault("start", min(starts))
            break
        holder = holder.parent
    return error


def called(node: exp.Expr) -> str:
    """The name of a function."""
    return str(node.sql_name() if isinstance(node, exp.Func) else node.key).lower()


def spark(template: str, **parts: exp.Expr) -> exp.Expr:
    """Spark's expression of a template in which ``:name`` stands for a part."""
    tree = _parsed(template).copy()
    for marker in list(tree.find_all(exp.Placeholder)):
        part = _closed(parts[marker.name].copy())  # a bracket becomes the parent
        if marker is tree:
            return part
        marker.replace(part)
    return tree


def substitute(tree: exp.Expr, node: exp.Expr, new: exp.Expr) -> exp.Expr:
    """Put a node in the place of another.

    Args:
        tree: The tree that has the node.
        node: The node that is replaced.
        new: The node that replaces it.

    Returns:
        The tree, which is ``new`` where the node was its root.
    """
    if node is tree:
        return new
    node.replace(new)
    return tree


def unless(
    what: str, types: str, node: exp.Expr, *operands: exp.Expr, advice: str = ""
) -> exp.Expr:
    """``node``, but `told` when an operand's type is like one of ``types``; ``advice`` is what to
    write then.

    Spark knows the types when it analyses the query. It then evaluates the name of the part that
    DATE_PART takes, and fails with that name if there is no such part; what is left is ``node``.
    What is known to be a text is not asked for its type: each check repeats the operand, and a
    chain of ``||`` would repeat all operands before at each of its links.
    """
    if not any(pattern.startswith("string") for pattern in types.split("|")):
        operands = tuple(operand for operand in operands if not is_text(operand))
    for operand in operands:
        kind = _number(operand)
        if any(pattern.removesuffix("%") == kind for pattern in types.split("|")):
            raise refused(f"{what} of {kind}", advice)
    checks = [
        f"TYPEOF(:o{at}) LIKE '{pattern}'"
        for at, operand in enumerate(operands)
        if not isinstance(operand, exp.Literal)
        for pattern in types.split("|")
    ]
    names = types.replace("%", "").replace("|", ", ")
    return guarded(f"{what} of {names}", advice, checks, node, operands)


def alike(what: str, node: exp.Expr, *operands: exp.Expr) -> exp.Expr:
    """``node``, but `told` when some operands are texts and others are not: DuckDB refuses them,
    Spark makes numbers of the texts. A text that is written out becomes what the others are.
    """
    others = [operand for operand in operands if text_of(operand) is None]
    numbers = [operand for operand in others if is_number(operand)]
    texts = [operand for operand in others if is_text(operand)]
    mixed, advice = f"{what} of a text and what is not a text", "a cast to one type"
    if numbers and texts:
        raise placed(refused(mixed, advice), texts[0])
    unknown = [
        operand
        for operand in others
        if operand not in (*numbers, *texts) and not isinstance(operand, exp.Null)
    ]
    if len(unknown) + bool(texts) + bool(numbers) < 2:
        return node
    types = [f"TYPEOF(:o{place})" for place in range(len(unknown))]
    a_text = ["TRUE"] * bool(texts) + [f"{name} LIKE 'string'" for name in types]
    another = ["TRUE"] * bool(numbers) + [f"({_not_text(name)})" for name in types]
    check = f"({' OR '.join(a_text)}) AND ({' OR '.join(another)})"
    return guarded(mixed, advice, [check], node, unknown)


def _not_text(name: str) -> str:
    return f"{name} NOT LIKE 'string' AND {name} NOT LIKE 'void'"


def guarded(
    what: str, advice: str, checks: Sequence[str], node: exp.Expr, operands: Sequence[exp.Expr]
) -> exp.Expr:
    """``node`` where none of the ``checks`` holds, in which ``:o0``, ``:o1`` are the operands.

    ``what`` and ``advice`` are part of a name to Spark, in which there is no full stop.
    """
    if not checks:
        return node
    named: dict[str, Any] = {f"o{at}": operand for at, operand in enumerate(operands)}
    mark = f"{_MARK}{what}{advice and _ADVICE + advice}".replace("'", "\\'")
    part = f"IF({' OR '.join(checks)}, '{mark}', 'YEAR')"
    test = f"DATE_PART({part}, DATE '2000-01-01') = 2000"
    return spark(f"IF({test}, :node, NULL)", node=node, **named)


def of_text(what: str, node: exp.Expr, *operands: exp.Expr) -> exp.Expr:
    """``node``, but `told` when an operand is not a text."""
    unknown = [operand for operand in operands if not is_text(operand)]
    checks = [f"({_not_text(f'TYPEOF(:o{place})')})" for place in range(len(unknown))]
    return guarded(f"{what} of what is not a text", "x::VARCHAR", checks, node, unknown)


_BY_TYPE = "__BY_TYPE"


def by_type(
    what: str,
    types: str,
    other: exp.Expr,
    kind: str,
    node: exp.Expr,
    *operands: exp.Expr,
    advice: str = "",
) -> exp.Expr:
    """``other`` where the type of the first operand is like one of ``types``, else ``node``, each
    of its own type: what Spark's IF cannot do. ``kind`` is the text of Spark's expression, in which
    ``:node`` is ``node`` and ``:o0`` the operand, of the type's name.

    Where a translation has to come back (`penstock.sql.duckdb.translate.in_duckdb`), it is refused
    by type as by `unless`.
    """
    checks = " OR ".join(f"TYPEOF(:o0) LIKE '{pattern}'" for pattern in types.split("|"))
    text = f"IF({checks}, CAST(:other AS VARIANT), CAST(:node AS VARIANT))"
    chosen = spark(f"VARIANT_GET({text}, '$', {kind})", other=other, node=node, o0=operands[0])
    strict = unless(what, types, node, *operands[:1], advice=advice)
    return exp.Anonymous(this=_BY_TYPE, expressions=[chosen, strict])


def resolve_types(tree: exp.Expr, *, strict: bool) -> exp.Expr:
    """Replace each `by_type` by what it stands for."""
    for node in reversed(list(tree.find_all(exp.Anonymous))):
        if node.name == _BY_TYPE:
            tree = substitute(tree, node, node.expressions[1 if strict else 0])
    return tree


# The names of types in the text of a type, as Spark's `typeof` writes it: behind a field's name, or
# within a list or map. No regular expression has a backslash: Spark's literals would escape it.
ANY_TYPE = "(?<=[:<,])(interval [a-z ]+|[a-z_]+([(][0-9]+,[0-9]+[)])?)(?=[,<>])"
_FIELDS_OF = f"REGEXP_REPLACE(LOWER(TYPEOF(:{{name}})), '{ANY_TYPE}', '')"
_BY_POSITION = "of structs whose fields are not the same in one order"
_ORDERED = "the fields of both in one order"


def same_fields(what: str, node: exp.Expr, *operands: exp.Expr) -> exp.Expr:
    """The comparison ``node``, but `told` when its operands are structs (or lists of them) with
    fields in another order: DuckDB compares them by name, Spark by position.

    The test stands beside the comparison, which so stays a condition of a join.
    """
    checks, values = _field_checks(operands)
    if not checks:
        return node
    guard = guarded(f"{what} {_BY_POSITION}", _ORDERED, checks, exp.true(), values)
    return exp.Paren(this=exp.And(this=_closed(node.copy()), expression=guard))


def of_same_fields(what: str, node: exp.Expr, *operands: exp.Expr) -> exp.Expr:
    """As `same_fields`, for what compares operands and is no condition itself."""
    checks, values = _field_checks(operands)
    return guarded(f"{what} {_BY_POSITION}", _ORDERED, checks, node, values)


def _field_checks(operands: Sequence[exp.Expr]) -> tuple[list[str], Sequence[exp.Expr]]:
    """The checks of operands that are compared, and the values that these name ``:o0``, ``:o1``.

    The rows of a query are not asked: what holds its names may stand outside of it.
    """
    others = [operand for operand in operands if not isinstance(operand.unnest(), exp.Query)]
    checks: list[str] = []
    values: list[exp.Expr] = []
    for column in _compared_cells(others):
        cells = [cell for cell in column if not isinstance(cell.unnest(), exp.Null)]
        asked = [cell for cell in cells if cell.find(exp.Query) is None]
        if not asked or any(map(_is_flat, cells)):
            continue
        places = range(len(values), len(values) + len(asked))
        fields = [_FIELDS_OF.format(name=f"o{place}") for place in places]
        has_tuple = any(isinstance(cell.unnest(), exp.Tuple) for cell in asked)
        pattern = "struct<%struct<%" if has_tuple else "%struct<%"  # its own fields have no names
        is_struct = f"TYPEOF(:o{places[0]}) LIKE '{pattern}'"
        has_query = len(others) < len(operands) or len(asked) < len(cells)
        checks += [is_struct] if has_query else []
        checks += [f"({is_struct} AND {fields[0]} <> {names})" for names in fields[1:]]
        values += asked
    return checks, values


def _compared_cells(operands: Sequence[exp.Expr]) -> Iterator[Sequence[exp.Expr]]:
    """Yield the values that are compared with each other: of tuples, those at each place."""
    rows = [operand.unnest() for operand in operands]
    if all(isinstance(row, exp.Tuple) for row in rows):
        for cells in zip(*(row.expressions for row in rows), strict=False):
            yield from _compared_cells(cells)
    else:
        yield operands


_NESTED = "struct%|array%"
# What is a number, or true or false, or a moment, whatever the types of its columns are.
_NUMBERS = (exp.Count, exp.Div, exp.IntDiv, exp.Mod, exp.Mul, exp.Neg, exp.RowNumber, exp.Sum)
_CHECKED = (exp.Max, exp.Min)  # whose value has been looked at by `in_order`
_SCALARS = (*_NUMBERS, exp.Add, exp.Connector, exp.Literal, exp.Null, exp.Predicate, exp.Sub)


def in_order(what: str, operand: exp.Expr) -> exp.Expr:
    """``operand``, but `told` when it is a struct or a list: a NULL inside of one is the greatest
    value in DuckDB and the smallest in Spark.
    """
    inner = _inner(operand)
    if isinstance(inner, (*_SCALARS, exp.Placeholder, exp.Star)) or is_known(inner):
        return operand
    return unless(what, _NESTED, operand.copy(), operand)


def compared(what: str, node: exp.Expr, *operands: exp.Expr) -> exp.Expr:
    """``node``, but `told` when it compares structs or lists, as `in_order` has it.

    One operand is asked: Spark refuses to compare a struct or a list with anything else.
    """
    if any(_is_flat(operand) for operand in operands):
        return node
    asked = min(operands, key=lambda operand: not isinstance(operand, exp.Column))
    return unless(what, _NESTED, node.copy(), asked)


def _is_flat(operand: exp.Expr) -> bool:
    """Return whether it is neither a struct nor a list, whatever the types of its columns are."""
    inner = _inner(operand)
    if isinstance(inner, exp.Cast):
        return not inner.to.is_type(*exp.DataType.NESTED_TYPES)
    return isinstance(inner, (*_SCALARS, *_CHECKED, exp.Placeholder)) or is_known(inner)


def is_number(operand: exp.Expr) -> bool:
    """Return whether it is a number, whatever the types of its columns are."""
    inner = _inner(operand)
    written = isinstance(inner, exp.Literal) and not inner.is_string
    return written or isinstance(inner, _NUMBERS) or is_double(inner)


def _inner(node: exp.Expr) -> exp.Expr:
    """Without brackets, and without the window or the condition of an aggregate."""
    while isinstance(node, exp.Paren | exp.Window | exp.Filter):
        node = node.this
    return node


def unguarded(tree: exp.Expr) -> exp.Expr:
    """A copy of Spark's tree without what `guarded` puts around its parts, and beside them."""
    bare = tree.copy()
    for both in reversed(list(bare.find_all(exp.And))):
        guard = both.expression
        is_beside = _is_guard(guard) and guard.args["true"] == exp.true()
        if is_beside and isinstance(both.parent, exp.Paren):
            bare = substitute(bare, both.parent, _opened(both.this))
    for node in reversed(list(bare.find_all(exp.If))):
        if _is_guard(node) and isinstance(node.args["true"], exp.Expr):
            bare = substitute(bare, node, _opened(node.args["true"]))
    for where in list(bare.find_all(exp.Where)):
        if where.this == exp.true():  # what a guard was put before that had no condition
            where.pop()
    return bare


def _is_guard(node: exp.Expr) -> bool:
    marks = node.this.find_all(exp.Literal) if isinstance(node, exp.If) else ()
    return any(mark.name.startswith(_MARK) for mark in marks)


def _opened(node: exp.Expr) -> exp.Expr:
    """Without the brackets that are the guard's own."""
    is_closed = isinstance(node, exp.Paren) and _closed(node.this) is not node.this
    return node.this if is_closed else node


def told(condition: str | None, message: str) -> UnsupportedFeature | None:
    """The refusal that an error of Spark stands for, if it is one of `unless`."""
    mark = _REFUSAL.search(message) if condition == "INVALID_EXTRACT_FIELD" else None
    return None if mark is None else refused(*mark[1].split(_ADVICE, 1))


def whole_number(node: exp.Expr | None) -> int | None:
    """The value of a literal like ``3`` or ``-3``."""
    inner = node.unnest() if isinstance(node, exp.Expr) else None
    if isinstance(inner, exp.Neg):
        number = whole_number(inner.this)
        return None if number is None else -number
    is_whole = isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit()
    return int(inner.name) if inner is not None and is_whole else None


def _number(node: exp.Expr) -> str | None:
    """The type of a number that is written with a fraction or an exponent."""
    if not isinstance(node, exp.Literal) or node.is_string or node.name.isdigit():
        return None
    return "double" if "e" in node.name.lower() else "decimal"


def text_of(node: exp.Expr | None) -> str | None:
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def _closed(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Connector) else node


@lru_cache(maxsize=1024)  # some templates have constants of the user in them
def _parsed(template: str) -> exp.Expr:
    tree: exp.Expr = sqlglot.parse_one(template, read=_SPARK)
    for node in tree.walk():
        node.meta.clear()  # the places are those of the template, not of the user's text
    return tree


TEXT, DOUBLE, UUID = "text", "double", "uuid"
DATE, MOMENT, ZONED = "date", "moment", "zoned"  # a TIMESTAMP without a zone, and with one
_KEY = "kind"


def known_as(kind: str, translated: exp.Expr) -> exp.Expr:
    """``translated``, known as a value of that kind."""
    translated.meta[_KEY] = kind
    return translated


def kind_of(node: exp.Expr) -> str | None:
    """Return what a translated expression is known as: a date, a time, a text, ..."""
    kind = node.unnest().meta.get(_KEY)
    return None if kind is None else str(kind)


def is_double(node: exp.Expr) -> bool:
    """Return whether a translated expression is a DOUBLE, whatever the types of its columns are."""
    if _KEY in node.meta:
        return bool(node.meta[_KEY] == DOUBLE)
    if isinstance(node, exp.Paren | exp.Neg | exp.Window | exp.Filter):
        return is_double(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return is_double(node.this) or is_double(node.expression)
    return False


def is_known(node: exp.Expr) -> bool:
    """Return whether a translated expression is a text or a number by its form."""
    return _KEY in node.meta or is_double(node) or is_text(node)


def is_text(node: exp.Expr) -> bool:
    """Return whether a translated expression is a text, whatever the types of its columns are."""
    return text_of(node.unnest()) is not None or kind_of(node) == TEXT


def is_uuid(node: exp.Expr) -> bool:
    return node.meta.get(_KEY) == UUID


def is_list(node: exp.Expr) -> bool:
    """Return whether it is written as a list."""
    inner = node.unnest()
    is_call = isinstance(inner, exp.Anonymous) and inner.name.upper() == "ARRAY"
    return is_call or isinstance(inner, exp.Array)


def is_condition(node: exp.Expr) -> bool:
    """Return whether it is written as something that is true or false."""
    return isinstance(node.unnest(), exp.Predicate | exp.Connector | exp.Not | exp.Boolean)
