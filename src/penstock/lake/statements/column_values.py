"""Literals of a statement as values of a column, by DuckDB's casts; no session is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from penstock.errors import SchemaMismatch
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column
from penstock.lake.format.types import parse
from penstock.lake.format.values import duck_text
from penstock.lake.format.values.bounds import base_type
from penstock.lake.format.values.decimals import rounded
from penstock.sql.literals import NULL, Literal, NoLiteral

Zone = Callable[[], str]  # of times without one, asked for when there is such a time


def _utc() -> str:
    return "UTC"


def fitted(one: Literal, column: Column, zone: Zone = _utc) -> Any:
    """The value as the column's type takes it in an INSERT, by DuckDB's casts.

    Raises NoLiteral for types whose text Spark has to read, SchemaMismatch for what is no value
    of the type.
    """
    value = one.value
    if value is None:
        return None
    if column.children:
        return _fitted_inside(one, column, zone)
    read = _FITTED.get(base_type(column.type))
    if read is None or isinstance(value, list | dict | tuple | bytearray):
        raise NoLiteral
    try:
        found = read(value, column)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise SchemaMismatch(
            f"{value!r} is no {column.type}, which column {column.name!r} is",
            hint="write the value otherwise, or CAST it",
            data={"column": column.name, "type": column.type, "value": str(value)},
        ) from error
    if isinstance(found, datetime) and base_type(column.type) == "timestamptz":
        return _zoned(found, zone)
    return found


def _zoned(value: datetime, zone: Zone) -> datetime:
    if value.tzinfo is None:
        value = value.replace(tzinfo=ZoneInfo(zone()))
    return value.astimezone(UTC)


def _fitted_inside(one: Literal, column: Column, zone: Zone) -> Any:
    """A list as a list, a map as pairs, a struct as a dict of all its fields."""
    if one.type != column.type:
        raise NoLiteral
    if column.type == "list":
        return [fitted(item, column.children[0], zone) for item in one.value]
    if column.type == "map":
        key, value = column.children
        return [(fitted(k, key, zone), fitted(v, value, zone)) for k, v in one.value]
    given = {fold(key.value): value for key, value in one.value}
    unknown = given.keys() - {fold(child.name) for child in column.children}
    if unknown or len(given) != len(one.value):
        raise SchemaMismatch(
            f"the struct {column.name!r} has no field {sorted(unknown)[0] if unknown else ''!r}",
            hint=f"its fields are {', '.join(child.name for child in column.children)}",
            data={"column": column.name},
        )
    return {c.name: fitted(given.get(fold(c.name), NULL), c, zone) for c in column.children}


_BITS = (8, 16, 32, 64, 128)
_WIDTHS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in _BITS},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in _BITS},
}


def _integer(value: Any, column: Column) -> int:
    if isinstance(value, str):
        value = Decimal(value.strip())
    if isinstance(value, float):
        value = round(value)  # halves go to the even number, as DuckDB has it for DOUBLE
    if isinstance(value, Decimal):
        value = int(rounded(value, 0))
    low, high = _WIDTHS[base_type(column.type)]
    number = int(value)
    if not low <= number <= high:
        raise ValueError(number)
    return number


def _decimal(value: Any, column: Column) -> Decimal:
    parsed = parse(column.type)
    assert parsed.precision is not None
    assert parsed.scale is not None
    try:
        number = Decimal(str(value).strip() if not isinstance(value, bool) else int(value))
        number = rounded(number, parsed.scale)
    except InvalidOperation as error:
        raise ValueError(value) from error
    if number.copy_abs() >= Decimal(10) ** (parsed.precision - parsed.scale):
        raise ValueError(value)
    return number


def _float(value: Any, _: Column) -> float:
    return float(value)


def _boolean(value: Any, _: Column) -> bool:
    if isinstance(value, str):
        try:
            return duck_text.boolean(value.strip())
        except KeyError as error:
            raise ValueError(value) from error
    return bool(value)


def _text(value: Any, _: Column) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | bytes):
        raise NoLiteral
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def _as_written(value: Any, _: Column) -> str:
    """What the write checks itself."""
    if not isinstance(value, str):
        raise NoLiteral
    return value


def _date(value: Any, _: Column) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise ValueError(value)
    try:
        return date.fromisoformat(value.strip())
    except ValueError:
        if " " not in value.strip() and "T" not in value:
            raise
        return datetime.fromisoformat(value.strip()).date()


def _moment(value: Any, column: Column) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - it has no zone
    if not isinstance(value, datetime):
        raise ValueError(value)
    if base_type(column.type) == "timestamptz":
        return value
    if value.tzinfo is not None:
        raise NoLiteral
    return value


def _bytes(value: Any, _: Column) -> bytes:
    if isinstance(value, str):
        return duck_text.blob(value)
    if not isinstance(value, bytes):
        raise ValueError(value)
    return value


_FITTED: Mapping[str, Callable[[Any, Column], Any]] = {
    **dict.fromkeys(_WIDTHS, _integer),
    "decimal": _decimal,
    **dict.fromkeys(("float32", "float64"), _float),
    "boolean": _boolean,
    "varchar": _text,
    "date": _date,
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamptz"), _moment),
    "blob": _bytes,
    **dict.fromkeys(("time", "time_ns", "timetz", "uuid", "json"), _as_written),
}


def as_text(one: Literal) -> str | None:
    """What the catalog keeps of a literal as a default: its value's text."""
    if one.value is None:
        return None
    if isinstance(one.value, bool):
        return "true" if one.value else "false"
    if isinstance(one.value, datetime):
        return one.value.isoformat(" ")
    return str(one.value)
