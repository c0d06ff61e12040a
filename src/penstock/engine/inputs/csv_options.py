"""Options of ``read_csv``: how a file is written, and which columns the call declares."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from penstock.sql.types import spark_type

#: encodings that Spark decodes itself, by Python's names; others have one byte for each character
_WIDE = {
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE",
    "utf-32": "UTF-32",
}
_UTF8 = frozenset({"utf-8", "utf-8-sig", "ascii"})
_ALIASES = {"ansi": "cp1252"}
_REPLACED = "\ufffd"
_BYTES = bytes(range(256))


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding: which characters the bytes of a file are.

    Args:
        name: Python's name.
        spark: the charset by which Spark reads the file.
        table: the characters of the bytes 128 to 255, where Spark reads the file as ISO-8859-1.
    """

    name: str = "utf-8"
    spark: str = "UTF-8"
    table: str | None = None

    @property
    def is_wide(self) -> bool:
        """Return whether a character of ASCII takes several bytes."""
        return self.name in _WIDE


UTF8 = Encoding()


@cache
def encoding_of(text: str) -> Encoding:
    """Return the encoding of a name or an alias. Raises ValueError for an unsupported one."""
    try:
        codec = codecs.lookup(_ALIASES.get(text.lower(), text))
    except LookupError:
        raise ValueError(f"is {text!r}, and Python has no such encoding") from None
    if codec.name in _UTF8:
        return UTF8
    if codec.name in _WIDE:
        return Encoding(codec.name, _WIDE[codec.name])
    decoded = _decoded(codec.name)
    if decoded is None:
        raise ValueError(f"is {text!r}, which is not supported: convert the file to UTF-8")
    return Encoding(codec.name, "ISO-8859-1", None if codec.name == "iso8859-1" else decoded[128:])


def _decoded(name: str) -> str | None:
    """Return the character of each byte, where an encoding extends ASCII by single bytes."""
    try:
        text = _BYTES.decode(name, "replace")
    except (LookupError, UnicodeError):  # codecs that are no encodings of text
        return None
    if len(text) != len(_BYTES) or text[:128].encode("utf-8") != _BYTES[:128]:
        return None
    return text if text.count(_REPLACED) < 64 else None  # ISO 2022 has none above 127


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """The options of a call; None where the file decides.

    Args:
        columns: names and Spark's types, in the order of the call.
        null: the text that stands for NULL.
        dateformat: strftime's pattern, as is ``timestampformat``.
        infer: find separator, quote, header and types in the file.
        all_text: read every column as text.
        multiline: quoted values may hold line breaks, whatever the file shows.
        by_name: match columns by name, NULL where a file lacks one.
        padded: end short rows with NULL.
    """

    header: bool | None = None
    separator: str | None = None
    quote: str | None = None
    escape: str | None = None
    comment: str = ""
    null: str = ""
    encoding: Encoding | None = None
    dateformat: str | None = None
    timestampformat: str | None = None
    decimal_separator: str = "."
    columns: tuple[tuple[str, str], ...] = ()
    infer: bool = True
    all_text: bool = False
    multiline: bool = False
    by_name: bool = False
    padded: bool = False


def _text(name: str) -> Callable[[Any], Mapping[str, Any]]:
    return lambda value: {name: str(value)}


def _flag(name: str) -> Callable[[Any], Mapping[str, Any]]:
    return lambda value: {name: boolean(value)}


def boolean(value: Any) -> bool:
    """Return a flag of a call. Raises ValueError."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def declared(value: Any) -> tuple[tuple[str, str], ...]:
    """Return names and Spark's types of ``columns``. Raises ValueError."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError("must be {'name': 'TYPE', ...}")
    return tuple((str(name), spark_type(str(kind))) for name, kind in value.items())


def _separator(value: Any) -> Mapping[str, Any]:
    if not str(value):
        raise ValueError("must be a character")
    return {"separator": "\t" if value == "\\t" else str(value)}


def _decimal(value: Any) -> Mapping[str, Any]:
    if value not in (".", ","):
        raise ValueError("must be '.' or ','")
    return {"decimal_separator": value}


def strftime(name: str) -> Callable[[Any], Mapping[str, Any]]:
    """Return the conversion of a pattern, which is checked."""

    def convert(value: Any) -> Mapping[str, Any]:
        java_pattern(str(value))
        return {name: str(value)}

    return convert


def java_pattern(text: str) -> str:
    """Return strftime's pattern as Java's. Raises ValueError for an unsupported letter.

    A number takes one digit or two, unless another number follows it at once.
    """
    codes: list[str] = []
    letters = iter(text)
    for letter in letters:
        codes.append(letter + next(letters, "") if letter == "%" else letter)
    parts: list[str] = []
    for index, code in enumerate(codes):
        if code[0] != "%":
            parts.append(f"'{code}'" if code.isalpha() else "''" if code == "'" else code)
            continue
        if code not in _STRFTIME:
            raise ValueError(f"{code} is not supported; known are {', '.join(_STRFTIME)}")
        near = codes[max(index - 1, 0) : index] + codes[index + 1 : index + 2]
        adjacent = any(other[0] == "%" for other in near)
        parts.append(_STRFTIME[code][1 if adjacent else 0])
    return "".join(parts)


#: strftime's letter: Java's pattern, and the one beside another number
_STRFTIME: Mapping[str, tuple[str, str]] = {
    "%Y": ("yyyy", "yyyy"),
    "%y": ("yy", "yy"),
    "%m": ("M", "MM"),
    "%d": ("d", "dd"),
    "%b": ("MMM", "MMM"),
    "%B": ("MMMM", "MMMM"),
    "%H": ("H", "HH"),
    "%I": ("h", "hh"),
    "%p": ("a", "a"),
    "%M": ("m", "mm"),
    "%S": ("s", "ss"),
    "%f": ("SSSSSS", "SSSSSS"),
    "%j": ("DDD", "DDD"),
    "%z": ("xx", "xx"),
}

#: the options of ``read_csv``, each with its conversion to fields of `CsvOptions`
CSV_OPTIONS: Mapping[str, Callable[[Any], Mapping[str, Any]]] = {
    "header": _flag("header"),
    "delim": _separator,
    "sep": _separator,
    "quote": _text("quote"),
    "escape": _text("escape"),
    "comment": _text("comment"),
    "nullstr": _text("null"),
    "encoding": lambda value: {"encoding": encoding_of(str(value))},
    "dateformat": strftime("dateformat"),
    "timestampformat": strftime("timestampformat"),
    "decimal_separator": _decimal,
    "auto_detect": _flag("infer"),
    "all_varchar": _flag("all_text"),
    "multiline": _flag("multiline"),
    "columns": lambda value: {"columns": declared(value)},
    "union_by_name": _flag("by_name"),
    "null_padding": _flag("padded"),
}
