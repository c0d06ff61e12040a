"""Tell which columns Spark infers from files, where that is certain without it.

Spark infers the columns of each file by a job or two, which for small files take longer than
reading them. Here a file's values are looked at in Python: those whose type is beyond doubt have a
kind each, and a file of such values has a description. Files of the same description have the same
columns, whatever these are called in Spark; of others nothing is said, and Spark is asked.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock.engine.inputs.file_reader import Files
from penstock.engine.inputs.input_files import UNREAD, csv_rows, open_file
from penstock.lazy import pq

_MOST = 8 * 1024 * 1024  # bytes of a file that Python looks through; Spark is quicker with more
#: A value's kind, of those that Spark cannot take for another.
_KINDS = re.compile(
    r"(?P<int>[+-]?\d{1,18})"
    r"|(?P<double>[+-]?\d{1,15}\.\d{1,15})"
    r"|(?P<date>\d{4}-\d\d-\d\d)"
    r"|(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)"
    r"|(?P<time_t>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?)"
    r"|(?P<time_z>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z)"
    r"|(?P<boolean>(?i:true|false))"
    r"|(?P<string>[A-Za-z][^\n]*)",
    re.ASCII,
)
_NO_STRINGS = re.compile(r"(?i:nan|inf.*|t\d.*)")  # numbers and times, for Spark
_IN_TIME = frozenset({"date", "time", "time_t", "time_z"})
_INT = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)


class _Doubt(Exception):
    """Doubt about what Spark makes of a file."""


def described(files: Files, paths: Sequence[Path]) -> Hashable | None:
    """Describe the columns of ``files``, which are those of ``paths``; None where in doubt."""
    if not paths or any(_is_unread(path) for path in paths):
        return None
    try:
        return _FORMATS[files.format](paths, files.options)
    except (_Doubt, OSError, ValueError, csv.Error, RecursionError):
        return None


def _is_unread(path: Path) -> bool:
    return path.suffix in UNREAD or path.stat().st_size > _MOST


def _csv(paths: Sequence[Path], options: Mapping[str, str]) -> Hashable:
    """Return its header, and the type of each column."""
    if options.get("multiLine") == "true":
        raise _Doubt
    header: list[str] | None = None
    kinds: dict[int, set[str]] = defaultdict(set)
    for path in paths:
        rows = _csv_rows(path, options)
        first = next(rows, None)
        if first is None or header not in (None, first):
            raise _Doubt
        if options["header"] != "true":
            rows, first = _chained(first, rows), ["" for _ in first]
        header = first
        for row in rows:
            if len(row) != len(header):
                raise _Doubt
            _add_kinds(kinds, row, options)
    assert header is not None, "there are paths"
    return "csv", tuple(header), tuple(_type_of(kinds[at]) for at in range(len(header)))


def _chained(first: list[str], rows: Iterable[list[str]]) -> Any:
    yield first
    yield from rows


def _csv_rows(path: Path, options: Mapping[str, str]) -> Any:
    """Yield the rows of a file. Raises _Doubt where one takes several lines, which Spark splits."""
    lines = io.StringIO(_text(path, options), newline=None)
    found = csv_rows(lines, options, strict=True)
    for number, row in enumerate(found, 1):
        if found.line_num != number:
            raise _Doubt
        if row:
            yield row


def _text(path: Path, options: Mapping[str, str]) -> str:
    with open_file(path) as file:
        content: bytes = file.read(_MOST + 1)
    if len(content) > _MOST:
        raise _Doubt
    return codecs.decode(content, options["encoding"])


def _add_kinds(kinds: dict[int, set[str]], row: Sequence[str], options: Mapping[str, str]) -> None:
    if options.get("inferSchema") == "false":
        return
    null = options.get("nullValue", "")
    for at, value in enumerate(row):
        known = kinds[at]
        if value and value != null and "string" not in known:
            known.add(_kind(value, options))


def _kind(value: str, options: Mapping[str, str]) -> str:
    match = _KINDS.fullmatch(value)
    kind = "" if match is None else str(match.lastgroup)
    if kind == "int":
        return "int" if int(value) in _INT else "bigint"
    if kind in _IN_TIME:
        if options.keys() & {"dateFormat", "timestampFormat"}:
            raise _Doubt
        datetime.fromisoformat(value)
    if not kind or (kind == "string" and _NO_STRINGS.fullmatch(value)):
        raise _Doubt
    return kind


_WIDER = (
    (frozenset[str](), "string"),
    (frozenset({"int", "bigint"}), "bigint"),
    (frozenset({"int", "double"}), "double"),
    (frozenset({"bigint", "double"}), "double"),
    (frozenset({"int", "bigint", "double"}), "double"),
)


def _type_of(kinds: set[str]) -> str:
    """Return the type of a column of values of these kinds."""
    if len(kinds) == 1 or "string" in kinds:
        return "string" if "string" in kinds else next(iter(kinds))
    wider = dict(_WIDER).get(frozenset(kinds))
    if wider is None:
        raise _Doubt
    return wider


def _json(paths: Sequence[Path], options: Mapping[str, str]) -> Hashable:
    """Return the fields of all objects, each with its type."""
    if options.keys() & {"dateFormat", "timestampFormat"}:
        raise _Doubt
    found: list[Any] = []
    for path in paths:
        text = _text(path, options)
        whole = options["multiLine"] == "true"
        values = [_value(each) for each in ([text] if whole else text.split("\n")) if each.strip()]
        found += values[0] if whole and values and isinstance(values[0], list) else values
    if not found or not all(isinstance(each, dict) for each in found):
        raise _Doubt
    return "json", _json_type(found)


def _value(text: str) -> Any:
    def refuse(_: str) -> None:
        raise _Doubt

    return json.loads(text, parse_constant=refuse, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name.casefold() for name, _ in pairs}) < len(pairs):
        raise _Doubt
    return dict(pairs)


def _json_type(values: Sequence[Any]) -> Hashable:
    """Return the type of a field that has these values."""
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, dict) for value in there):
        names = sorted({name for value in there for name in value})
        if not names or len({name.casefold() for name in names}) < len(names):
            raise _Doubt
        return tuple((name, _json_type([each.get(name) for each in there])) for name in names)
    if there and all(isinstance(value, list) for value in there):
        inside = [each for value in there for each in value if each is not None]
        if not inside:
            raise _Doubt
        return "array", _json_type(inside)
    return _type_of({_json_kind(value) for value in there})


def _json_kind(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value not in _LONG:
        raise _Doubt
    kind = _JSON_KINDS.get(type(value))
    if kind is None:
        raise _Doubt
    return kind


_JSON_KINDS: Mapping[type, str] = {str: "string", bool: "boolean", int: "bigint", float: "double"}


def _parquet(paths: Sequence[Path], _options: Mapping[str, str]) -> Hashable:
    """Return the schema as written, and the one that Spark has put beside it."""
    found = set[Hashable]()
    for path in paths:
        metadata = pq.read_metadata(path)
        beside = (metadata.metadata or {}).get(b"org.apache.spark.sql.parquet.row.metadata")
        found.add((str(metadata.schema).partition("\n")[2], beside))
    if len(found) > 1:
        raise _Doubt
    return "parquet", found.pop()


_FORMATS: Mapping[str, Callable[[Sequence[Path], Mapping[str, str]], Hashable]] = {
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}


def agrees(described_: Hashable, types: Sequence[str]) -> bool:
    """Return whether Spark infers what a description of CSV files says: the check of it."""
    if not isinstance(described_, tuple) or described_[0] != "csv":
        return True
    own = ["timestamp" if each.startswith("time") else each for each in described_[2]]
    return own == ["timestamp" if each.startswith("timestamp") else each for each in types]
