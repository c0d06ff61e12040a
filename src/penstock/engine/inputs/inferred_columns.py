"""Tell which columns Spark infers from files, where that is certain without it.

Spark infers the columns of each file by a job or two, which for small files take longer than
reading them. Here a file's values are looked at in Python: those whose type is beyond doubt have a
kind each, and a file of such values has a description. Files of the same description have the same
columns, whatever these are called in Spark; of others nothing is said, and Spark is asked.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.engine.inputs.file_reader import Files
from penstock.engine.inputs.input_files import UNREAD, open_file
from penstock.lazy import pq

_MOST = 8 * 1024 * 1024  # bytes of a file that Python looks through; Spark is quicker with more
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


def _text(path: Path, options: Mapping[str, str]) -> str:
    with open_file(path) as file:
        content: bytes = file.read(_MOST + 1)
    if len(content) > _MOST:
        raise _Doubt
    return codecs.decode(content, options["encoding"])


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
    "json": _json,
    "parquet": _parquet,
}
