"""Answers as JSON, as docs/json.md describes it: for commands, pages and programs.

The keys of an answer are the names of its fields. Decimals keep every digit as text, bytes are hex,
and times are ISO 8601.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from penstock.errors import ModelError, PenstockError
from penstock.events import SCHEMA_VERSION
from penstock.rendering.text import visible


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON.

    Args:
        value: Any value.
        indent: The blanks of a level, for people; None for one line.

    Returns:
        The text, without control characters.
    """
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return visible(text, keep="\n")  # the other control characters stand in strings only


def versioned(value: Any) -> dict[str, Any]:
    """Return a document, with the version of its schema first.

    Args:
        value: A value with named parts. A list has no place for the version, and is the part of an
            object.

    Returns:
        The document, made of plain values.
    """
    return {"schema_version": SCHEMA_VERSION, **plain(value)}


def plain(value: Any) -> Any:
    """Return a value made of dict, list, str, int, float, bool and None only.

    Args:
        value: Any value. Of a dataclass, the fields count.

    Returns:
        The plain value.
    """
    for kind, convert in CONVERT:
        if isinstance(value, kind):
            return convert(value)
    return _object(value) if is_dataclass(value) else str(value)


def _same(value: Any) -> Any:
    return value


def _float(value: float) -> Any:
    return value if math.isfinite(value) else str(value)  # JSON has no NaN and no infinity


def _mapping(value: Mapping[Any, Any]) -> Any:
    return {str(plain(key)): plain(item) for key, item in value.items()}


def _row(value: tuple[Any, ...]) -> Any:
    # Spark's Row and named tuples carry their names.
    names = getattr(value, "__fields__", None) or getattr(value, "_fields", None)
    return _mapping(dict(zip(names, value, strict=True))) if names else _list(value)


def _list(value: Any) -> Any:
    return [plain(item) for item in value]


def _sorted(value: Any) -> Any:
    return sorted(_list(value), key=str)


def _object(value: Any) -> Any:
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def plain_error(error: Exception) -> dict[str, Any]:
    """Return an error as an object.

    Args:
        error: The error. Those of the command line write their message themselves.

    Returns:
        Its type, message, hint, location and data.
    """
    hint = location = None
    data: Mapping[str, Any] = {}
    message = getattr(error, "format_message", error.__str__)()
    if isinstance(error, PenstockError):
        message, hint, data = error.message, error.hint, error.data
        location = str(error.location) if error.location else None
    if isinstance(error, ModelError):
        data = {"diagnostics": error.diagnostics}
    return {
        "type": type(error).__name__,
        "message": message,
        "hint": hint,
        "location": location,
        "data": plain(data),
    }


# Tried in this order: a bool is also an int, a datetime a date, a named tuple a tuple.
CONVERT: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((type(None), bool, int, str), _same),
    (float, _float),
    (Enum, lambda value: plain(value.value)),
    ((datetime, date, time), lambda value: value.isoformat()),
    (timedelta, lambda value: value.total_seconds()),
    ((Decimal, UUID, PurePath), str),
    ((bytes, bytearray), lambda value: bytes(value).hex()),
    (Mapping, _mapping),
    (tuple, _row),
    (list, _list),
    ((set, frozenset), _sorted),
)
