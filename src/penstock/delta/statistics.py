"""Statistics of a Delta file: JSON in the log from a footer, with the rules of its values.

"Per-file Statistics" of Delta's protocol: bounds of the first 32 columns without NULLs, those of
structs by their fields. Text is cut to 32 characters, the highest one above what was cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from penstock.lake.format.files import ColumnStats, DataFile
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.values.bounds import base_type

_MOST_COLUMNS = 32
_LONGEST = 32  # characters
_ABOVE_ALL = "\U0010ffff"
# Decimals have more digits than JSON's numbers in Python: marked texts, unquoted at the end.
_MARK = "\x00"
_MARKED = re.compile(r'"\\u0000(-?[0-9.]+(?:[eE][-+]?[0-9]+)?)"')
Path = tuple[str, ...]


def stats_of(file: DataFile, schema: TableSchema) -> str:
    """The statistics of a file that was just written."""
    by_id = {stats.column_id: stats for stats in file.stats}
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, column in islice(_leaves(schema.columns, ()), _MOST_COLUMNS):
        stats = by_id.get(column.id or 0)
        if stats is None:
            continue
        if stats.null_count is not None:
            _put(nulls, path, stats.null_count)
        for bounds, value in ((low, stats.min_value), (high, stats.max_value)):
            written = _bound(column, stats, value, highest=bounds is high)
            if written is not None:
                _put(bounds, path, written)
    text = json.dumps(
        {
            "numRecords": file.record_count,
            "minValues": low,
            "maxValues": high,
            "nullCount": nulls,
            "tightBounds": True,
        },
        separators=(",", ":"),
    )
    return _MARKED.sub(r"\1", text)


def loosened(stats: str | None, rows: int) -> str:
    """The statistics of a file of which rows are deleted now: bounds and counts of NULLs may be
    those of deleted rows.
    """
    try:
        known = json.loads(stats or "{}", parse_float=lambda text: f"{_MARK}{text}")
    except ValueError:
        known = {}
    text = json.dumps({**known, "numRecords": rows, "tightBounds": False}, separators=(",", ":"))
    return _MARKED.sub(r"\1", text)


def parsed(stats: str | None) -> dict[str, Any]:
    """The statistics as a mapping; empty without any, or where they are not JSON."""
    try:
        found = json.loads(stats) if stats else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _leaves(columns: Sequence[Column], path: Path) -> Iterator[tuple[Path, Column]]:
    for column in columns:
        if column.type == "struct":
            yield from _leaves(column.children, (*path, column.name))
        elif not column.children:
            yield (*path, column.name), column


def _put(values: dict[str, Any], path: Path, value: Any) -> None:
    *folders, name = path
    for folder in folders:
        values = values.setdefault(folder, {})
    values[name] = value


def _bound(column: Column, stats: ColumnStats, text: str | None, *, highest: bool) -> Any:
    write = _WRITERS.get(base_type(column.type))
    if text is None or write is None:
        return None
    if base_type(column.type) in _WITH_NAN and stats.contains_nan is not False:
        return None  # to Delta a NaN is above all numbers, and bounds of a footer leave it out
    return write(text, highest)


def _number(text: str, _: bool) -> Any:
    return int(text)


def _double(text: str, _: bool) -> Any:
    value = float(text)
    return value if value - value == 0 else None  # JSON has no infinity


def _decimal(text: str, _: bool) -> Any:
    return f"{_MARK}{text}"


def _day(text: str, _: bool) -> Any:
    return text if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None


def _time(text: str, _: bool) -> Any:
    return text.replace(" ", "T") if _TIME.fullmatch(text) else None


def _zoned_time(text: str, highest: bool) -> Any:
    found = _time(text.removesuffix("+00"), highest)
    return None if found is None else f"{found}Z"


def _text(text: str, highest: bool) -> Any:
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST] + (_ABOVE_ALL if highest else "")


_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_WITH_NAN = ("float32", "float64")
_WRITERS: Mapping[str, Callable[[str, bool], Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), _number),
    **dict.fromkeys(("float32", "float64"), _double),
    "decimal": _decimal,
    "date": _day,
    "timestamp": _time,
    "timestamptz": _zoned_time,
    "varchar": _text,
}
