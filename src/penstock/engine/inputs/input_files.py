"""The user's own files: how they are written, and where one of them is wrong. Without Spark.

Spark reads a file by its options alone, and its errors give only the name of a bad file. Files on
this machine are inspected; paths with a scheme, or in a compression that Python lacks, are not.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _csv import Reader as _Rows  # csv has no public name for it

SEPARATORS = (",", ";", "\t", "|")
_BLOCK = 1 << 20
_CONVERT = "convert it to UTF-8: iconv -f WINDOWS-1252 -t UTF-8"  # for Spark reads no such JSON
_SAMPLE = 64 * 1024  # bytes of a file by which it is judged
_WHOLE = 64 * 1024 * 1024  # bytes of a JSON document that is read whole to find what is wrong
_FILES = 100  # of a directory or pattern, that are inspected
_OPEN: Mapping[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
COMPRESSED = tuple(_OPEN)
UNREAD = (".zst", ".zstd", ".snappy", ".lz4", ".deflate")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a file; ``line`` counts from 1."""

    path: Path
    reason: str
    line: int | None = None

    def text(self, root: Path) -> str:
        """``data/x.csv, line 3: why``, the path as the project has it."""
        below = self.path.is_relative_to(root)
        name = str(self.path.relative_to(root) if below else self.path)
        return f"{name}{f', line {self.line}' if self.line else ''}: {self.reason}"


class Unfit(Exception):
    """A file that is not written as it would be read."""

    def __init__(self, fault: Fault, hint: str) -> None:
        super().__init__(fault.reason)
        self.fault, self.hint = fault, hint


def settle(
    kind: str,
    paths: Sequence[str],
    converted: dict[str, str],
    options: Mapping[str, Any],
    *,
    inferred: bool,
) -> None:
    """Complete Spark's options (``converted``) by the contents of the files.

    ``options`` are those of the call, ``inferred`` whether columns are inferred from the files.
    Raises Unfit.
    """
    inside = local_files(paths)
    asked = {name.lower(): value for name, value in options.items()}
    if kind == "json":
        format_ = str(asked.get("format", "auto"))
        encoding = converted["encoding"]
        converted["multiLine"] = _as_document(inside, encoding, format_)
        if converted["multiLine"] == "false" and encoding in ("UTF-16", "UTF-32") and inside:
            reason = f"{encoding} with an object a line is not read"
            raise Unfit(Fault(inside[0], reason), "convert it to UTF-8, or to UTF-16LE")
        if converted["multiLine"] == "false" and encoding not in ("UTF-8", "ISO-8859-1"):
            converted["lineSep"] = "\n"
    if kind == "parquet":
        return
    if "encoding" not in asked:
        for fault in filter(None, map(not_utf8, inside)):
            hint = encoding_hint(fault.path)
            raise Unfit(fault, _CONVERT if "1252" in hint else hint)
    if inferred and inside and all(map(_is_empty, inside)):
        raise Unfit(
            Fault(inside[0], "the file is empty: it says nothing of its columns"),
            "say them: columns = {'id': 'INTEGER', 'name': 'VARCHAR'}",
        )


def _as_document(paths: Sequence[Path], encoding: str, format_: str) -> str:
    """``true`` for JSON files that are one array or object each, ``false`` for lines."""
    document = {path: is_document(path, encoding) for path in paths}
    lines = [path for path, whole in document.items() if not whole and not _is_empty(path)]
    if format_ == "newline_delimited":
        return "false"
    if format_ == "array" and lines:  # Spark would read the first line and no more
        raise Unfit(Fault(lines[0], "this is not an array"), "leave out format = 'array'")
    for path in (path for path, whole in document.items() if whole):
        fault = _document_fault(path, encoding)  # Spark would read what comes before it
        if fault is not None:
            raise Unfit(fault, "correct it: read_json reads an object a line, or one array")
    if lines and any(document.values()):
        reason = "it has an object a line, and others are arrays"
        raise Unfit(Fault(lines[0], reason), "read them apart, and UNION ALL the two")
    return str(format_ == "array" or any(document.values())).lower()


def local_files(paths: Sequence[str]) -> list[Path]:
    """The files of ``paths`` that can be inspected, those of directories too."""
    files: list[Path] = []
    for path in (Path(text) for text in paths if "://" not in text):
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        files += [file for file in inside if file.is_file() and file.name[0] not in "._"]
    return [path for path in files if path.suffix not in UNREAD][:_FILES]


def is_document(path: Path, encoding: str) -> bool:
    """Return whether a JSON file is one array or object over several lines, not
    an object a line.
    """
    first, _, rest = _sample(path, encoding).lstrip().partition("\n")
    try:
        json.loads(first or "null")
    except ValueError:
        return first.startswith("[") or isinstance(_document(path, encoding), dict)
    return first.startswith("[") and not rest.strip()


def not_utf8(path: Path) -> Fault | None:
    """Return where a file is not UTF-8. Spark puts a replacement character in such places."""
    decoder: codecs.IncrementalDecoder = codecs.lookup("utf-8").incrementaldecoder()
    line = 1
    with open_file(path) as file:
        while True:
            part = file.read(1 << 20)
            try:
                decoder.decode(part, final=not part)
            except UnicodeDecodeError as error:
                return Fault(path, "not UTF-8", line + error.object[: error.start].count(b"\n"))
            if not part:
                return None
            line += part.count(b"\n")


def encoding_hint(path: Path) -> str:
    """Return which encoding a file that is not UTF-8 may have."""
    with open_file(path) as file:
        start = file.read(_BLOCK)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "say how it is encoded: encoding = 'UTF-16'; or convert it"
        while start:
            if start.translate(None, bytes(range(0x80)) + bytes(range(0xA0, 0x100))):
                return "say how it is encoded: encoding = 'windows-1252'; or convert it"
            start = file.read(_BLOCK)
    return "say how it is encoded: encoding = 'ISO-8859-1'; or convert it"


def fault_in(kind: str, path: Path, options: Mapping[str, str], cause: str) -> Fault | None:
    """Return what is wrong with a file of which Spark says ``cause``; None when nothing is seen."""
    return _FAULTS[kind](path, options, cause)


def csv_rows(lines: Iterable[str], options: Mapping[str, str], *, strict: bool = False) -> _Rows:
    """The rows of CSV as Spark splits them. A line of comment is an empty row; ``strict``: what is
    not well quoted raises csv.Error.
    """
    quote, escape, comment = (options.get(name) for name in ("quote", "escape", "comment"))
    return csv.reader(
        ("\n" if comment and line.startswith(comment) else line for line in lines),
        delimiter=options["sep"],
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        escapechar=escape if quote and escape and escape != quote else None,
        strict=strict,
    )


def _json_fault(path: Path, options: Mapping[str, str], _cause: str) -> Fault | None:
    if options["multiLine"] == "true":
        return _document_fault(path, options["encoding"])
    with open_file(path) as file:
        for number, line in enumerate(codecs.iterdecode(file, options["encoding"], "replace"), 1):
            try:
                json.loads(line.rstrip("\r\n") or "null")
            except json.JSONDecodeError as error:
                return Fault(path, f"not JSON: {error.msg} at column {error.colno}", number)
    return None


def _document_fault(path: Path, encoding: str) -> Fault | None:
    with open_file(path) as file:
        content: bytes = file.read(_WHOLE + 1)
    try:
        json.loads("null" if len(content) > _WHOLE else _text(content, encoding))
    except json.JSONDecodeError as error:
        return Fault(path, f"not JSON: {error.msg} at column {error.colno}", error.lineno)
    return None


def _parquet_fault(path: Path, _options: Mapping[str, str], _cause: str) -> Fault | None:
    with path.open("rb") as file:
        first = file.read(4)
        file.seek(max(0, path.stat().st_size - 4))
        last = file.read(4)
    if first != b"PAR1":
        return Fault(path, "this is not a Parquet file")
    return None if last == b"PAR1" else Fault(path, "the Parquet file is cut short")


_FAULTS: Mapping[str, Callable[[Path, Mapping[str, str], str], Fault | None]] = {
    "json": _json_fault,
    "parquet": _parquet_fault,
}


def _is_empty(path: Path) -> bool:
    with open_file(path) as file:
        return not file.read(_SAMPLE).strip()


def _sample(path: Path, encoding: str) -> str:
    with open_file(path) as file:
        content: bytes = file.read(_SAMPLE)
    return _text(content, encoding)


def _document(path: Path, encoding: str) -> object:
    """The one document that a file is; None when it is none, or too large to tell."""
    with open_file(path) as file:
        content: bytes = file.read(_WHOLE + 1)
    try:
        return None if len(content) > _WHOLE else json.loads(_text(content, encoding))
    except ValueError:
        return None


def _text(content: bytes, encoding: str) -> str:
    return content.decode(encoding, "replace").removeprefix("\ufeff")


def open_file(path: Path) -> IO[bytes]:
    """Open a file of this machine, decompressed."""
    opener = _OPEN.get(path.suffix)
    file: IO[bytes] = path.open("rb") if opener is None else opener(path)
    return file


def matching(text: str, root: Path) -> list[str]:
    """The files and directories of this machine that a path or pattern without a scheme names."""
    path = root / text
    if path.exists():
        return [str(path)]
    top = Path(path.anchor)
    return sorted(str(match) for match in top.glob(str(path.relative_to(top))))
