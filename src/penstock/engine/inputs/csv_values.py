"""Convert the texts of a CSV file in Spark's SQL: to the value that a text has, or not at all.

Spark's casts take more than a file means: ``2024-05`` for the first of May, ``1D`` for a number,
``10:00`` for today. The texts that nearly all values have are recognized by a few comparisons, the
others by a pattern, and what is left raises an error that has the column and the text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.engine.inputs.csv_options import java_pattern
from penstock.sql.literals import text_literal

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
