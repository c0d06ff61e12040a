"""Predicates from SQL: which parts of a WHERE or an ON tell which files of a table can matter."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from penstock.lazy import exp
from penstock.sql.identifiers import fold
from penstock.sql.tables import Scope, scope_of
from penstock.sql.text import (
    FLIPPED,
    NEGATED,
    Among,
    Compare,
    Condition,
    Constant,
    IsNull,
    NotNull,
    Operator,
    Or,
    Path,
    Predicate,
    SqlExpression,
    StartsWith,
    all_of,
    as_expression,
    rejects_null,
)

Resolve = Callable[[exp.Column], "Path | None"]
Args = Mapping[str, Any]

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_OFFSET = re.compile(r"(?:Z|[+-]\d\d:\d\d)$")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_MOST_VALUES = 1000  # of an IN: more make the question dearer than its answer


def of_where(
    where: str | SqlExpression, *, zone: str = "UTC", args: Args | None = None
) -> Predicate:
    """The predicate of a condition over one table. Never fails."""
    where = as_expression(where)
    if where.tree is None:
        return Predicate(None, zone, unused=(where.text,))
    return _of_tree(where.tree, zone, args or {})


def contrary(where: SqlExpression, *, zone: str, args: Args) -> Predicate | None:
    """Return what every row satisfies for which ``where`` is false or NULL; ``None`` where that is
    not sure.

    What `of_where` understands is NULL only where a column is.
    """
    if where.tree is None:
        return None
    columns = {column.sql("spark"): column for column in where.tree.find_all(exp.Column)}
    nulls = [columns[name].is_(exp.null()) for name in sorted(columns)]
    found = _of_tree(exp.or_(exp.not_(where.tree), *nulls), zone, args)
    return None if found.condition is None or found.unused else found


def _of_tree(tree: exp.Expr, zone: str, args: Args) -> Predicate:
    reader = _Reader(lambda column: tuple(part.name for part in column.parts), args)
    return _predicate([(part, reader, False) for part in _conjuncts(tree)], zone)


def of_query(
    text: str, table: exp.Table | None, *, zone: str = "UTC", args: Args | None = None
) -> Predicate:
    """The predicate for a table in the tree of the query ``text``. Never fails.

    It is made of those parts of the WHERE and the ONs of the table's own SELECT that speak of this
    table alone. On the side of an outer join that may be missing, only what NULLs fail counts: a
    row that is not read must not let its partner pass for one without.
    """
    scope = None if table is None else scope_of(table)
    if scope is None or "|>" in text:  # a pipe's WHERE may come after its LIMIT: trees do not tell
        return Predicate(None, zone)
    reader = _Reader(lambda column: _path_in(scope, column), args or {})
    parts = [
        (part, reader, missing)
        for condition, missing in scope.conditions
        for part in _conjuncts(condition)
        if scope.alone
        or any(fold(c.parts[0].name) == scope.name for c in part.find_all(exp.Column))
    ]
    return _predicate(parts, zone)


def _path_in(scope: Scope, column: exp.Column) -> Path | None:
    """``t.a``, ``main.t.a`` and, of a table that stands alone, ``a``; struct fields behind them."""
    names = tuple(part.name for part in column.parts)
    if len(names) > 1 and fold(names[0]) == scope.name:
        return names[1:]
    if len(names) > 2 and (fold(names[0]), fold(names[1])) == (scope.schema, scope.name):
        return names[2:]
    return names if scope.alone else None


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.left), *_conjuncts(tree.right)]
    return [tree]


def _predicate(parts: list[tuple[exp.Expr, _Reader, bool]], zone: str) -> Predicate:
    found: list[Condition] = []
    used: list[str] = []
    unused: list[str] = []
    for part, reader, missing in parts:
        condition = reader.read(part)
        usable = condition is not None and not (missing and not rejects_null(condition))
        (used if usable else unused).append(part.sql("spark"))
        if usable and condition is not None:
            found.append(condition)
    return Predicate(all_of(found), zone, tuple(used), tuple(unused))


class _Reader:
    """From a tree to a condition; ``None`` where nothing certain can be said."""

    def __init__(self, resolve: Resolve, args: Args) -> None:
        self._resolve = resolve
        self._args = args

    def read(self, tree: exp.Expr, *, negated: bool = False) -> Condition | None:
        """The condition for ``tree`` (or, ``negated``, its NOT) being true: NULL is not true."""
        tree = tree.unnest()
        if isinstance(tree, exp.Not):
            return self.read(tree.this, negated=not negated)
        if isinstance(tree, exp.And | exp.Or):
            return self._both(tree, negated)
        reader = _READERS.get(type(tree))
        if reader is None or any(tree.args[key] for key in tree.args if key not in _UNDERSTOOD):
            return None
        return reader(self, tree, negated)

    def _both(self, tree: exp.And | exp.Or, negated: bool) -> Condition | None:
        sides = [self.read(side, negated=negated) for side in (tree.left, tree.right)]
        known = [side for side in sides if side is not None]
        if isinstance(tree, exp.And) is not negated:
            return all_of(known)
        return Or(tuple(known)) if len(known) == len(sides) else None

    def compare(self, tree: Any, negated: bool) -> Condition | None:
        operator = _OPERATORS[type(tree)]
        path, value = self.path(tree.left), self.constant(tree.right)
        if path is None or value is None:
            path, value = self.path(tree.right), self.constant(tree.left)
            operator = FLIPPED[operator]
        if path is None or value is None:
            return None
        return Compare(path, NEGATED[operator] if negated else operator, value)

    def null_safe(self, tree: Any, negated: bool) -> Condition | None:
        sides = (tree.left, tree.right)
        path = next((p for p in map(self.path, sides) if p is not None), None)
        if path is None:
            return None
        if any(isinstance(side.unnest(), exp.Null) for side in sides):
            return NotNull(path) if negated else IsNull(path)
        return None if negated else self.compare(exp.EQ(this=sides[0], expression=sides[1]), False)

    def among(self, tree: Any, negated: bool) -> Condition | None:
        path = self.path(tree.this)
        items = tree.expressions
        if path is None or not items or len(items) > _MOST_VALUES:
            return None
        nulls = [item for item in items if isinstance(item.unnest(), exp.Null)]
        values = [self.constant(item) for item in items if item not in nulls]
        known = tuple(value for value in values if value is not None)
        if len(known) < len(values) or not known or (negated and nulls):
            return None
        if negated:
            return all_of([Compare(path, "<>", value) for value in known])
        return Among(path, known)

    def between(self, tree: Any, negated: bool) -> Condition | None:
        path = self.path(tree.this)
        low, high = self.constant(tree.args["low"]), self.constant(tree.args["high"])
        if path is None:
            return None
        operators: tuple[Operator, Operator] = ("<", ">") if negated else (">=", "<=")
        pairs = zip(operators, (low, high), strict=True)
        parts = [Compare(path, operator, value) for operator, value in pairs if value is not None]
        if negated:
            return Or(tuple(parts)) if len(parts) == 2 else None
        return all_of(parts)

    def is_(self, tree: Any, negated: bool) -> Condition | None:
        path = self.path(tree.this)
        if path is None or not isinstance(tree.expression, exp.Null):
            return None
        return NotNull(path) if negated else IsNull(path)

    def like(self, tree: Any, negated: bool) -> Condition | None:
        path, pattern = self.path(tree.this), self.constant(tree.expression)
        if negated or path is None or pattern is None or pattern.kind != "string":
            return None
        prefix = re.split("[%_]", pattern.value, maxsplit=1)[0]
        if prefix == pattern.value:
            return Compare(path, "=", pattern)
        return StartsWith(path, prefix) if prefix else NotNull(path)

    def starts_with(self, tree: Any, negated: bool) -> Condition | None:
        path, prefix = self.path(tree.this), self.constant(tree.expression)
        if negated or path is None or prefix is None or prefix.kind != "string":
            return None
        return StartsWith(path, prefix.value) if prefix.value else NotNull(path)

    def column(self, tree: Any, negated: bool) -> Condition | None:
        path = self.path(tree)
        return None if path is None else Compare(path, "=", Constant("boolean", not negated))

    def path(self, tree: exp.Expr) -> Path | None:
        tree = tree.unnest()
        inner: list[str] = []
        while isinstance(tree, exp.Dot) and isinstance(tree.expression, exp.Identifier):
            inner.insert(0, tree.expression.name)
            tree = tree.this
        if not isinstance(tree, exp.Column) or isinstance(tree.this, exp.Star):
            return None
        found = self._resolve(tree)
        return None if found is None else (*found, *inner)

    def constant(self, tree: exp.Expr) -> Constant | None:
        tree = tree.unnest()
        reader = _CONSTANTS.get(type(tree))
        return None if reader is None else reader(self, tree)

    def literal(self, tree: Any) -> Constant | None:
        return _string(tree.name) if tree.is_string else _number(tree.name)

    def negative(self, tree: Any) -> Constant | None:
        value = self.constant(tree.this)
        if value is None or value.kind not in {"integer", "decimal", "float"}:
            return None
        return Constant(value.kind, -value.value)

    def boolean(self, tree: Any) -> Constant | None:
        return Constant("boolean", bool(tree.this))

    def cast(self, tree: Any) -> Constant | None:
        """``DATE '...'``, ``TIMESTAMP '...'``, numbers with a suffix (``5L``), markers cast."""
        inner, to = tree.this, tree.to
        if isinstance(inner, exp.Placeholder) and isinstance(to, exp.DataType):
            return self._cast_argument(self._args.get(inner.name), str(to.this.value).upper())
        if not isinstance(inner, exp.Literal) or not isinstance(to, exp.DataType):
            return None
        if inner.is_string:
            reader = _CASTS.get(str(to.this.value).upper())
            return None if reader is None else reader(inner.name)
        number = _number(inner.name)
        kind = _SUFFIXES.get(str(to.this.value).upper())
        if number is None or (kind == "integer" and number.kind != "integer"):
            return None
        return None if kind is None else Constant(kind, _TO[kind](number.value))

    def _cast_argument(self, value: object, kind: str) -> Constant | None:
        if isinstance(value, str):
            reader = _CASTS.get(kind)
            return None if reader is None else reader(value)
        known = of_python(value)
        fits = known is not None and known.kind == "integer" and -(2**63) <= known.value < 2**63
        return known if fits and kind == "BIGINT" else None

    def argument(self, tree: Any) -> Constant | None:
        name = tree.name
        return of_python(self._args[name]) if name in self._args else None


def of_python(value: object) -> Constant | None:
    """A constant from the value of a parameter."""
    for kind, (of_type, test) in _PYTHON.items():
        if isinstance(value, of_type):
            return Constant(kind, value) if test(value) else None
    return None


def _always(_: Any) -> bool:
    return True


def _plain(text: str) -> bool:
    """No character that came of an escape which Spark might read another way."""
    return "\\" not in text and all(c >= " " and not "\ud800" <= c <= "\udfff" for c in text)


_PYTHON: dict[str, tuple[type, Callable[[Any], bool]]] = {  # bool is an int, datetime a date
    "boolean": (bool, _always),
    "integer": (int, _always),
    "float": (float, math.isfinite),
    "decimal": (Decimal, lambda value: bool(value.is_finite())),
    "string": (str, _plain),
    "zoned": (dt.datetime, _always),
    "date": (dt.date, _always),
}


def _string(text: str) -> Constant | None:
    return Constant("string", text) if _plain(text) else None


def _number(text: str) -> Constant | None:
    if re.fullmatch(r"\d+", text):
        return Constant("integer", int(text))
    if re.fullmatch(r"\d*\.?\d+|\d+\.", text):
        return Constant("decimal", Decimal(text))
    if re.fullmatch(r"(\d*\.?\d+|\d+\.)[eE][+-]?\d+", text):
        value = float(text)
        return Constant("float", value) if math.isfinite(value) else None
    return None


def _date(text: str) -> Constant | None:
    try:
        return Constant("date", dt.date.fromisoformat(text)) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def _moment(text: str) -> dt.datetime | None:
    """A date, or a date and a time to the second or finer; without a zone."""
    try:
        if _TIME.fullmatch(text) or _DATE.fullmatch(text):
            return dt.datetime.fromisoformat(text)
    except ValueError:
        pass
    return None


def _zoned(text: str) -> Constant | None:
    """An instant where it has an offset."""
    offset = _OFFSET.search(text)
    if offset is None:
        value = _moment(text)
    elif _TIME.fullmatch(text[: offset.start()]) and _moment(text[: offset.start()]):
        value = dt.datetime.fromisoformat(text)
    else:
        value = None
    return None if value is None else Constant("zoned", value)


def _zoneless(text: str) -> Constant | None:
    value = _moment(text)
    return None if value is None else Constant("zoneless", value)


def _decimal(text: str) -> Constant | None:
    return Constant("decimal", Decimal(text)) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None


_CASTS: Mapping[str, Callable[[str], Constant | None]] = {
    "DATE": _date,
    "TIMESTAMPTZ": _zoned,  # Spark's TIMESTAMP
    "TIMESTAMPLTZ": _zoned,
    "TIMESTAMP": _zoneless,  # sqlglot's name for Spark's TIMESTAMP_NTZ
    "TIMESTAMPNTZ": _zoneless,
}
_SUFFIXES: Mapping[str, str] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "integer"),
    **dict.fromkeys(("DOUBLE", "FLOAT"), "float"),
}
_TO: Mapping[str, Callable[[Any], Any]] = {"integer": int, "float": float}

# What a node says besides (an IN's subquery, a LIKE's NOT) changes its meaning.
_UNDERSTOOD = frozenset({"this", "expression", "expressions", "low", "high", "table", "db"})

_OPERATORS: Mapping[type, Operator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_READERS: Mapping[type, Callable[[_Reader, Any, bool], Condition | None]] = {
    **dict.fromkeys(_OPERATORS, _Reader.compare),
    exp.NullSafeEQ: _Reader.null_safe,
    exp.In: _Reader.among,
    exp.Between: _Reader.between,
    exp.Is: _Reader.is_,
    exp.Like: _Reader.like,
    exp.StartsWith: _Reader.starts_with,
    exp.Column: _Reader.column,
    exp.Dot: _Reader.column,
}
_CONSTANTS: Mapping[type, Callable[[_Reader, Any], Constant | None]] = {
    exp.Literal: _Reader.literal,
    exp.Neg: _Reader.negative,
    exp.Boolean: _Reader.boolean,
    exp.Cast: _Reader.cast,
    exp.TryCast: _Reader.cast,
    exp.Placeholder: _Reader.argument,
}
