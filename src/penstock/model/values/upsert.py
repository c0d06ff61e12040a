"""Options of a merge besides updating and inserting by columns: ``when_matched`` and
``merge_filter`` (kinds.md, INCREMENTAL_BY_UNIQUE_KEY), ``sequence`` and ``deletes``.

The rows of the table are called ``target``, those of the query ``source``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.lazy import exp
from penstock.sql.statement import Reader
from penstock.sql.text import Unreadable, parse_expression

TARGET, SOURCE = "target", "source"
TOMBSTONES = "_deleted"  # after the name of a table: where the sequences of deleted keys go
SHAPE = "write WHEN MATCHED [AND condition] THEN UPDATE SET target.a = source.a, or THEN DELETE"


@dataclass(frozen=True, slots=True)
class Matched:
    """``WHEN MATCHED``: an update of ``sets``, columns with their values, or a DELETE without."""

    condition: str | None
    sets: tuple[tuple[str, str], ...]

    @property
    def expressions(self) -> Iterator[str]:
        if self.condition is not None:
            yield self.condition
        yield from (value for _, value in self.sets)


@dataclass(frozen=True, slots=True)
class Upsert:
    """``matched`` is empty where all columns are updated. All is in the script's dialect.

    ``sequence`` is the column that orders the events of a key: the highest wins. ``deletes`` is the
    condition of events that delete their key.
    """

    matched: tuple[Matched, ...] = ()
    merge_filter: str | None = None
    sequence: str | None = None
    deletes: str | None = None

    def __bool__(self) -> bool:
        return bool(self.has_rules or self.sequence or self.deletes)

    @property
    def has_rules(self) -> bool:
        """Return whether conditions say which rows match, and what becomes of them."""
        return bool(self.matched or self.merge_filter)

    @property
    def texts(self) -> tuple[object, ...]:
        """The rules, for the definition's hash."""
        matched = [[each.condition, *map(list, each.sets)] for each in self.matched]
        return matched, self.merge_filter


def read_matched(text: str, dialect: str) -> tuple[Matched, ...]:
    """``WHEN MATCHED ... THEN ...``, one or several. Raises QueryFailed with the place in ``text``
    as its message says it, and ValueError with what is wrong.
    """
    reader = Reader(text, dialect=dialect)
    found: list[Matched] = []
    while not reader.done:
        reader.accept(",")
        _begin(reader)
        condition = None
        if reader.accept("AND"):
            condition = _written(reader, lambda: reader.until("THEN"))
        if not reader.accept("THEN"):
            raise ValueError(f"THEN is expected, not {reader.shown()}")
        found.append(Matched(condition, _action(reader)))
    if not found:
        raise ValueError("WHEN MATCHED is expected")
    for matched in found[:-1]:
        if matched.condition is None:
            raise ValueError("a WHEN MATCHED without a condition takes all rows: put it last")
    for matched in found:
        for expression in matched.expressions:
            check_sides(expression, dialect)
    return tuple(found)


def _begin(reader: Reader) -> None:
    if reader.accept("WHEN", "NOT", "MATCHED"):
        raise ValueError("WHEN NOT MATCHED cannot be given: a row without a match is inserted")
    if not reader.accept("WHEN", "MATCHED"):
        raise ValueError(f"WHEN MATCHED is expected, not {reader.shown()}")


def _action(reader: Reader) -> tuple[tuple[str, str], ...]:
    if reader.accept("DELETE"):
        return ()
    if not reader.accept("UPDATE", "SET"):
        raise ValueError(f"UPDATE SET or DELETE is expected, not {reader.shown()}")
    sets = [_assigned(reader)]
    while reader.accept(",") and not reader.sees("WHEN"):
        sets.append(_assigned(reader))
    return tuple(sets)


def _assigned(reader: Reader) -> tuple[str, str]:
    parts = reader.dotted("a column")
    side, *names = parts
    if side.casefold() != TARGET or len(names) != 1:
        raise ValueError(f"`{'.'.join(parts)}` is set, and a column of the table is target.column")
    if reader.accept_any("=", ":=") is None:
        raise ValueError(f"= is expected, not {reader.shown()}")
    return names[0], _written(reader, lambda: reader.until(",", "WHEN"))


def _written(reader: Reader, span: Callable[[], tuple[int, int]]) -> str:
    start, end = span()
    text = reader.text[start:end].strip()
    if not text:
        raise ValueError(f"an expression is expected, not {reader.shown()}")
    return text


def check_sides(expression: str, dialect: str) -> None:
    """Raise ValueError for a column that is of neither side, and for what cannot be read."""
    try:
        tree = parse_expression(expression, dialect)
    except Unreadable as error:
        raise ValueError(f"`{expression}` cannot be read{error}") from None
    for column in tree.find_all(exp.Column):
        first = column.parts[0].name.casefold()
        if len(column.parts) < 2 or first not in {TARGET, SOURCE}:
            name = column.sql(dialect)
            raise ValueError(f"`{name}` says no side: write source.{name} or target.{name}")


def on_side(expression: str, side: str, dialect: str) -> str:
    """An expression over columns as one over those of a side. Raises ValueError."""
    try:
        tree = parse_expression(expression, dialect).copy()
    except Unreadable as error:
        raise ValueError(f"`{expression}` cannot be read{error}") from None
    for column in list(tree.find_all(exp.Column)):
        first = column.parts[0]
        field: exp.Expr = exp.column(first.copy(), table=side)
        for part in column.parts[1:]:
            field = exp.Dot(this=field, expression=part.copy())
        if column is tree:
            return str(field.sql(dialect))
        column.replace(field)
    return str(tree.sql(dialect))


def columns_in(expression: str, dialect: str) -> tuple[str, ...]:
    """The columns that a key names. Raises ValueError."""
    try:
        tree = parse_expression(expression, dialect)
    except Unreadable as error:
        raise ValueError(f"`{expression}` cannot be read{error}") from None
    return tuple(dict.fromkeys(column.parts[0].name for column in tree.find_all(exp.Column)))
