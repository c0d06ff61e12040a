"""The form of a CSV file: the options of ``read_csv``, and the line ends and quotes of a file.

Scan a CSV file for its line ends and quotes: what Spark has to know before it reads the file.

Spark reads lines unless quoted values hold line breaks, and it drops lines of spaces. Its parser
and DuckDB's agree on files whose quotes stand at the ends of values; others are refused here.
"""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

from penstock.engine.inputs.input_files import COMPRESSED, Fault, Unfit, encoding_hint, open_file
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


_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_ENDS = (b"\n", b"\r")
_QUOTE = (
    "a quote stands beside other text",
    "double a quote inside a quoted value, and leave no text beside it; quote = '' reads quotes "
    "as text",
)
_RETURN = (
    "a carriage return stands inside the line",
    "quote the value that holds it, or end all lines in one way",
)
_BLANK_LINE = (
    "the line is blank, and the file has one column",
    'remove the line, or write "" where the value is NULL',
)
_LINE_ENDS = (b"\n", b"\r\n", b"\r")


@dataclass(frozen=True, slots=True)
class Quoting:
    """Separator, quote and escape of a file; no quote where ``quote`` is empty."""

    separator: str
    quote: str
    escape: str


@dataclass(frozen=True, slots=True)
class TextForm:
    """Line ends of a file.

    Args:
        breaks: quoted values hold line breaks.
        feeds, returns: lines end with LF (also after CR), or have CR somewhere.
        blank: there may be lines without a character.
        spaces: there may be lines of spaces and tabs alone.
    """

    breaks: bool = False
    feeds: bool = True
    returns: bool = False
    blank: bool = False
    spaces: bool = False

    @property
    def in_lines(self) -> bool:
        """Return whether each line is a row, or blank."""
        return not self.breaks and not self.spaces


def require_encoded(path: Path, encoding: Encoding) -> None:
    """Read a file whole, and raise Unfit where its bytes are not of its encoding."""
    position = 0
    undefined = _undefined(encoding)
    decoder = codecs.getincrementaldecoder(encoding.name)() if encoding.table is None else None
    with open_file(path) as file:
        while True:
            block = file.read(_BLOCK)
            pending = b"" if decoder is None else decoder.getstate()[0]
            if decoder is not None and (pending or encoding.is_wide or not block.isascii()):
                try:
                    decoder.decode(block, final=not block)
                except UnicodeError as error:
                    start = error.start if isinstance(error, UnicodeDecodeError) else 0
                    raise _misencoded(path, encoding, position - len(pending) + start) from None
            elif undefined and (wrong := block.translate(None, undefined)):
                raise _misencoded(path, encoding, position + block.find(wrong[:1]))
            if not block:
                return
            position += len(block)


def _undefined(encoding: Encoding) -> bytes:
    """Return the bytes that have a character, where some have none."""
    table = encoding.table or ""
    if "\ufffd" not in table:
        return b""
    high = bytes(128 + index for index, letter in enumerate(table) if letter != "\ufffd")
    return bytes(range(128)) + high


def _misencoded(path: Path, encoding: Encoding, position: int) -> Unfit:
    """Return the fault of the byte at a ``position`` of a file."""
    with open_file(path) as file:
        blocks = range(0, position, _BLOCK)
        line = 1 + sum(file.read(min(_BLOCK, position - start)).count(b"\n") for start in blocks)
    if encoding != UTF8:
        return Unfit(Fault(path, f"not {encoding.name}", line), "give its own encoding")
    return Unfit(Fault(path, "not UTF-8", line), encoding_hint(path))


def scan(path: Path, encoding: Encoding, quoting: Quoting, *, columns: int) -> TextForm:
    """Read a file of so many ``columns`` whole. Raises Unfit for quotes and line ends that readers
    take differently.
    """
    form, sloppy, inside = TextForm(feeds=False), False, False
    ends = (quoting.separator.encode("utf-8"), *_ENDS)
    quote = quoting.quote.encode("utf-8")
    simple = quoting.escape in ("", quoting.quote)
    even = _even_quotes(quoting) if simple else None
    feeds, mixed = False, False
    for block in _blocks(path, encoding):
        returns = b"\r" in block
        lone = returns and block.count(b"\r") > block.count(b"\r\n")
        form = _with_lines(replace(form, returns=form.returns or returns), block, lone=lone)
        feeds, mixed = feeds or b"\n" in block, mixed or lone
        if not quote or not (inside or quote in block):
            continue
        if not simple:
            sloppy = True
            continue
        if even is not None and not inside and even.fullmatch(block):
            breaks = quote in block.translate(None, _all_but(quote)).replace(quote * 2, b"")
        else:
            fine, breaks, inside = _quotes_of(block, quote, inside=inside, ends=ends)
            sloppy = sloppy or not fine
        form = replace(form, breaks=form.breaks or breaks)
    mixed = mixed and feeds
    blank = columns == 1 and form.blank
    if sloppy or inside or mixed or blank:
        breaks = _exact(path, encoding, quoting, mixed=mixed, blank=blank)
        form = replace(form, breaks=breaks)
    return replace(form, feeds=feeds)


def _even_quotes(quoting: Quoting) -> re.Pattern[bytes] | None:
    """Return the pattern of blocks in which each quote has its partner and stands at the end of a
    value; None where the quote or the separator has several bytes.
    """
    quote, separator = quoting.quote.encode("utf-8"), quoting.separator.encode("utf-8")
    if len(quote) != 1 or len(separator) != 1:
        return None
    mark, ends = re.escape(quote), re.escape(separator) + rb"\r\n" + re.escape(quote)
    plain = rb"[^%b]*+" % mark
    quoted = rb"(?:\A|(?<=[%b]))%b%b%b(?=[%b]|\Z)" % (ends, mark, plain, mark, ends)
    return re.compile(rb"(?:%b%b)*+%b" % (plain, quoted, plain))


@cache
def _all_but(quote: bytes) -> bytes:
    """Return all bytes other than a quote and those of line ends."""
    return bytes(byte for byte in range(256) if byte not in quote + b"\r\n")


def _with_lines(form: TextForm, block: bytes, *, lone: bool) -> TextForm:
    """Add the blank lines of a block, which begins at a line; ``lone``: it has CR without LF."""
    if not lone and block[:1] > b" " and _SPACED.search(block) is None:
        return form
    blank = form.blank or block[:1] in _ENDS or any(pair in block for pair in _BLANK)
    spaces = form.spaces or _SPACE_LINE.search(block) is not None
    return replace(form, blank=blank, spaces=spaces)


_SPACED = re.compile(rb"\n[\x00-\x20]")
_BLANK = (b"\n\n", b"\n\r", b"\r\r")
_SPACE_LINE = re.compile(rb"(?:\A|[\r\n])[\x00-\x09\x0b\x0c\x0e-\x20]+(?=[\r\n]|\Z)")


def _blocks(path: Path, encoding: Encoding) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines, in UTF-8 or one byte for each character."""
    rest = b""
    with open_file(path) as file:
        for block in _recoded(file, encoding):
            text = rest + block
            cut = max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) + 1
            rest = text[cut:]
            if cut:
                yield text[:cut]
    if rest:
        yield rest


def _recoded(file: IO[bytes], encoding: Encoding) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding.name)() if encoding.is_wide else None
    begins = True
    while block := file.read(_BLOCK):
        text = block if decoder is None else decoder.decode(block).encode("utf-8")
        if begins:
            text, begins = text.removeprefix(_BOM), False
        yield text


def _quotes_of(
    block: bytes, quote: bytes, *, inside: bool, ends: tuple[bytes, ...]
) -> tuple[bool, bool, bool]:
    """Return whether quotes stand at the ends of values, whether values hold line breaks, and
    whether the block ends inside one.
    """
    parts = block.split(quote)
    within = b"".join(parts[0 if inside else 1 :: 2])
    outside = parts[1 if inside else 0 :: 2]
    ends_inside = inside ^ (len(parts) % 2 == 0)
    opening = outside if ends_inside else outside[:-1]
    closing = outside if inside else outside[1:]
    fine = all(not part or part.endswith(ends) for part in opening) and all(
        not part or part.startswith(ends) for part in closing
    )
    return fine, b"\n" in within or b"\r" in within, ends_inside


def _exact(path: Path, encoding: Encoding, quoting: Quoting, *, mixed: bool, blank: bool) -> bool:
    """Match each row of a file, and return whether quoted values hold line breaks.

    Raises Unfit where a quote stands beside other text, where a row ends with CR although the file
    is ``mixed``, and for a ``blank`` row, which DuckDB reads as NULL and Spark drops.
    """
    row, broken = _patterns(quoting)
    with _content(path, encoding) as content:
        position = len(_BOM) if content[: len(_BOM)] == _BOM else 0
        while position < len(content):
            match = row.match(content, position)
            fault = _fault_of(match, position, mixed=mixed, blank=blank)
            if match is None or fault is not None:
                reason, hint = fault or _QUOTE
                line = content[:position].count(b"\n") + content[:position].count(b"\r") + 1
                line -= content[:position].count(b"\r\n")
                raise Unfit(Fault(path, reason, line), hint)
            position = match.end()
        return broken.search(content) is not None


def _fault_of(
    match: re.Match[bytes] | None, position: int, *, mixed: bool, blank: bool
) -> tuple[str, str] | None:
    if match is None or match.end() == position:
        return _QUOTE
    text = match.group()
    if mixed and text.endswith(b"\r"):
        return _RETURN
    return _BLANK_LINE if blank and text in _LINE_ENDS else None


def _patterns(quoting: Quoting) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the pattern of a row with its end, and one that is in all rows of several lines."""
    separator, quote = (
        re.escape(text.encode("utf-8")) for text in (quoting.separator, quoting.quote)
    )
    if not quote:
        return re.compile(rb"[^\r\n]*+(?:\r\n|\n|\r|\Z)"), re.compile(rb"(?!)")
    simple = quoting.escape in ("", quoting.quote)
    escape = quote if simple else re.escape(quoting.escape.encode("utf-8"))
    within = rb"[^%b]|%b%b" % (quote, quote, quote)
    if not simple:
        either = rb"[%b%b]" % (quote, escape)
        within = rb"[^%b%b]|%b%b|%b(?!%b)" % (quote, escape, escape, either, escape, either)
    quoted = rb"%b(?:%b)*+%b[ ]*+(?=%b|[\r\n]|\Z)" % (quote, within, quote, separator)
    plain = rb"(?![ ]*%b)(?:(?!%b)[^\r\n])*+" % (quote, separator)
    field = rb"(?:%b|%b)" % (quoted, plain)
    row = re.compile(rb"%b(?:%b%b)*+(?:\r\n|\n|\r|\Z)" % (field, separator, field))
    start = rb"(?:\A|%b|[\r\n])" % separator
    broken = re.compile(rb"%b%b(?:(?!\r|\n)(?:%b))*+[\r\n]" % (start, quote, within))
    return row, broken


@contextmanager
def _content(path: Path, encoding: Encoding) -> Iterator[bytes | mmap.mmap]:
    """The bytes of a file as `_blocks` has them, mapped into memory where that is possible."""
    if encoding.is_wide or path.suffix in COMPRESSED:
        yield b"".join(_blocks(path, encoding))
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content
