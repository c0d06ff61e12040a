"""Compare the rows of a query with those that were expected, in any order; convert YAML and CSV
values to Spark types.

A column's type is the declared one, else what its values are: whole numbers are INT or BIGINT,
fractions DOUBLE, dates DATE, moments TIMESTAMP_NTZ or, with a zone, TIMESTAMP.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError
from penstock.lazy import pa

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_INT = 2**31
_CLOSE = 1e-9  # of two floating-point numbers, relative


class Misfit(Exception):
    """A value that its column's type does not have; the message ends a sentence."""


def inferred(name: str, values: Iterable[object]) -> DataType:
    """The type of a column of values. Raises ArgumentError where they have none in common."""
    from pyspark.sql.types import NullType

    kinds = [_kind(name, value) for value in values if value is not None]
    return reduce(lambda a, b: _wider(name, a, b), kinds) if kinds else NullType()


def _kind(name: str, value: object) -> DataType:
    from pyspark.sql import types as t

    plain: Mapping[type, Callable[[], DataType]] = {
        bool: t.BooleanType,
        float: t.DoubleType,
        str: t.StringType,
        bytes: t.BinaryType,
        date: t.DateType,
    }
    if isinstance(value, int) and not isinstance(value, bool):
        return t.IntegerType() if -_INT <= value < _INT else t.LongType()
    if isinstance(value, datetime):
        return t.TimestampNTZType() if value.tzinfo is None else t.TimestampType()
    if isinstance(value, list):
        return t.ArrayType(inferred(name, value))
    if isinstance(value, dict):
        return t.StructType(
            [t.StructField(str(key), inferred(f"{name}.{key}", [v])) for key, v in value.items()]
        )
    made = plain.get(type(value))
    if made is None:
        raise _mixed(name, f"a {type(value).__name__}")
    return made()


def _wider(name: str, a: DataType, b: DataType) -> DataType:
    from pyspark.sql import types as t

    if a == b or isinstance(b, t.NullType):
        return a
    if isinstance(a, t.NullType):
        return b
    numbers = (t.IntegerType, t.LongType, t.DoubleType)
    if isinstance(a, numbers) and isinstance(b, numbers):
        return max(a, b, key=lambda kind: numbers.index(type(kind)))
    if isinstance(a, t.ArrayType) and isinstance(b, t.ArrayType):
        return t.ArrayType(_wider(name, a.elementType, b.elementType))
    if isinstance(a, t.StructType) and isinstance(b, t.StructType):
        fields = {field.name: field.dataType for field in a.fields}
        for field in b.fields:
            known = fields.get(field.name, t.NullType())
            fields[field.name] = _wider(f"{name}.{field.name}", known, field.dataType)
        return t.StructType([t.StructField(*item) for item in fields.items()])
    raise _mixed(name, f"{a.simpleString()} and {b.simpleString()}")


def _mixed(name: str, what: str) -> ArgumentError:
    return ArgumentError(
        f"the column {name} has no type: its values are {what}",
        hint=f"say it: columns: {{{name}: VARCHAR}}",
    )


def fitted(value: object, kind: DataType) -> Any:
    """``value`` as Spark's driver takes and returns one of this type. Raises `Misfit`."""
    if value is None:
        return None
    try:
        return _FITS.get(kind.typeName(), _as_it_is)(value, kind)
    except (ValueError, TypeError, AttributeError, KeyError, InvalidOperation):
        raise Misfit(f"{value!r} is not a valid {kind.simpleString()}") from None


def _integer(value: object, _: DataType) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError
    return int(value)  # type: ignore[call-overload] # ValueError and TypeError are caught


def _boolean(value: object, _: DataType) -> object:
    return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]


def _decimal(value: object, kind: Any) -> object:
    made = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale))
    if made != Decimal(str(value)):
        raise ValueError  # digits that the type does not have
    return made


def _date(value: object, _: DataType) -> object:
    if isinstance(value, datetime):
        raise TypeError
    return value if isinstance(value, date) else date.fromisoformat(str(value))


def _moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - wall time
    return datetime.fromisoformat(str(value))


def _naive(value: object, _: DataType) -> object:
    moment = _moment(value)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _aware(value: object, _: DataType) -> object:
    moment = _moment(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _string(value: object, _: DataType) -> object:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return (
        value
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def _list(value: Any, kind: Any) -> object:
    if isinstance(value, str):
        value = json.loads(value)
    return [fitted(item, kind.elementType) for item in value]


def _struct(value: Any, kind: Any) -> object:
    if isinstance(value, str):
        value = json.loads(value)
    if set(value) - set(kind.names):
        raise ValueError
    return {field.name: fitted(value.get(field.name), field.dataType) for field in kind.fields}


def _map(value: Any, kind: Any) -> object:
    if isinstance(value, str):
        value = json.loads(value)
    return {fitted(k, kind.keyType): fitted(v, kind.valueType) for k, v in value.items()}


def _binary(value: object, _: DataType) -> object:
    return value if isinstance(value, bytes) else bytes.fromhex(str(value))


def _as_it_is(value: object, _: DataType) -> object:
    return value


_FITS: Mapping[str, Callable[[Any, Any], object]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), _integer),
    **dict.fromkeys(("float", "double"), lambda value, _: float(value)),
    "boolean": _boolean,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _aware,
    "timestamp_ntz": _naive,
    "string": _string,
    "array": _list,
    "struct": _struct,
    "map": _map,
    "binary": _binary,
}


def returned(value: Any, kind: Any) -> Any:
    """A value that Spark's driver returned, as `fitted` makes them: moments in UTC."""
    change = _RETURNED.get(kind.typeName())
    return value if value is None or change is None else change(value, kind)


_RETURNED: Mapping[str, Callable[[Any, Any], object]] = {
    "timestamp": lambda value, _: value.astimezone(UTC),  # the driver has it in its own zone
    "binary": lambda value, _: bytes(value),
    "array": lambda value, kind: [returned(item, kind.elementType) for item in value],
    "map": lambda value, kind: {
        returned(k, kind.keyType): returned(v, kind.valueType) for k, v in value.items()
    },
    "struct": lambda value, kind: {
        field.name: returned(item, field.dataType)
        for field, item in zip(kind.fields, value, strict=True)
    },
}


def same(a: Any, b: Any) -> bool:
    """Return whether two values are equal; NULL equals NULL, floating-point
    numbers nearly suffice.
    """
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_CLOSE) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def csv_rows(text: str) -> tuple[Sequence[str], list[dict[str, object]]]:
    """Names and rows of a CSV text with a header; empty fields are NULL, types are inferred.

    Raises ArgumentError, naming the line where that is known.
    """
    from pyarrow import csv

    try:
        table = csv.read_csv(
            pa.BufferReader(text.strip().encode()),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NULL"]),
        )
    except pa.ArrowInvalid as error:
        raise ArgumentError(
            f"the rows are not CSV: {error}", hint="give a header, then the rows"
        ) from None
    return table.column_names, table.to_pylist()


Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CellDifference:
    column: str
    expected: Any
    actual: Any


@dataclass(frozen=True, slots=True)
class RowDifference:
    """``expected`` is ``None`` for a row too many, ``actual`` for a missing one; ``number`` is the
    expected row's, from 1. ``cells`` are those that differ where both are there.
    """

    number: int | None
    expected: Row | None
    actual: Row | None
    cells: tuple[CellDifference, ...] = ()


def differences(
    expected: Sequence[Row],
    actual: Sequence[Row],
    columns: Sequence[str],
    same: Callable[[Any, Any], bool],
) -> tuple[RowDifference, ...]:
    """Return what is missing, too many, or not the same: nothing where the rows are the same in any
    order.

    Rows that are not the same are paired where they share at least half of the columns, the most
    alike first.
    """
    missing = list(enumerate(expected, start=1))
    extra = list(actual)
    for item in list(missing):
        equal = (row for row in extra if _alike(item[1], row, columns, same) == len(columns))
        match = next(equal, None)
        if match is not None:
            missing.remove(item)
            extra.remove(match)
    pairs = sorted(
        (
            (-_alike(row, other, columns, same), number, at)
            for number, row in missing
            for at, other in enumerate(extra)
        ),
    )
    rows, found = dict(missing), []
    used: set[int] = set()
    for alike, number, at in pairs:
        if -2 * alike >= len(columns) and number in rows and at not in used:
            found.append(_cells(number, rows.pop(number), extra[at], columns, same))
            used.add(at)
    found += [RowDifference(number, row, None) for number, row in rows.items()]
    found.sort(key=lambda difference: difference.number or 0)
    found += [RowDifference(None, None, row) for at, row in enumerate(extra) if at not in used]
    return tuple(found)


def _alike(a: Row, b: Row, columns: Sequence[str], same: Callable[[Any, Any], bool]) -> int:
    return sum(same(a.get(name), b.get(name)) for name in columns)


def _cells(
    number: int, a: Row, b: Row, columns: Sequence[str], same: Callable[[Any, Any], bool]
) -> RowDifference:
    cells = (
        CellDifference(name, a.get(name), b.get(name))
        for name in columns
        if not same(a.get(name), b.get(name))
    )
    return RowDifference(number, a, b, tuple(cells))
