"""ASOF JOINs of a query in the plan of `penstock.model.asof.asof_plan`, once Spark has said what
its tables have; those that it does not fit are left to Spark's own plan, which is right and slow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.errors import Location, PenstockError, QueryFailed
from penstock.model.asof.asof import (
    ASOF_SETTING,
    AsofJoin,
    NotPlanned,
    condition_at,
    find_join,
    starts,
)
from penstock.model.asof.asof_lookup import BYTES
from penstock.model.asof.asof_plan import (
    Column,
    Sides,
    compared_query,
    conditions_of,
    is_narrow,
    needed,
    planned,
    sides_query,
    with_names,
)
from penstock.model.query.render import RenderedQuery
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql
from penstock.sql.query.edits import Mapped
from penstock.sql.tokens import tokenize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class AsofNotice:
    """What is worth knowing of an ASOF JOIN, and where that is."""

    message: str
    location: Location


@dataclass(frozen=True, slots=True)
class _Asking:
    session: SparkSession
    args: Mapping[str, Any]
    calls_macros: bool
    searched: int

    def types(self, sql: str) -> list[DataType]:
        """The types of a query's columns. Raises NotPlanned where Spark does not take it."""
        try:
            with explained():
                schema = run_sql(self.session, sql, args=dict(self.args)).schema
        except PenstockError as error:
            raise NotPlanned(
                f"a side of it is not understood on its own: {error.message}"
            ) from None
        return [field.dataType for field in schema.fields]

    def searches(self, left: str, right: str) -> bool:
        """Return whether the right side is to be searched: small by Spark's estimate, and the left
        large.

        Analysis of a search takes about a second, which a small left side does not repay.
        """
        return self._bytes(right) <= self.searched <= self._bytes(left)

    def _bytes(self, sql: str) -> float:
        with explained():
            rows = run_sql(self.session, f"EXPLAIN COST {sql}", args=dict(self.args)).collect()
        return estimate(str(rows[0][0]))


def with_asof(
    session: SparkSession,
    rendered: RenderedQuery,
    args: Mapping[str, Any],
    *,
    calls_macros: bool,
    searched: int = BYTES,
) -> tuple[RenderedQuery, tuple[AsofNotice, ...]]:
    """The query with its ASOF JOINs planned, and what is to be said of them.

    A right side of at most ``searched`` bytes is searched if the left has as many at least; else
    both are sorted.

    The views that it reads are there. Raises QueryFailed, at its place, for a join with USING that
    has no plan here, since Spark has none either.
    """
    session.conf.set(ASOF_SETTING, "true")
    asking = _Asking(session, args, calls_macros, searched)
    notices: list[AsofNotice] = []
    kept = 0
    while True:
        try:
            join = find_join(rendered.sql, kept)
            if join is None:
                break
            step, said = _step(join, asking)
        except NotPlanned as reason:
            notices.append(_left_to_spark(rendered, kept, str(reason)))
            kept += 1
            continue
        place = _location(rendered, join.start)
        notices += [AsofNotice(message, place) for message in said]
        rendered = replace(rendered, sql=step.text, steps=(*rendered.steps, step))
    return rendered, tuple(notices)


_UNITS = {unit: 1024**n for n, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}
_ESTIMATE = re.compile(r"Statistics\(sizeInBytes=([\d.]+(?:E\+?\d+)?) (\w+)")


def estimate(explained: str) -> float:
    """Bytes of all rows by the text of EXPLAIN COST; infinite where it does not say."""
    first = _ESTIMATE.search(explained)
    return float(first[1]) * _UNITS.get(first[2], math.inf) if first else math.inf


def _step(join: AsofJoin, asking: _Asking) -> tuple[Mapped, list[str]]:
    sides = _sides(join, asking)
    conditions = conditions_of(join, sides)
    left, right = map(asking.types, compared_query(join, conditions))
    casts = [_common(*pair) for pair in zip(left, right, strict=True)]
    columns = needed(join, sides, calls_macros=asking.calls_macros)
    small = is_narrow(sides, columns) and asking.searches(*sides_query(join))
    one_task = not (conditions.keys or small)
    said = ["an ASOF JOIN without equal keys sorts all rows in one task"] if one_task else []
    return planned(join, sides, conditions, casts, columns, small=small), said


def _sides(join: AsofJoin, asking: _Asking) -> Sides:
    left, right = (_structs(asking.types(sql)) for sql in sides_query(join))
    columns = [Column(field.name, _sorts(field.dataType)) for field in right[0]]
    return with_names(join, [[field.name for field in struct] for struct in left], columns)


def _structs(types: list[DataType]) -> list[Any]:
    return [getattr(type_, "fields", []) for type_ in types]


def _left_to_spark(rendered: RenderedQuery, number: int, reason: str) -> AsofNotice:
    tokens = tokenize(rendered.sql)
    at = list(starts(tokens))[number]
    place = _location(rendered, tokens[at].start)
    condition = condition_at(tokens, at + 2)
    if condition is not None and tokens[condition].upper == "USING":
        message = f"the ASOF JOIN with USING cannot be planned: {reason}"
        hint = "write ON a.key = b.key AND a.time >= b.time"
        raise QueryFailed(message, hint=hint, location=place)
    return AsofNotice(f"an ASOF JOIN is left to Spark's own plan, slower: {reason}", place)


def _location(rendered: RenderedQuery, offset: int) -> Location:
    before = rendered.sql[:offset]
    return rendered.locate(before.count("\n") + 1, offset - (before.rfind("\n") + 1))


_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}  # with their digits as decimals
_ORDERED = frozenset({"boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"})
_WIDER = (
    ("tinyint", "smallint", "int", "bigint"),
    ("float", "double"),
    ("tinyint", "smallint", "int", "double"),
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp_ntz", "timestamp"),  # by the session's time zone, as Spark compares the two
)


def _common(left: DataType, right: DataType) -> str | None:
    """The type to compare two values in, ``None`` where they have one type.

    Every value of both has to be in it, so that it compares as Spark does. Raises NotPlanned.
    """
    first, second = left.simpleString(), right.simpleString()
    if left == right and _has_order(left):
        return None
    for types in _WIDER:
        if first in types and second in types:
            return max(first, second, key=types.index)
    decimals = [_decimal(left), _decimal(right)]
    if None not in decimals:
        whole = max(digits - scale for digits, scale in decimals)  # type: ignore[misc]
        scale = max(scale for _, scale in decimals)  # type: ignore[misc]
        if whole + scale <= 38:
            return f"decimal({whole + scale},{scale})"
    raise NotPlanned(f"it compares {first} with {second}")


def _decimal(type_: DataType) -> tuple[int, int] | None:
    """Digits and scale of a type whose values are decimals."""
    from pyspark.sql.types import DecimalType

    if isinstance(type_, DecimalType):
        return type_.precision, type_.scale
    digits = _INTEGERS.get(type_.simpleString())
    return None if digits is None else (digits, 0)


def _has_order(type_: DataType) -> bool:
    """Return whether values of a type are compared and sorted in one way."""
    name = type_.simpleString()
    simple = name.split(" ")[0].split("(")[0]
    numbers = (*_INTEGERS, "float", "double", "decimal")
    return simple in _ORDERED or simple in numbers or name.startswith("interval")


def _sorts(type_: DataType) -> bool:
    """Return whether Spark sorts by a column of a type."""
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(type_, ArrayType):
        return _sorts(type_.elementType)
    if isinstance(type_, StructType):
        return all(_sorts(field.dataType) for field in type_.fields)
    return _has_order(type_)
