"""Typed Arrow columns as the catalog stores inlined values: the inverse of `inlined.values`.

Whole numbers, booleans, floats, text and bytes keep their type; all others become the text of
DuckDB's cast, a nested value as a single text. (DuckDB 1.5 writes structs as SQL literals, which it
then misreads itself: it reads the text of a cast correctly, see `nested_text`.)
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.files import InlinedPart
from penstock.lakes.format.inlined.values import arrow_schema, batch_schema, batches
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values import duck_text
from penstock.lakes.format.values.bounds import base_type, bound_to_text, format_timestamp
from penstock.lakes.format.values.duck_text import CAST, SQL_LISTS, SQL_STRUCTS, parse
from penstock.lazy import pa, pc

_WHOLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"})
_FLOATS = frozenset({"float32", "float64"})
_AS_TEXT = frozenset(
    {"uint64", "int128", "uint128", "decimal", "date", "uuid", "varchar", "json"}
) | {
    *("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"),
    *("time", "timetz", "interval"),
}
SYSTEM = frozenset({"row_id", "begin_snapshot", "end_snapshot"})  # columns of inlined tables
_NESTED = frozenset({"list", "struct", "map"})


def may_inline(schema: TableSchema) -> bool:
    """Return whether rows of these columns can be inlined.

    DuckDB does not inline rows with a VARIANT or GEOMETRY, nor those of tables with a column named
    like a system column of inlined tables. It inlines JSON inside of nested columns but cannot
    read it, so Penstock does not inline it either.
    """
    if any(fold(column.name) in SYSTEM for column in schema.columns):
        return False
    known = _WHOLE | _FLOATS | _AS_TEXT | _NESTED | {"boolean", "blob"}
    inner = (child for column in schema.columns for child in column.walk() if child is not column)
    return all(base_type(column.type) in known for column in schema.walk()) and not any(
        child.type == "json" for child in inner
    )


def stored(rows: pa.Table, schema: TableSchema) -> pa.Table | None:
    """``rows``, typed by `inlined.values.arrow_schema`, as the catalog stores them: columns are
    named by their field ids.

    ``None`` where a value has no text that all readers understand: then rows go to a file.
    """
    columns: list[pa.Array] = []
    for column, values in zip(schema.columns, rows.columns, strict=True):
        texts = _stored(values, column)
        if texts is None:
            return None
        columns.append(texts)
    return pa.table(columns, names=[str(column.id) for column in schema.columns])


def moved(part: InlinedPart, schema: TableSchema) -> pa.Table:
    """The rows of a part as rows of ``schema``, to which its table has changed since."""
    names = [str(column.id) for column in schema.columns]
    if part.schema == schema:
        return part.rows.select(names)
    target = batch_schema(part, schema)
    for old, new in zip(target.walk(), schema.walk(), strict=True):
        if old.type != new.type:
            raise UnsupportedFeature(
                f"column {new.name!r} became {new.type} in the transaction that wrote rows of "
                f"{old.type}, which only a session of Spark's turns into that",
                hint="commit the rows, and change the type in a transaction of its own",
                data={"column": new.name, "old": old.type, "type": new.type},
            )
    typed = pa.Table.from_batches(batches(part, target), arrow_schema(target))
    texts = stored(typed, target)
    assert texts is not None, "they were stored before"
    return texts


def _stored(values: pa.ChunkedArray, column: Column) -> pa.Array | None:
    kind = base_type(column.type)
    for kinds, storage in ((_WHOLE, pa.int64()), (_FLOATS, pa.float64())):
        if kind in kinds:
            return values.cast(storage)
    if kind in {"varchar", "json"} and pc.any(pc.match_substring(values, "\0")).as_py():
        return None  # DuckDB 1.5.5 fails on it in PostgreSQL
    if kind in {"boolean", "blob", "varchar", "json"}:
        return values
    if kind in _COUNTED and not pa.types.is_integer(values.type):
        values = values.cast(pa.int32() if kind == "date" else pa.int64())
    if column.children:
        values = values.cast(_counts(values.type))
    texts = [None if value is None else text(value, column) for value in values.to_pylist()]
    if column.children and any("\0" in value for value in texts if value is not None):
        return None
    # Readers that expect another form of nested values have to read the same value.
    forms = (SQL_STRUCTS, SQL_LISTS, CAST)
    if column.children and not all(
        parse(value, column, (CAST,)) == parse(value, column, forms)
        for value in texts
        if value is not None
    ):
        return None
    return pa.array(texts, pa.string())


def _counts(kind: pa.DataType) -> pa.DataType:
    """``kind`` with whole numbers for dates and times, some of which Python cannot represent."""
    if pa.types.is_struct(kind):
        fields = (kind.field(at) for at in range(kind.num_fields))
        return pa.struct([field.with_type(_counts(field.type)) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_counts(kind.value_type)))
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(_counts(kind.key_type))
        return pa.map_(key, kind.item_field.with_type(_counts(kind.item_type)))
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def text(value: Any, column: Column) -> str:
    """The text of a value that is not NULL, as DuckDB's cast gives it."""
    nested = _WRITE_NESTED.get(column.type)
    return (
        nested(value, column) if nested else _WRITE.get(base_type(column.type), _any)(value, column)
    )


def _any(value: Any, column: Column) -> str:
    bound = bound_to_text(column.type, value)
    return str(value) if bound is None else bound


def _boolean(value: Any, _: Column) -> str:
    return "true" if value else "false"


def _float(value: Any, column: Column) -> str:
    return bound_to_text(column.type, value) or "nan"


def _date(value: Any, _: Column) -> str:
    if isinstance(value, dt.date):
        return value.isoformat()
    if abs(value) == duck_text.DATE_LIMIT:
        return "infinity" if value > 0 else "-infinity"
    return _day(value)


def _moment(value: Any, column: Column) -> str:
    zone = "+00" if base_type(column.type) == "timestamptz" else ""
    if isinstance(value, dt.datetime):
        return format_timestamp(value)
    if abs(value) == duck_text.MOMENT_LIMIT:
        return "infinity" if value > 0 else "-infinity"
    digits = 9 if base_type(column.type) == "timestamp_ns" else 6
    seconds, fraction = divmod(value, 10**digits)
    days, second = divmod(seconds, 86_400)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    part = f".{fraction:0{digits}d}".rstrip("0") if fraction else ""
    return f"{_day(days)} {clock}{part}{zone}"


def _day(days: int) -> str:
    """The date of a count of days since 1970 in the Gregorian calendar, extended to all years."""
    cycle, in_cycle = divmod(days + 719_468, 146_097)
    in_year = in_cycle - in_cycle // 1460 + in_cycle // 36_524 - in_cycle // 146_096
    year = in_year // 365
    of_year = in_cycle - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153  # from March
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += cycle * 400 + (month <= 2)
    era = "" if year > 0 else " (BC)"
    return f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d}{era}"


def _decimal(value: Any, column: Column) -> str:
    return _any(Decimal(value), column)


def _blob(value: Any, _: Column) -> str:
    """The bytes in hexadecimal, which never needs quotes."""
    return "".join(f"\\x{byte:02X}" for byte in bytes(value))


def _interval(value: Any, _: Column) -> str:
    years, months = int(value["months"] / 12), value["months"]
    parts = [(years, "year"), (months - 12 * years, "month"), (value["days"], "day")]
    said = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts if count]
    micros = value["micros"]
    if micros or not said:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        part = f".{fraction:06d}".rstrip("0") if fraction else ""
        said.append(f"{'-' if micros < 0 else ''}{clock}{part}")
    return " ".join(said)


_COUNTED: Mapping[str, Callable[[Any, Column], str]] = {
    "date": _date,
    **dict.fromkeys(
        ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"), _moment
    ),
}

_WRITE: Mapping[str, Callable[[Any, Column], str]] = {
    **_COUNTED,
    "boolean": _boolean,
    "float32": _float,
    "float64": _float,
    "decimal": _decimal,
    "blob": _blob,
    "interval": _interval,
}


# In a cast's text these need no quotes anywhere.
_BARE = re.compile(r"[\w.+-](?:[\w.+\\ -]*[\w.+-])?")


def _inside(value: Any, column: Column) -> str:
    if value is None:
        return "NULL"
    inner_text = text(value, column)
    if column.children or (_BARE.fullmatch(inner_text) and inner_text.upper() != "NULL"):
        return inner_text
    if base_type(column.type) == "blob" and inner_text:
        return inner_text  # quoted, its backslashes would be doubled
    escaped = inner_text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _list(value: Any, column: Column) -> str:
    return f"[{', '.join(_inside(item, column.children[0]) for item in value)}]"


def _struct(value: Any, column: Column) -> str:
    fields = []
    for child in column.children:
        name = child.name.replace("\\", "\\\\").replace("'", "\\'")
        fields.append(f"'{name}': {_inside(value.get(child.name), child)}")
    return "{" + ", ".join(fields) + "}"


def _map(value: Any, column: Column) -> str:
    key, item = column.children
    pairs = value.items() if isinstance(value, Mapping) else value
    return "{" + ", ".join(f"{_inside(k, key)}={_inside(v, item)}" for k, v in pairs) + "}"


_WRITE_NESTED: Mapping[str, Callable[[Any, Column], str]] = {
    "list": _list,
    "struct": _struct,
    "map": _map,
}
