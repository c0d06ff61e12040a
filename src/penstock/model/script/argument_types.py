"""The types of arguments: how each is read from text, and what a query makes of its value.

A value goes to Spark as what its driver takes, and the query casts it where that is not yet the
type itself. Types that the lake has as texts (``time``, ``uuid``, ``json``) are bound as the text
that DuckDB writes, so that they compare equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from uuid import UUID

Read = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """``read`` makes a value of text and raises `Wrong`; ``example`` is such a text.

    ``spark`` and ``duckdb`` are what the value is cast to in a query; ``None`` where it is bound
    as what it is. ``name`` is as it is shown (``decimal(10,2)``, ``int[]``).
    """

    name: str
    read: Read
    example: str
    spark: str | None = None
    duckdb: str | None = None
    element: ArgumentType | None = None

    @property
    def takes_json(self) -> bool:
        """Return whether a list or object of a payload may be a value."""
        return self.element is not None or self.name in {"json", "s3object"}


class Wrong(ValueError):
    """Text that is not a value of the type; the message may say why."""


def type_of(written: str) -> ArgumentType | None:
    """The type that a declaration names, in any case and by any of its names."""
    plain = written.strip().lower()
    if match := _LIST.fullmatch(plain):
        element = type_of(match[1])
        return None if element is None or element.name not in _IN_LISTS else _list_of(element)
    match = _DECIMAL.fullmatch(plain)
    if match:
        return _decimal_of(int(match[1]), int(match[2] or 0))
    return TYPES.get(_ALIASES.get(plain, plain))


def _integer(bits: int) -> Read:
    def read(text: str) -> object:
        value = int(text)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise Wrong
        return value

    return read


def _boolean(text: str) -> object:
    return {"true": True, "false": False, "1": True, "0": False}[text.strip().lower()]


def _decimal(text: str) -> object:
    value = Decimal(text.strip())
    if not value.is_finite():
        raise Wrong
    if sum(_digits(value)) > _MOST_DIGITS:
        raise Wrong(f"a decimal has at most {_MOST_DIGITS} digits")
    return value


def _digits(value: Decimal) -> tuple[int, int]:
    """Return how many there are before the point, and behind it without zeros at the end."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "it is finite"
    kept = len("".join(map(str, digits)).rstrip("0"))
    exponent += len(digits) - kept
    return (max(kept + exponent, 0), max(-exponent, 0)) if kept else (0, 0)


def _decimal_of(precision: int, scale: int) -> ArgumentType | None:
    """``decimal(precision,scale)``; None where no engine has it. A value is never rounded."""
    if not 1 <= precision <= _MOST_DIGITS or scale > precision:
        return None

    def read(text: str) -> object:
        value = _decimal(text)
        assert isinstance(value, Decimal), "it reads one"
        before, behind = _digits(value)
        if behind > scale:
            raise Wrong(f"it has {behind} digits behind the point, and the type {scale}")
        if before > precision - scale:
            raise Wrong(
                f"it has {before} digits before the point, and the type {precision - scale}"
            )
        return value

    name, example = f"decimal({precision},{scale})", f"{0:.{scale}f}"
    return ArgumentType(name, read, example, name.upper(), name.upper())


def _naive(text: str) -> object:
    value = datetime.fromisoformat(text.strip())
    if value.tzinfo is not None:
        raise Wrong("it has a time zone")
    return value


def _aware(text: str) -> object:
    value = datetime.fromisoformat(text.strip())
    if value.tzinfo is None:
        raise Wrong("it has no time zone")
    return value


def _time(text: str) -> object:
    """``10:00:00`` or ``10:00:00.5``, as DuckDB writes it."""
    value = time.fromisoformat(text.strip())
    if value.tzinfo is not None:
        raise Wrong("it has a time zone")
    written = value.isoformat()
    return written.rstrip("0") if "." in written else written


def _json(text: str) -> object:
    json.loads(text, parse_constant=_no_constant)
    return text


def _no_constant(name: str) -> object:
    raise Wrong(f"JSON has no {name}")


def _blob(text: str) -> object:
    """Hexadecimal digits, with or without ``0x`` before or ``X'...'`` around them."""
    match = _HEX.fullmatch(text.strip())
    if match is None:
        raise Wrong("a blob is written in hexadecimal digits")
    return bytes.fromhex(match[1] or match[2] or "")


def _interval(text: str) -> object:
    """Numbers with units in words, which Spark and DuckDB read alike."""
    parts = _INTERVAL_PART.findall(text)
    if not parts or _INTERVAL_PART.sub("", text).strip():
        raise Wrong("an interval is written in numbers and units")
    return " ".join(f"{number} {unit.lower()}" for number, unit in parts)


def _s3object(text: str) -> object:
    """``s3://bucket/key``, or the object ``{"s3": key, "storage": bucket}``, as that URI."""
    uri = text.strip()
    if uri.startswith("{"):
        found = json.loads(uri)
        bucket, key = found.get("storage"), found.get("s3")
        if not isinstance(bucket, str) or not isinstance(key, str):
            raise Wrong('the object has a key "s3" and a bucket "storage", both texts')
        uri = f"s3://{bucket}/{key.lstrip('/')}"
    if not _S3_OBJECT.fullmatch(uri):
        raise Wrong("an object in S3 has a bucket and a key, without patterns")
    return uri


def _list_of(element: ArgumentType) -> ArgumentType:
    def read(text: str) -> object:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
        if not isinstance(found, list):
            raise Wrong("a list is written in brackets, as JSON has it")
        return [_item(element, item) for item in found]

    shown = element.example if element.name in _BARE_IN_JSON else json.dumps(element.example)
    spark, duckdb = _IN_LISTS[element.name]
    return ArgumentType(
        f"{element.name}[]", read, f"[{shown}]", f"ARRAY<{spark}>", f"{duckdb}[]", element
    )


def _item(element: ArgumentType, item: object) -> object:
    """Times go as text, as those outside lists do; the query casts them."""
    if isinstance(item, bool):
        item = str(item).lower()
    if not isinstance(item, str):
        raise Wrong("an element is null, a list or an object")
    value = element.read(item)
    return value.isoformat(sep=" ") if isinstance(value, datetime) else value


_MOST_DIGITS = 38
_LIST = re.compile(r"(.*[^\s\]])\s*\[\s*\]")
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)|[xX]'((?:[0-9a-fA-F]{2})*)'")
_INTERVAL_PART = re.compile(
    r"([+-]?\d+(?:\.\d{1,6}(?=\s*second))?)\s*"
    r"((?:year|month|week|day|hour|minute|second|millisecond|microsecond)s?)\b",
    re.IGNORECASE,
)
_S3_OBJECT = re.compile(r"s3://[^/*?\[\]{}\s]+/[^*?\[\]{}\x00-\x1f\x7f]+")

TYPES: Mapping[str, ArgumentType] = {
    kind.name: kind
    for kind in (
        ArgumentType("text", str, "any text"),
        ArgumentType("int", _integer(32), "42"),
        ArgumentType("bigint", _integer(64), "42", "BIGINT", "BIGINT"),
        ArgumentType("double", float, "1.5"),
        ArgumentType("decimal", _decimal, "1.50"),
        ArgumentType("boolean", _boolean, "true"),
        ArgumentType("date", lambda text: date.fromisoformat(text.strip()), "2026-05-16"),
        ArgumentType("timestamp", _naive, "2026-05-16T09:30:00", "TIMESTAMP_NTZ", "TIMESTAMP"),
        ArgumentType(
            "timestamptz", _aware, "2026-05-16T09:30:00+00:00", "TIMESTAMP_LTZ", "TIMESTAMPTZ"
        ),
        ArgumentType("time", _time, "09:30:00"),
        ArgumentType("interval", _interval, "1 day 12 hours", "INTERVAL", "INTERVAL"),
        ArgumentType("uuid", lambda text: str(UUID(text)), "550e8400-e29b-41d4-a716-446655440000"),
        ArgumentType("json", _json, '{"a": 1}'),
        ArgumentType("blob", _blob, "cafe01"),
        ArgumentType("s3object", _s3object, "s3://bucket/path/file.csv"),
    )
}
_ALIASES = {
    **dict.fromkeys(("varchar", "string", "char"), "text"),
    **dict.fromkeys(("integer", "int4"), "int"),
    **dict.fromkeys(("int8", "long"), "bigint"),
    **dict.fromkeys(("float", "real"), "double"),
    **dict.fromkeys(("bytea", "binary"), "blob"),
    "numeric": "decimal",
    "bool": "boolean",
    "datetime": "timestamp",
}
#: what the elements of a list may be: their types in Spark and in DuckDB
_IN_LISTS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("text", "time", "uuid", "s3object"), ("STRING", "VARCHAR")),
    "int": ("INT", "INTEGER"),
    "bigint": ("BIGINT", "BIGINT"),
    "double": ("DOUBLE", "DOUBLE"),
    "boolean": ("BOOLEAN", "BOOLEAN"),
    "date": ("DATE", "DATE"),
    "timestamp": ("TIMESTAMP_NTZ", "TIMESTAMP"),
    "timestamptz": ("TIMESTAMP_LTZ", "TIMESTAMPTZ"),
}
_BARE_IN_JSON = ("int", "bigint", "double", "boolean")
#: every name that a declaration may have
NAMES = (*TYPES, *_ALIASES)
#: what reading a text may raise where it is not a value of the type
WRONG = (ValueError, KeyError, AttributeError, InvalidOperation, RecursionError)
