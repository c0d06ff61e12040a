"""Values of JSON files in declared columns: Spark reads texts, and SQL converts them strictly.

Spark's own conversion takes a text ``1,50`` for 150, and ``2024-05`` for a day. Numbers come as
they are written. Keys are matched as they are spelt, as in DuckDB: a declared column that the first
rows do not have is worth a notice.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.csv_values import Formats, is_readable, value_of
from penstock.engine.inputs.input_files import local_files, open_file
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.literals import text_literal

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_DIGITS = 15  # that a DOUBLE holds
_ROWS = 1000  # of a file, whose keys are looked at
_FILES = 20  # of a call
_MOST = 1 << 20  # characters of a line or a document that is looked at


def text_schema(schema: StructType) -> StructType:
    """Return a schema of texts, which `value_sql` converts to the types of ``schema``."""
    from pyspark.sql import types as t

    return t.StructType(
        [t.StructField(each.name, _text_type(each.dataType)) for each in schema.fields]
    )


def _text_type(kind: DataType) -> DataType:
    """Return a type with texts where ``kind`` has values that texts may be."""
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return text_schema(kind)
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(_text_type(kind.elementType))
    if isinstance(kind, t.MapType):
        return t.MapType(kind.keyType, _text_type(kind.valueType))
    return t.StringType() if _converts(kind) else kind


def _converts(kind: DataType) -> bool:
    name = kind.simpleString()
    return name != "binary" and is_readable(name)  # bytes are in base64


def value_sql(
    text: str, kind: DataType, formats: Formats, key: str, column: int, *, exact: bool = True
) -> str:
    """Return the SQL of a value of type ``kind``; ``text`` is that of its column in `text_schema`.

    A text that is no value raises an error that `csv_values.misfit_in` finds. Unless ``exact``,
    texts of numbers have gone through a DOUBLE: one with more digits than that holds is an error.
    """

    def convert(inner: str, name: str) -> str:
        if not exact and name.startswith("DECIMAL"):
            digits = f"length(regexp_replace({inner}, '[^0-9]', '')) > {_DIGITS}"
            long = f"{inner} rlike '[.eE]' AND {digits}"
            marked = f"concat({inner}, ' (too many digits for a document: write lines)')"
            inner = f"IF({long}, {marked}, {inner})"
        return value_of(inner, name, formats, key, column)

    return _value(text, kind, convert, 0)


def _value(text: str, kind: DataType, convert: Any, depth: int) -> str:
    from pyspark.sql import types as t

    inside = f"e{depth}"
    if isinstance(kind, t.StructType):
        fields = ", ".join(
            f"{text_literal(each.name)}, "
            + _value(
                f"{text}.{quote_identifier(each.name, mark='`')}", each.dataType, convert, depth
            )
            for each in kind.fields
        )
        return f"CASE WHEN {text} IS NOT NULL THEN named_struct({fields}) END"
    if isinstance(kind, t.ArrayType):
        return (
            f"transform({text}, {inside} -> {_value(inside, kind.elementType, convert, depth + 1)})"
        )
    if isinstance(kind, t.MapType):
        value = _value(inside, kind.valueType, convert, depth + 1)
        return f"transform_values({text}, (k{depth}, {inside}) -> {value})"
    return str(convert(text, kind.simpleString().upper())) if _converts(kind) else text


def line_of_text(path: Path, options: Mapping[str, str], name: str, text: str) -> int | None:
    """Return the line of the first object that has a text somewhere in a column."""
    for line, row in _objects(path, options):
        if any(leaf == text for leaf in _leaves(row.get(name))):
            return line
    return None


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts in a value, numbers as they are written."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value is not None:
        yield str(value).lower() if isinstance(value, bool) else str(value)


def _objects(path: Path, options: Mapping[str, str]) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the objects of a file with their lines; None in a document."""
    encoding = options.get("encoding", "UTF-8")
    encoding = "utf-8-sig" if encoding == "UTF-8" else encoding
    with open_file(path) as file:
        text = io.TextIOWrapper(file, encoding, "replace", newline="\n")
        if options["multiLine"] == "true":
            whole = _loaded(text.read(64 * _MOST))
            found = whole if isinstance(whole, list) else [whole]
            yield from ((None, row) for row in found if isinstance(row, dict))
            return
        for line, content in enumerate(text, 1):
            row = _loaded(content)
            if isinstance(row, dict):
                yield line, row


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None


def absent_columns(
    paths: Sequence[str], options: Mapping[str, str], names: Sequence[str]
) -> Iterator[str]:
    """Yield a notice for each declared column that is in none of the first rows."""
    missing, keys, rows = set(names), dict[str, str](), 0
    for path in local_files(paths)[:_FILES]:
        if path.stat().st_size > 64 * _MOST and options["multiLine"] == "true":
            return
        for _, row in islice(_objects(path, options), _ROWS):
            rows += 1
            missing -= row.keys()
            keys.update((fold(key), key) for key in row)
            if not missing:
                return
    for name in (name for name in names if rows and name in missing):
        other = keys.get(fold(name))
        spelt = f"; the file has `{other}`: write the column in these letters" if other else ""
        yield f"column `{name}` of read_json is in none of the first {rows:,} rows, and NULL{spelt}"
