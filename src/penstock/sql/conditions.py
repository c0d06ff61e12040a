"""Conditions on the rows of a table, as far as files can be chosen by them.

A condition is *necessary*: a row for which it is not true cannot be in the answer. What is not
understood is left out, so a condition may let too much through, never too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Operator = Literal["=", "<>", "<", "<=", ">", ">="]
Path = tuple[str, ...]  # a column's name, then the names of struct fields inside

NEGATED: dict[Operator, Operator] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}
FLIPPED: dict[Operator, Operator] = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a query.

    ``kind`` is ``integer`` (int), ``decimal`` (Decimal), ``float`` (float), ``string``,
    ``boolean``, ``date`` (date), ``zoned`` (datetime: an instant when aware, else the wall clock of
    the session's zone) or ``zoneless`` (naive datetime).
    """

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Compare:
    path: Path
    operator: Operator
    value: Constant


@dataclass(frozen=True, slots=True)
class Among:
    """The column equals one of these."""

    path: Path
    values: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class StartsWith:
    path: Path
    prefix: str


@dataclass(frozen=True, slots=True)
class IsNull:
    path: Path


@dataclass(frozen=True, slots=True)
class NotNull:
    path: Path


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


Leaf = Compare | Among | StartsWith | IsNull | NotNull
Condition = Leaf | And | Or


@dataclass(frozen=True, slots=True)
class Predicate:
    """The condition that a read's files are chosen by.

    ``zone`` is the session's time zone. ``used`` and ``unused`` are the parts of the query, as
    text, that the condition comes from and that could not be used.
    """

    condition: Condition | None
    zone: str = "UTC"
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def all_of(parts: Sequence[Condition]) -> Condition | None:
    """The conjunction; ``None`` of nothing: anything goes."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, And) else (part,))]
    return None if not flat else flat[0] if len(flat) == 1 else And(tuple(flat))


def rejects_null(condition: Condition) -> bool:
    """Return whether a row whose columns are all NULL fails it, as an outer
    join's missing side is.
    """
    if isinstance(condition, And):
        return any(rejects_null(part) for part in condition.parts)
    if isinstance(condition, Or):
        return all(rejects_null(part) for part in condition.parts)
    return not isinstance(condition, IsNull)
