"""Values as JSON takes them."""

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

from penstock.progress.view import visible


def to_json(value: Any, *, indent: int | None = None) -> str:
    """One JSON text. Decimals keep every digit as text; bytes are hex; times are ISO 8601."""
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return visible(text, keep="\n")  # the other control characters stand in strings only


def plain(value: Any) -> Any:
    """``value`` made of dict, list, str, int, float, bool and None only."""
    for kind, convert in CONVERT:
        if isinstance(value, kind):
            return convert(value)
    return _object(value) if is_dataclass(value) else str(value)


def _same(value: Any) -> Any:
    return value


def _float(value: float) -> Any:
    return value if math.isfinite(value) else str(value)  # JSON has no NaN and no infinity


def _mapping(value: Mapping[Any, Any]) -> Any:
    return {str(key): plain(item) for key, item in value.items()}


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


# In order: a bool is an int, a datetime a date, a named tuple a tuple.
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
