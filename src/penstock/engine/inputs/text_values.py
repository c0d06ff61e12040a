"""Convert the texts of CSV and JSON files in Spark's SQL: to the value of a text, or not at all.

Convert the texts of a CSV file in Spark's SQL: to the value that a text has, or not at all.

Spark's casts take more than a file means: ``2024-05`` for the first of May, ``1D`` for a number,
``10:00`` for today. The texts that nearly all values have are recognized by a few comparisons, the
others by a pattern, and what is left raises an error that has the column and the text.

Values of JSON files in declared columns: Spark reads texts, and SQL converts them strictly.

Spark's own conversion takes a text ``1,50`` for 150, and ``2024-05`` for a day. Numbers come as
they are written. Keys are matched as they are spelt, as in DuckDB: a declared column that the first
rows do not have is worth a notice.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.csv_form import java_pattern
from penstock.engine.inputs.input_files import local_files, open_file
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.literals import text_literal

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


_MARK = "penstock_csv"
_RAISED = re.compile(rf"{_MARK} (\w+) (\d+) ([0-9A-F]*) {_MARK}_end")
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN"})
_NUMBER = r"\\s*[+-]?(\\d+[.]?\\d*|[.]\\d+)([eE][+-]?\\d+)?\\s*"
_SPECIAL = r"\\s*[+-]?(nan|inf|infinity)\\s*"
_DAY = r"\\s*\\d{4}-\\d{1,2}-\\d{1,2}"
_CLOCK = r"[ T]\\d{1,2}:\\d{2}(:\\d{2}([.]\\d{1,9})?)?"
_ZONE = r" ?(Z|UTC|[+-]\\d{2}(:\\d{2})?)"


@dataclass(frozen=True, slots=True)
class Formats:
    """Formats of values: strftime's patterns, None for ISO 8601."""

    dateformat: str | None = None
    timestampformat: str | None = None
    decimal_separator: str = "."


@dataclass(frozen=True, slots=True)
class Misfit:
    """A text that is no value of its column, the index of which is ``column``."""

    column: int
    text: str


def key_of(columns: Sequence[tuple[str, str]], paths: Sequence[str]) -> str:
    """Return what tells the errors of a call from those of others."""
    text = repr((columns, sorted(paths)))
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


def is_readable(kind: str) -> bool:
    """Return whether texts can be values of Spark's type ``kind``."""
    return _base(kind) in _BY_TYPE


def _base(kind: str) -> str:
    return kind.partition("(")[0].strip().upper()


def value_of(text: str, kind: str, formats: Formats, key: str, column: int) -> str:
    """Return the SQL of a value of Spark's type ``kind``, one that `is_readable`.

    ``text`` is SQL. The value of another text raises an error that `misfit_in` finds by ``key``.
    """
    convert = _BY_TYPE[_base(kind)]
    if convert is _same:
        return text
    marked = f"concat('{_MARK} {key} {column} ', hex({text}), ' {_MARK}_end')"
    wrong = f"CASE WHEN {text} IS NOT NULL THEN CAST(raise_error({marked}) AS {kind}) END"
    return f"coalesce({', '.join((*convert(text, kind, formats), wrong))})"


def misfit_in(message: str, key: str) -> Misfit | None:
    """Return what an error says of a text, where it is one of `value_of` with this ``key``."""
    for match in _RAISED.finditer(message):
        if match[1] == key:
            return Misfit(int(match[2]), bytes.fromhex(match[3]).decode("utf-8", "replace"))
    return None


Conversion = Callable[[str, str, Formats], tuple[str, ...]]


def _same(text: str, _kind: str, _formats: Formats) -> tuple[str, ...]:
    return (text,)


def _cast(text: str, kind: str, _formats: Formats) -> tuple[str, ...]:
    return (f"try_cast({text} AS {kind})",)


def _pointed(text: str, formats: Formats) -> str:
    """Return a number's text with a point; where a comma is asked for, a point is an error."""
    return text if formats.decimal_separator == "." else f"translate({text}, ',.', '.#')"


def _decimal(text: str, kind: str, formats: Formats) -> tuple[str, ...]:
    return (f"try_cast({_pointed(text, formats)} AS {kind})",)


def _double(text: str, kind: str, formats: Formats) -> tuple[str, ...]:
    """A text of digits is quick; one with letters must be a number, and not too large for one."""
    number = _pointed(text, formats)
    letters = " OR ".join(f"contains({text}, '{letter}')" for letter in "xXeE")
    quick = (
        f"right({text}, 1) BETWEEN '.' AND '9' AND octet_length({text}) < 300 AND NOT ({letters})"
    )
    cast = f"try_cast({number} AS {kind})"
    finite = f"{number} rlike '^{_NUMBER}$' AND abs({cast}) < {kind}('Infinity')"
    special = f"lower({text}) rlike '^{_SPECIAL}$'"
    return (
        f"CASE WHEN {quick} THEN {cast} END",
        f"CASE WHEN ({finite}) OR {special} THEN {cast} END",
    )


def _shape(text: str, marks: Mapping[int, str]) -> str:
    """Return the condition that a text has these characters at these positions."""
    return " AND ".join(
        f"substring({text}, {position}, 1) = '{mark}'" for position, mark in marks.items()
    )


_DASHES = {5: "-", 8: "-"}
_COLONS = {14: ":", 17: ":"}


def _date(text: str, _kind: str, formats: Formats) -> tuple[str, ...]:
    if formats.dateformat is not None and formats.dateformat != "%Y-%m-%d":
        return (_parsed(text, formats.dateformat, "DATE"),)
    quick = f"octet_length({text}) = 10 AND {_shape(text, _DASHES)}"
    return (
        f"CASE WHEN {quick} THEN try_cast({text} AS DATE) END",
        f"CASE WHEN {text} rlike '^{_DAY}\\\\s*$' THEN try_cast({text} AS DATE) END",
    )


def _parsed(text: str, pattern: str, kind: str) -> str:
    """Return the date or moment that a text has by strftime's pattern.

    Years of two digits are of 1969 to 2068, as in C.
    """
    java = text_literal(java_pattern(pattern))
    if kind == "DATE":
        value = f"try_to_date({text}, {java})"
        shifted = f"CAST({value} - INTERVAL '100' YEAR AS DATE)"
    else:
        value = f"CAST(try_to_timestamp({text}, {java}) AS {kind})"
        shifted = f"({value} - INTERVAL '100' YEAR)"
    if "%y" not in pattern:
        return value
    return f"CASE WHEN year({value}) > 2068 THEN {shifted} ELSE {value} END"


def _moment(zone: str) -> Conversion:
    def convert(text: str, kind: str, formats: Formats) -> tuple[str, ...]:
        if formats.timestampformat is not None:
            return (_parsed(text, formats.timestampformat, kind),)
        quick = (
            f"octet_length({text}) = 19 AND {_shape(text, {**_DASHES, **_COLONS})} "
            f"AND substring({text}, 11, 1) IN (' ', 'T')"
        )
        pattern = f"^{_DAY}({_CLOCK}({zone})?)?\\\\s*$"
        cast = f"try_cast({text} AS {kind})"
        return (
            f"CASE WHEN {quick} THEN {cast} END",
            f"CASE WHEN {text} rlike '{pattern}' THEN {cast} END",
        )

    return convert


def _binary(text: str, _kind: str, _formats: Formats) -> tuple[str, ...]:
    """Bytes of ASCII; DuckDB reads a backslash as the beginning of a byte."""
    plain = f"{text} rlike '^[\\\\x00-\\\\x5b\\\\x5d-\\\\x7f]*$'"
    return (f"CASE WHEN {plain} THEN CAST({text} AS BINARY) END",)


_BY_TYPE: Mapping[str, Conversion] = {
    "STRING": _same,
    **dict.fromkeys(_WHOLE, _cast),
    "DECIMAL": _decimal,
    "DOUBLE": _double,
    "FLOAT": _double,
    "DATE": _date,
    "TIMESTAMP_NTZ": _moment("Z"),
    "TIMESTAMP": _moment(_ZONE),
    "BINARY": _binary,
}


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
