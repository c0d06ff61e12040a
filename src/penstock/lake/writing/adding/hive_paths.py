"""Values of columns in the path of a file, ``.../country=a%2Fb/year=2020/x.parquet``, as text.

They are read as by DuckDB 1.5.5 when files are added (measured): names are case-sensitive, values
are unescaped, ``__HIVE_DEFAULT_PARTITION__`` and ``NULL`` are NULL.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from urllib.parse import unquote

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lake.format.files import PartitionField
from penstock.lake.format.schema import Column
from penstock.lake.format.values.bounds import base_type, partition_to_text
from penstock.lake.format.values.decimals import rounded

_NULLS = frozenset({"__HIVE_DEFAULT_PARTITION__", "NULL"})
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def hive_texts(path: str) -> Mapping[str, str | None]:
    """The ``name=value`` directories of a path; if a name occurs twice, the last one counts."""
    texts: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, mark, value = part.partition("=")
        if mark and name:
            text = unquote(value)
            texts[unquote(name)] = None if text.upper() in _NULLS else text
    return texts


def hive_value(column: Column, text: str | None, path: str) -> str | None:
    """The value as the catalog's text. Raises SchemaMismatch for text invalid for the type."""
    if text is None:
        return None
    reader = _READERS.get(base_type(column.type))
    if reader is None:
        raise UnsupportedFeature(
            f"{path}: the value of column {column.name!r}, which is {column.type}, cannot be taken "
            "from the file's path",
            hint="write the column into the file, or add it with hive_partitioning off",
            data={"path": path, "column": column.name},
        )
    try:
        value = reader(text, column.type)
    except (ValueError, ArithmeticError):
        raise SchemaMismatch(
            f"{path}: {column.name}={text} is not a valid {column.type}",
            hint="rename the directory, or add the file with hive_partitioning off",
            data={"path": path, "column": column.name, "value": text},
        ) from None
    return partition_to_text(column.type, value)


def partition_names(fields: Sequence[PartitionField]) -> tuple[str, ...]:
    """The names that the keys of a partitioning have in paths: a column's, or a transform's.

    If a transform occurs twice, the second has its column's name appended.
    """
    names: list[str] = []
    for field in fields:
        kind = field.transform.partition("(")[0]
        name = field.column if kind == "identity" else kind
        names.append(f"{kind}_{field.column}" if name in names else name)
    return tuple(names)


def _whole(text: str, type_text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    value, kind = int(text), base_type(type_text)
    bits = _BITS.get(kind.removeprefix("u"), 64)
    low, high = (0, 1 << bits) if kind.startswith("u") else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= value < high:
        raise ValueError(text)
    return value


def _boolean(text: str, _: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(text)
    return text.lower() == "true"


def _float(text: str, _: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _decimal(text: str, type_text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    precision, scale = map(int, type_text.partition("(")[2].rstrip(") ").split(","))
    value = rounded(Decimal(text), scale)
    if value.adjusted() + 1 + scale > precision and value:
        raise ValueError(text)
    return value


def _date(text: str, _: str) -> dt.date:
    return dt.datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a date has no zone


def _timestamp(text: str, _: str) -> dt.datetime:
    value = dt.datetime.fromisoformat(text)
    if value.tzinfo is not None:
        raise ValueError(text)
    return value


_WHOLES = (*_BITS, *(f"u{name}" for name in _BITS))
_READERS: Mapping[str, Callable[[str, str], object]] = {
    **dict.fromkeys(_WHOLES, _whole),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms"), _timestamp),
    "boolean": _boolean,
    "float32": _float,
    "float64": _float,
    "decimal": _decimal,
    "date": _date,
    "varchar": lambda text, _: text,
}
