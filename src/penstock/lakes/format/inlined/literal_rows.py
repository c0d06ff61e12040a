"""Rows of Python values or Arrow columns, converted to the types of a table without Spark.

Values become what users see (`lake.format.types`). Nothing is lost silently: a value out of its
type's range, or of another kind, is refused with its row (from 1) and column; a decimal with more
digits after the point is rounded, as DuckDB and Spark do.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.inlined.values import arrow_schema, stored_value
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema, type_text
from penstock.lakes.format.values import duck_text
from penstock.lakes.format.values.bounds import base_type, parse
from penstock.lakes.format.values.precision import HINT, TooFine, column_in_micros, rounded
from penstock.lazy import pa

if TYPE_CHECKING:
    Rows: TypeAlias = pa.Table | Sequence[Mapping[str, Any]]


Convert = Callable[[Any], Any]

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of timestamps without a zone
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)
TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,6})?")
TIME_NS = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,9})?")
TIMETZ = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d(:\d\d)?)?")
_ZONED = re.compile(r"\d\d:\d\d.*(Z|[+-]\d\d(:?\d\d)?)$")


def date(_: Column) -> Convert:
    def convert(value: Any) -> int:
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return (value - _EPOCH.date()).days
        return duck_text.days(_is_text(value, "give a date, or its text"))

    return convert


def _is_text(value: Any, say: str) -> str:
    if not isinstance(value, str):
        raise TypeError(say)
    return value.strip()


def moment(unit: int, *, nanos: bool = False) -> Callable[[Column], Convert]:
    """Without a zone, as a count; ``unit`` is in that count, of what the type holds."""
    scale = 1000 if nanos else 1

    def convert(value: Any) -> int:
        if isinstance(value, dt.datetime):
            if value.tzinfo is not None:
                raise ValueError("the column has no time zone: take it away first")
            count = _micros(value, _EPOCH, finer=nanos) * scale
            count += int(getattr(value, "nanosecond", 0))
        elif isinstance(value, dt.date):
            count = (value - _EPOCH.date()).days * 86_400_000_000 * scale
        else:
            text = _is_text(value, "give a datetime, or its text")
            if _ZONED.search(text):
                raise ValueError("the column has no time zone: take it away first")
            count = (duck_text.nanos if nanos else duck_text.micros)(text)
        if not -(2**63) <= count < 2**63:
            raise ValueError("nanoseconds reach from 1677 to 2262")
        if count % unit and abs(count) != duck_text.MOMENT_LIMIT:
            raise ValueError("it is finer than the type")
        return count

    return lambda _: convert


def _micros(value: dt.datetime, epoch: dt.datetime, *, finer: bool = False) -> int:
    """Return the microseconds since ``epoch``; pandas' Timestamp has nanoseconds as well."""
    if not finer and getattr(value, "nanosecond", None):
        raise ValueError("it holds nanoseconds: round it, as by .floor('us')")
    return (value - epoch) // _MICRO


def timestamptz(_: Column) -> Convert:
    def convert(value: Any) -> int:
        if isinstance(value, dt.datetime):
            if value.tzinfo is None:
                raise ValueError("it has no time zone: give it one")
            return _micros(value, _EPOCH_UTC)
        text = _is_text(value, "give a datetime with a time zone, or its text")
        if not _ZONED.search(text) and "infinity" not in text:
            raise ValueError("it has no time zone: end it with +00")
        return duck_text.micros(text)

    return convert


def time(pattern: re.Pattern[str]) -> Callable[[Column], Convert]:
    def convert(value: Any) -> str:
        text = value.isoformat() if isinstance(value, dt.time) else value
        text = _is_text(text, "give a time, or its text")
        if pattern.fullmatch(text) is None:
            raise ValueError("write it as 12:34:56.789, with +02 where the type has a zone")
        clock, point, rest = text.partition(".")
        if not point:
            return text.removesuffix(":00") if text.count(":") == 3 else text  # +02:00
        fraction = re.match(r"\d+", rest)
        assert fraction is not None, "the pattern has digits there"
        zone = rest[fraction.end() :].removesuffix(":00")
        digits = fraction[0].rstrip("0")
        return f"{clock}{'.' if digits else ''}{digits}{zone}"

    return lambda _: convert


def interval(_: Column) -> Convert:
    def convert(value: Any) -> dict[str, int]:
        if isinstance(value, dt.timedelta):
            if getattr(value, "nanoseconds", None):  # of pandas' Timedelta
                raise ValueError("it holds nanoseconds: round it, as by .floor('us')")
            micros = (value - dt.timedelta(days=value.days)) // _MICRO
            return {"months": 0, "days": value.days, "micros": micros}
        if isinstance(value, Mapping):
            return {key: int(value.get(key, 0)) for key in ("months", "days", "micros")}
        text = _is_text(value, "give a timedelta, or its text")
        parsed = duck_text.parse_interval(text)
        if parsed is None:
            raise ValueError(f"{text!r} is not an interval")
        return {"months": parsed.months, "days": parsed.days, "micros": parsed.microseconds}

    return convert


def typed(rows: Rows, schema: TableSchema, *, table: str) -> pa.Table:
    """``rows`` with the columns of ``schema``, typed as `inlined.values.arrow_schema` has them.

    Columns match by name, letter case aside; one that is missing takes its default or NULL.
    Raises SchemaMismatch for unknown columns, wrong values and NULLs where none may be,
    UnsupportedFeature for a default that is an expression.
    """
    target = arrow_schema(schema)
    if isinstance(rows, pa.Table):
        by_name = {name: rows.column(at) for at, name in enumerate(rows.column_names)}
        count = rows.num_rows
        names = _matched(by_name, schema, table)
        alike = [name for spellings in names.values() if len(spellings) > 1 for name in spellings]
        if alike or len(by_name) != rows.num_columns:
            raise SchemaMismatch(
                f"the rows for {table} have two columns named alike: {', '.join(alike or by_name)}",
                hint="name one of them otherwise",
                data={"table": table},
            )
    else:
        names = _matched({key: None for row in rows for key in row}, schema, table)
        count = len(rows)
    columns = []
    for column, field in zip(schema.columns, target, strict=True):
        known = names.get(column.name, [])
        if not known:
            columns.append(_missing(column, count, field.type, table))
        elif isinstance(rows, pa.Table):
            columns.append(_of_arrow(by_name[known[0]], column, field.type, table))
        else:
            columns.append(_of_rows(rows, known, column, field.type, table))
    return pa.table(columns, schema=target)


def _matched(names: Iterable[str], schema: TableSchema, table: str) -> dict[str, list[str]]:
    """The spellings of each column of the table in ``names``: rows may differ in letter case."""
    known = {fold(column.name): column.name for column in schema.columns}
    spellings: dict[str, list[str]] = {}
    for name in names:
        column = known.get(fold(name))
        if column is None:
            close = get_close_matches(fold(name), known, n=1)
            listed = ", ".join(known.values())
            raise SchemaMismatch(
                f"{table} has no column {name!r}",
                hint=f"did you mean {known[close[0]]}?" if close else f"its columns are {listed}",
                data={"table": table, "column": name},
            )
        spellings.setdefault(column, []).append(name)
    return spellings


def _missing(column: Column, count: int, kind: pa.DataType, table: str) -> pa.Array:
    value = _default(column)
    if value is None and not column.nullable and count:
        raise _refused(table, column, 1, "is missing, and the column is NOT NULL")
    return pa.array([value] * count, kind)


def _default(column: Column) -> Any:
    if column.default is None:
        return None
    if not column.has_plain_default or column.children:
        raise UnsupportedFeature(
            f"column {column.name!r} has the default {column.default}, which only DuckDB evaluates",
            hint=f"give the rows a column {column.name}",
            data={"column": column.name, "default": column.default},
        )
    return stored_value(column, column.default)


def _of_arrow(values: pa.ChunkedArray, column: Column, kind: pa.DataType, table: str) -> Any:
    """Take a column of the same type as a whole, and any other value by value.

    Reject invalid UTF-8 in string columns: Arrow does not check it, and DuckDB could not read the
    file.
    """
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(
            f"column {column.name!r} of {table} is not what Arrow says that it is: {error}",
            hint="correct the values (bytes are pa.binary()); nothing was written",
            data={"table": table, "column": column.name},
        ) from error
    values = _without_nanoseconds(values, column, table)
    if values.type.equals(kind) and base_type(column.type) not in _CHECKED:
        if not column.nullable and values.null_count:
            row = values.is_null().index(True).as_py() + 1
            raise _refused(table, column, row, "is NULL, and the column is NOT NULL")
        return values
    return _array(values.to_pylist(), column, kind, table)


def _without_nanoseconds(values: pa.ChunkedArray, column: Column, table: str) -> pa.ChunkedArray:
    """Return timestamps in nanoseconds in the unit of the column: a value is never cut."""
    if base_type(column.type) == "timestamp_ns" and values.type.equals(pa.timestamp("ns")):
        return values.cast(pa.int64())
    if not (pa.types.is_timestamp(values.type) or pa.types.is_nested(values.type)):
        return values
    try:
        return column_in_micros(values)
    except TooFine as error:
        why = f"{error}, and {type_text(column)} holds microseconds"
        raise _refused(table, column, error.row, why, HINT) from error


def _of_rows(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], column: Column, kind: Any, table: str
) -> Any:
    """The value of each row under any of the names, or the default where the row has none."""
    default = _Missing(column)
    values = []
    for row in rows:
        name = next((spelling for spelling in names if spelling in row), None)
        values.append(default.value() if name is None else row[name])
    return _array(values, column, kind, table)


class _Missing:
    """A default that is evaluated only when a row needs it: DuckDB alone may know its function."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._evaluated: list[Any] = []

    def value(self) -> Any:
        if not self._evaluated:
            self._evaluated.append(_default(self._column))
        default = self._evaluated[0]
        return None if default is None else _Ready(default)


class _Ready:
    """A value that has the column's type already."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _array(values: Sequence[Any], column: Column, kind: pa.DataType, table: str) -> pa.Array:
    convert = _converter(column)
    converted: list[Any] = []
    for row, value in enumerate(values, 1):
        if value is None:
            if not column.nullable:
                raise _refused(table, column, row, "is NULL, and the column is NOT NULL")
            converted.append(None)
            continue
        if isinstance(value, _Ready):
            converted.append(value.value)
            continue
        try:
            converted.append(convert(value))
        except (ValueError, TypeError, ArithmeticError) as error:
            why = f"{_shown(value)} is not a valid {type_text(column)}: {error}"
            raise _refused(table, column, row, why) from error
    try:
        return pa.array(converted, kind)
    except UnicodeEncodeError as error:  # half of a pair of surrogates, which is not a character
        bad = repr(error.object)
        row = next(at for at, value in enumerate(converted, 1) if bad in repr(value))
        raise _refused(
            table, column, row, f"{_shown(error.object)} is not valid text: {error}"
        ) from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refused(
    table: str, column: Column, row: int, why: str, hint: str = "correct the value"
) -> SchemaMismatch:
    return SchemaMismatch(
        f"row {row}, column {column.name!r} of {table}: {why}",
        hint=f"{hint}; nothing was written",
        data={"table": table, "column": column.name, "row": row},
    )


def _converter(column: Column) -> Convert:
    nested = _NESTED.get(column.type)
    if nested is not None:
        return nested(column)
    make = _LEAF.get(base_type(column.type))
    if make is None:
        raise UnsupportedFeature(
            f"column {column.name!r} is {column.type}, whose values are not taken as literals",
            hint="append the rows as a DataFrame or with INSERT, or leave the column out",
            data={"column": column.name, "type": column.type},
        )
    return make(column)


def _optional(column: Column) -> Convert:
    convert = _converter(column)
    return lambda value: None if value is None else convert(value)


def _list(column: Column) -> Convert:
    element = _optional(column.children[0])

    def convert(value: Any) -> Any:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise TypeError("give a list")
        return [element(item) for item in value]

    return convert


def _struct(column: Column) -> Convert:
    fields = {fold(child.name): (child.name, _optional(child)) for child in column.children}

    def convert(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise TypeError("give a mapping of its fields")
        items = {fold(key): item for key, item in value.items()}
        unknown = items.keys() - fields.keys()
        if unknown:
            raise ValueError(f"it has no field {min(unknown)!r}")
        return {name: inner(items.get(key)) for key, (name, inner) in fields.items()}

    return convert


def _map(column: Column) -> Convert:
    key, item = _converter(column.children[0]), _optional(column.children[1])

    def convert(value: Any) -> Any:
        pairs = list(value.items() if isinstance(value, Mapping) else value)
        entries = [(key(k), item(v)) for k, v in pairs if k is not None]
        if len(entries) != len(pairs):
            raise ValueError("a key is NULL")
        if len({repr(k) for k, _ in entries}) != len(entries):
            raise ValueError("a key is there twice")
        return entries

    return convert


_NESTED: Mapping[str, Callable[[Column], Convert]] = {
    "list": _list,
    "struct": _struct,
    "map": _map,
}


def _whole(low: int, high: int) -> Callable[[Column], Convert]:
    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise TypeError("give a whole number")
        number = int(value)
        if number != value:
            raise ValueError("it is not whole")
        if not low <= number <= high:
            raise ValueError(f"it is not within {low} to {high}")
        return number

    return lambda _: convert


def _digits(low: int, high: int) -> Callable[[Column], Convert]:
    """A whole number that users see as a decimal."""
    inner = _whole(low, high)
    return lambda column: lambda value: Decimal(inner(column)(value))


def _float32(_: Column) -> Convert:
    def convert(value: Any) -> float:
        number = _number(value)
        single: float = struct.unpack("<f", struct.pack("<f", number))[0]  # OverflowError
        return single

    return convert


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError("give a number")
    number = float(value)
    if math.isinf(number) and not (isinstance(value, float) or Decimal(value).is_infinite()):
        raise ValueError("it is too large")
    return number


def _decimal(column: Column) -> Convert:
    parsed = parse(column.type)
    precision, scale = parsed.precision or 0, parsed.scale or 0

    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise TypeError("give a number")
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not exact.is_finite():
            raise ValueError("a decimal is finite")
        decimal = rounded(exact, scale)
        if decimal.copy_abs() >= Decimal(10) ** (precision - scale):
            raise ValueError(f"it has more than {precision - scale} digits before the point")
        return decimal

    return convert


def _of(*kinds: type, say: str) -> Callable[[Column], Convert]:
    def convert(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(say)
        return value

    return lambda _: convert


def _blob(_: Column) -> Convert:
    inner = _of(bytes, bytearray, memoryview, say="give bytes")(_)
    return lambda value: bytes(inner(value))


def _json(_: Column) -> Convert:
    def convert(value: Any) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        json.loads(value)
        return value

    return convert


def _uuid(_: Column) -> Convert:
    return lambda value: str(value if isinstance(value, uuid.UUID) else uuid.UUID(value))


_WHOLE = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)
}
_DIGITS = {
    "uint64": (0, 2**64 - 1),
    "int128": (-(10**38) + 1, 10**38 - 1),
    "uint128": (0, 10**38 - 1),
}

_LEAF: Mapping[str, Callable[[Column], Convert]] = {
    **{name: _whole(*bounds) for name, bounds in _WHOLE.items()},
    **{name: _digits(*bounds) for name, bounds in _DIGITS.items()},
    "boolean": _of(bool, say="give true or false"),
    "float32": _float32,
    "float64": lambda _: _number,
    "decimal": _decimal,
    "varchar": _of(str, say="give text"),
    "json": _json,
    "uuid": _uuid,
    "blob": _blob,
    "date": date,
    "timestamp": moment(1),
    "timestamp_ms": moment(1000),
    "timestamp_s": moment(1_000_000),
    "timestamp_ns": moment(1, nanos=True),
    "timestamptz": timestamptz,
    "time": time(TIME),
    "time_ns": time(TIME_NS),
    "timetz": time(TIMETZ),
    "interval": interval,
}

# Types with a smaller range than their Arrow type: each value is checked.
_CHECKED = frozenset(
    {"uint8", "uint16", "uint32", "uint64", "int128", "uint128", "timestamp_s"}
) | {
    *("timestamp_ms", "json", "uuid", "time", "time_ns", "timetz", "list", "struct", "map"),
}
