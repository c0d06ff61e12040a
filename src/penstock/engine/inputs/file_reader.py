"""``read_csv``, ``read_json`` and ``read_parquet`` of a query: DuckDB's options as Spark's.

Everything is explicit: nothing depends on a default of Spark's, and a malformed row fails the step
instead of becoming NULL.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.input_files import (
    PADDED,
    Fault,
    Unfit,
    fault_in,
    local_files,
    matching,
    other_columns,
    settle,
)
from penstock.errors import ArgumentError, Location, PenstockError, QueryFailed
from penstock.spark.failures import local_path
from penstock.spark.session import cache_of
from penstock.sql.identifiers import nearest, quote_identifier
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_READING = re.compile(r"reading file (file:\S*?)\. ")
_CAUSED_BY = re.compile(r"Caused by: [\w.$]+: (?:\[[\w.]+\] )?(.+?)(?: SQLSTATE: .*)?(?:\n|$)")
_MOST_HEADERS = 400  # files of a call whose headers are compared before Spark reads
FILE = "file"  # in the data of an error: the path of the file that is wrong
_CORRECT = {
    "csv": "correct the row, or say how the file is written: delim, quote, header, columns",
    "json": "correct it: read_json reads an object a line, or one array",
    "parquet": "replace the file",
}


def innermost(error: PenstockError) -> str:
    """Return why a file could not be read: the message of Spark itself names only the file."""
    causes = _CAUSED_BY.findall(str(error.__cause__))
    return causes[-1].strip() if causes else ""


@dataclass(frozen=True, slots=True)
class Files:
    """Files to read: Spark's format and options, and a schema (DDL) or None to infer it.

    ``root`` is the project's directory: paths in messages are as below it. ``columns`` are the
    names that the call gives. ``by_name``: they are to be matched by name (`united_files`);
    ``padded``: short rows end with NULL (`padded_rows`).
    """

    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    root: Path = field(default=Path(), compare=False)
    columns: tuple[str, ...] = field(default=(), compare=False)
    by_name: bool = False
    padded: bool = False

    def read(self, session: SparkSession) -> DataFrame:
        if self.padded:
            from penstock.engine.inputs.padded_rows import read_padded

            return read_padded(session, list(self.paths), self.options, self.schema)
        key = ("files", self.format, tuple(sorted(self.options.items())), self.schema)
        reader = cache_of(session).get(key, lambda: self._reader(session))
        return reader.load(list(self.paths))

    def notices(self) -> tuple[str, ...]:
        return ()

    def blamed(self, error: PenstockError) -> QueryFailed | None:
        """Spark's error about one of these files, in the user's words; None for other errors."""
        cause = f"{error.message}\n{error.__cause__ or ''}"
        named = error.data.get("path") or next(iter(_READING.findall(cause)), None)
        if named is None and not str(error.data.get("condition")).startswith("MALFORMED_RECORD"):
            return None
        path = None if named is None else Path(local_path(str(named)))
        if path is not None and not any(path.is_relative_to(parent) for parent in self.paths):
            return None
        inside = local_files(self.paths) if path is None else [path] if path.is_file() else []
        options = {**self.options, PADDED: "true"} if self.padded else self.options
        faults = (fault_in(self.format, file, options, cause) for file in inside)
        fault = next(filter(None, faults), None)
        if fault is None and self.format == "csv":
            widths = (other_columns(file, self.options, self.columns) for file in inside)
            fault = next(filter(None, widths), None)
        if fault is None:
            why = "the file is gone" if path and not path.exists() else innermost(error)
            fault = Fault(path or Path(self.paths[0]), why or error.message)
        data = {**error.data, FILE: str(fault.path)}
        return QueryFailed(fault.text(self.root), hint=_CORRECT[self.format], data=data)

    def _reader(self, session: SparkSession) -> DataFrameReader:
        reader = session.read.format(self.format).options(**self.options)
        return reader if self.schema is None else reader.schema(self.schema)


Option = Callable[[Any], Mapping[str, str]]


def _text(*names: str) -> Option:
    return lambda value: dict.fromkeys(names, str(value))


def _encoding(value: Any) -> Mapping[str, str]:
    try:
        codecs.lookup(str(value))
    except LookupError:
        raise ValueError(f"is {value!r}, which is not an encoding") from None
    return {"encoding": str(value)}


def _flag(*names: str) -> Option:
    return lambda value: dict.fromkeys(names, str(_boolean(value)).lower())


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _columns(value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError("must be {'name': 'TYPE', ...}")
    return {
        _SCHEMA: ", ".join(
            f"{quote_identifier(name, mark='`')} {spark_type(str(kind))}"
            for name, kind in value.items()
        )
    }


def _json_format(value: Any) -> Mapping[str, str]:
    if value not in ("auto", "array", "newline_delimited"):
        raise ValueError("must be 'auto', 'array' or 'newline_delimited'")
    return {}  # `settle` looks at the files


def _date_format(name: str) -> Option:
    """strftime patterns as Spark's; the letters that the documents' formats use."""

    def convert(value: Any) -> Mapping[str, str]:
        return {name: "".join(_pattern(str(value)))}

    return convert


def _pattern(text: str) -> list[str]:
    parts = []
    letters = iter(text)
    for letter in letters:
        code = letter + next(letters, "") if letter == "%" else letter
        if letter == "%" and code not in _STRFTIME:
            raise ValueError(f"{code} is not supported; known are {', '.join(_STRFTIME)}")
        quoted = f"'{letter}'" if letter.isalpha() else "''" if letter == "'" else letter
        parts.append(_STRFTIME.get(code, quoted))
    return parts


_STRFTIME = {
    "%Y": "yyyy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%M": "mm",
    "%S": "ss",
    "%f": "SSSSSS",
    "%j": "DDD",
    "%z": "xx",
}
# Not options of Spark: taken out before reading.
_SCHEMA, _BY_NAME, _PADDED = "schema", "byName", "padded"

_CSV: Mapping[str, Option] = {
    "header": _flag("header"),
    "delim": _text("sep"),
    "sep": _text("sep"),
    "quote": _text("quote"),
    "escape": _text("escape"),
    "comment": _text("comment"),
    "nullstr": _text("nullValue"),
    "encoding": _encoding,
    "dateformat": _date_format("dateFormat"),
    "timestampformat": _date_format("timestampFormat"),
    "auto_detect": _flag("inferSchema"),
    "all_varchar": lambda value: {"inferSchema": str(not _boolean(value)).lower()},
    "multiline": _flag("multiLine"),
    "columns": _columns,
    "union_by_name": _flag(_BY_NAME),
    "null_padding": _flag(_PADDED),
}
_JSON: Mapping[str, Option] = {
    "encoding": _encoding,
    "format": _json_format,
    "dateformat": _date_format("dateFormat"),
    "timestampformat": _date_format("timestampFormat"),
    "columns": _columns,
}
_PARQUET: Mapping[str, Option] = {"union_by_name": _flag("mergeSchema")}

_STRICT = {"mode": "FAILFAST", "encoding": "UTF-8"}
# Spark's format, the options that may be given, and what holds when they are not.
_READERS: Mapping[str, tuple[str, Mapping[str, Option], Mapping[str, str]]] = {
    "read_csv": (
        "csv",
        _CSV,
        _STRICT
        | {"header": "true", "sep": ",", "quote": '"', "escape": '"', "inferSchema": "true"},
    ),
    "read_json": ("json", _JSON, _STRICT | {"multiLine": "false"}),
    "read_parquet": ("parquet", _PARQUET, {"mergeSchema": "false"}),
}


@dataclass(frozen=True, slots=True)
class NoFiles:
    """No rows, in the columns that a call declares (DDL): its directory is empty."""

    schema: str

    def read(self, session: SparkSession) -> DataFrame:
        return session.createDataFrame([], self.schema)

    def notices(self) -> tuple[str, ...]:
        return ()

    def blamed(self, _error: PenstockError) -> QueryFailed | None:
        """Say nothing of files that are not there."""
        return None


def no_files(
    function: str, options: Mapping[str, Any], location: Location | None
) -> NoFiles | None:
    """Return what a call reads where there is no file; None where it declares no columns."""
    known = _READERS[function][1]
    converted: dict[str, str] = {}
    for name, value in options.items():
        converted |= _convert(function, name, value, known, location)
    schema = converted.get(_SCHEMA)
    return None if schema is None else NoFiles(schema)


def require_columns(files: Files, location: Location | None) -> None:
    """Raise QueryFailed for a CSV file that has not as many columns as the call declares.

    Headers are compared before Spark reads, so that no attempt is spent on such a file. Those of
    directories and of very many files are left to the read.
    """
    local = [Path(path) for path in files.paths if "://" not in path]
    if files.format != "csv" or not files.columns or files.padded or len(local) > _MOST_HEADERS:
        return
    for path in filter(Path.is_file, local):
        fault = other_columns(path, files.options, files.columns)
        if fault is not None:
            raise QueryFailed(
                fault.text(files.root),
                hint=_CORRECT["csv"],
                location=location,
                data={FILE: str(path)},
            )


def files(
    function: str,
    paths: Any,
    options: Mapping[str, Any],
    *,
    root: Path,
    location: Location | None,
) -> Files:
    """The files that a call reads. ``paths``: a path or a list of paths, relative to ``root``.

    Raises ArgumentError, at ``location``, for an unknown option or a wrong value, and QueryFailed
    for a file that does not exist.
    """
    kind, known, defaults = _READERS[function]
    converted = dict(defaults)
    for name, value in options.items():
        converted |= _convert(function, name, value, known, location)
    schema, by_name = converted.pop(_SCHEMA, None), converted.pop(_BY_NAME, "") == "true"
    padded = converted.pop(_PADDED, "") == "true"
    if schema is not None:
        converted.pop("inferSchema", None)
    resolved = tuple(
        path for text in _texts(function, paths, location) for path in _find(text, root, location)
    )
    try:
        settle(kind, resolved, converted, options, inferred=schema is None)
    except Unfit as unfit:
        text = unfit.fault.text(root)
        raise QueryFailed(text, hint=unfit.hint, location=location) from None
    asked = {name.lower(): value for name, value in options.items()}.get("columns")
    columns = tuple(map(str, asked)) if isinstance(asked, Mapping | list) else ()
    return Files(kind, resolved, converted, schema, root, columns, by_name, padded)


def _convert(
    function: str,
    name: str,
    value: Any,
    known: Mapping[str, Option],
    location: Location | None,
) -> Mapping[str, str]:
    if name.lower() not in known:
        near = nearest(name, known)
        raise ArgumentError(
            f"{function} takes no option {name!r}",
            hint=f"did you mean {near!r}?" if near else f"options are {', '.join(known)}",
            location=location,
        )
    try:
        return known[name.lower()](value)
    except ValueError as error:
        raise ArgumentError(f"{function}: {name} {error}", location=location) from None


def _texts(function: str, paths: Any, location: Location | None) -> Sequence[str]:
    texts = paths if isinstance(paths, list) else [paths]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ArgumentError(
            f"{function} reads a path or a list of paths, not {paths!r}", location=location
        )
    return texts


def _find(text: str, root: Path, location: Location | None) -> list[str]:
    """Files of a path or pattern; Spark lists paths that have a scheme."""
    if text.startswith(("s3:///", "s3a:///")):
        raise ArgumentError(
            f"{text} names no bucket",
            hint=f"write s3://bucket/{text.partition(':///')[2]}",
            location=location,
        )
    if "://" in text:
        return [text]
    matches = matching(text, root)
    if not matches:
        raise QueryFailed(
            f"file {text} does not exist",
            hint=f"paths are relative to the project: looked for {root / text}",
            location=location,
        )
    return matches
