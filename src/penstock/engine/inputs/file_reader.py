"""``read_csv``, ``read_json`` and ``read_parquet`` of a query: DuckDB's options as Spark's.

Everything is explicit: nothing depends on a default of Spark's, and a malformed row fails the step
instead of becoming NULL.

``missing = 'empty'`` of a call that reads files: a file that does not exist has no rows.

A day without a delivery is an empty slice then, and not a failure. The call declares its columns,
as there may be no file that says them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.csv_files import PATH, CsvFiles, RemoteCsv, csv_files, ddl, is_local
from penstock.engine.inputs.csv_form import (
    CSV_OPTIONS,
    CsvOptions,
    boolean,
    declared,
    encoding_of,
    strftime,
)
from penstock.engine.inputs.input_files import Fault, Unfit, fault_in, local_files, matching, settle
from penstock.engine.inputs.text_values import (
    Formats,
    Misfit,
    absent_columns,
    is_readable,
    key_of,
    line_of_text,
    misfit_in,
    text_schema,
    value_sql,
)
from penstock.errors import ArgumentError, Location, PenstockError, QueryFailed
from penstock.model.script.sources import FileSource
from penstock.spark.failures import FILE, cause_of, innermost, is_about, path_in
from penstock.spark.functions import expr, fn
from penstock.spark.session import cache_of
from penstock.sql.identifiers import nearest, quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType


_CORRECT = {
    "json": "correct it: read_json reads an object a line, or one array",
    "parquet": "replace the file",
}


@dataclass(frozen=True, slots=True)
class Files:
    """Files to read: Spark's format and options, and a schema (DDL) or None to infer it.

    ``root`` is the project's directory: paths in messages are as below it. ``columns`` are declared
    columns of JSON, which texts are converted to by ``formats``.
    """

    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    root: Path = field(default=Path(), compare=False)
    columns: tuple[tuple[str, str], ...] = ()
    formats: Formats = field(default_factory=Formats)

    def read(self, session: SparkSession, *, with_path: bool = False) -> DataFrame:
        """The rows of all files; ``with_path``: with the path of its file as the last column."""
        key = ("files", self.format, tuple(sorted(self.options.items())), self.columns)
        reader = cache_of(session).get(key, lambda: self.reader(session))
        frame = reader.load(list(self.paths))
        if self.columns:
            paths = [fn.col("_metadata.file_path").alias(PATH)] if with_path else []
            return frame.select(*self._values(session), *paths)
        return frame.select("*", fn.col("_metadata.file_path").alias(PATH)) if with_path else frame

    def notices(self) -> Iterable[str]:
        """Yield what is worth knowing of the columns that are declared."""
        if self.columns:
            yield from absent_columns(self.paths, self.options, [name for name, _ in self.columns])

    def blamed(self, error: PenstockError) -> QueryFailed | None:
        """Spark's error about one of these files, in the user's words; None for other errors."""
        misfit = misfit_in(cause_of(error), self._key)
        if misfit is None and not is_about(error, self.paths):
            return None
        path, cause = path_in(error), cause_of(error)
        inside = local_files(self.paths) if path is None else [path] if path.is_file() else []
        faults = (
            self._misfit(file, misfit)
            if misfit
            else fault_in(self.format, file, self.options, cause)
            for file in inside
        )
        fault = next(filter(None, faults), None)
        if fault is None:
            why = "the file is gone" if path and not path.exists() else innermost(error)
            fault = Fault(path or Path(self.paths[0]), why or error.message)
        data = {**error.data, FILE: str(fault.path)}
        return QueryFailed(fault.text(self.root), hint=_CORRECT[self.format], data=data)

    @property
    def _key(self) -> str:
        return key_of(self.columns, self.paths)

    def _misfit(self, path: Path, misfit: Misfit) -> Fault | None:
        name, kind = self.columns[misfit.column]
        line = line_of_text(path, self.options, name, misfit.text)
        reason = f"{misfit.text!r} is not of its column's type: `{name}` is {kind}"
        is_there = line is not None or self.options["multiLine"] == "true"
        return Fault(path, reason, line) if is_there else None

    def _types(self, session: SparkSession) -> StructType:
        return cache_of(session).get(
            ("types", self.columns), lambda: session.createDataFrame([], ddl(self.columns)).schema
        )

    def _values(self, session: SparkSession) -> list[Column]:
        values, exact = [], self.options["multiLine"] == "false"
        for index, field_ in enumerate(self._types(session).fields):
            name = quote_identifier(field_.name, mark="`")
            sql = value_sql(name, field_.dataType, self.formats, self._key, index, exact=exact)
            values.append(expr(f"{sql} AS {name}"))
        return values

    def reader(self, session: SparkSession) -> DataFrameReader:
        """Return Spark's reader of the files."""
        options = dict(self.options)
        if options.get("multiLine") == "true" and options["encoding"] == "UTF-8":
            del options["encoding"]  # Spark's parser finds it, and reads a byte order mark then
        reader = session.read.format(self.format).options(**options)
        if not self.columns:
            return reader
        return reader.schema(text_schema(self._types(session)))


Option = Callable[[Any], Mapping[str, Any]]


def _encoding(value: Any) -> Mapping[str, str]:
    encoding = encoding_of(str(value))
    if encoding.table is not None:
        raise ValueError(f"is {value!r}, which is supported by read_csv only: convert the file")
    return {"encoding": encoding.spark}


def _json_format(value: Any) -> Mapping[str, str]:
    if value not in ("auto", "array", "newline_delimited"):
        raise ValueError("must be 'auto', 'array' or 'newline_delimited'")
    return {}  # `settle` looks at the files


_JSON: Mapping[str, Option] = {
    "encoding": _encoding,
    "format": _json_format,
    "dateformat": strftime("dateformat"),
    "timestampformat": strftime("timestampformat"),
    "columns": lambda value: {"columns": declared(value)},
}
_PARQUET: Mapping[str, Option] = {
    "union_by_name": lambda value: {"mergeSchema": str(boolean(value)).lower()}
}

# Spark's format, the options that may be given, and what holds when they are not.
_READERS: Mapping[str, tuple[str, Mapping[str, Option], Mapping[str, str]]] = {
    "read_csv": ("csv", CSV_OPTIONS, {}),
    "read_json": (
        "json",
        _JSON,
        {"mode": "FAILFAST", "encoding": "UTF-8", "multiLine": "false"},
    ),
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
    converted = _converted(function, options, location)
    columns = converted.get("columns", ())
    return NoFiles(ddl(columns)) if columns else None


def files(
    function: str,
    paths: Any,
    options: Mapping[str, Any],
    *,
    root: Path,
    location: Location | None,
) -> Files | CsvFiles | RemoteCsv:
    """The files that a call reads. ``paths``: a path or a list of paths, relative to ``root``.

    Raises ArgumentError, at ``location``, for an unknown option or a wrong value, and QueryFailed
    for a file that does not exist.
    """
    kind, _, defaults = _READERS[function]
    converted = _converted(function, options, location)
    resolved = tuple(
        path for text in _texts(function, paths, location) for path in _find(text, root, location)
    )
    try:
        if kind == "csv":
            return _csv(resolved, CsvOptions(**converted), root, location)
        whole = {**defaults, **converted}
        columns = whole.pop("columns", ())
        formats = Formats(whole.pop("dateformat", None), whole.pop("timestampformat", None))
        settle(kind, resolved, whole, options, inferred=not columns)
    except Unfit as unfit:
        text, data = unfit.fault.text(root), {FILE: str(unfit.fault.path)}
        raise QueryFailed(text, hint=unfit.hint, location=location, data=data) from None
    return Files(kind, resolved, whole, root, columns, formats)


def _csv(
    paths: tuple[str, ...], options: CsvOptions, root: Path, location: Location | None
) -> CsvFiles | RemoteCsv:
    for name, kind in options.columns:
        if not is_readable(kind):
            raise ArgumentError(
                f"read_csv: column {name} is {kind}, which no text of a CSV file has",
                hint="declare it as VARCHAR, and convert it in the SELECT",
                location=location,
            )
    if all(map(is_local, paths)):
        return csv_files(paths, options, root)
    return RemoteCsv(paths, options, root, location)


def _converted(
    function: str, options: Mapping[str, Any], location: Location | None
) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    for name, value in options.items():
        converted |= _convert(function, name, value, _READERS[function][1], location)
    return converted


def _convert(
    function: str,
    name: str,
    value: Any,
    known: Mapping[str, Option],
    location: Location | None,
) -> Mapping[str, Any]:
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
    matches = [os.path.normpath(match) for match in matching(text, root)]  # as Spark has them
    if not matches:
        raise QueryFailed(
            f"file {text} does not exist",
            hint=f"paths are relative to the project: looked for {root / text}",
            location=location,
        )
    return matches


OPTION, EMPTY = "missing", "empty"


def without_option(
    options: Mapping[str, Any], location: Location | None
) -> tuple[dict[str, Any], bool]:
    """Return the other options of a call, and whether its files may be missing.

    Raises ArgumentError.
    """
    others = {name: value for name, value in options.items() if name.lower() != OPTION}
    values = [value for name, value in options.items() if name.lower() == OPTION]
    if values and (not isinstance(values[0], str) or values[0].lower() != EMPTY):
        raise ArgumentError(
            f"{OPTION} is {values[0]!r}",
            hint=f"write {OPTION} = '{EMPTY}', or leave it out: a missing file is an error then",
            location=location,
        )
    return others, bool(values)


def existing(
    source: FileSource, path: object, options: Mapping[str, Any], root: Path
) -> list[str] | NoFiles:
    """Return the paths of a call that lead to files, or no files in its columns.

    Raises ArgumentError for files of another machine, and where no columns are declared.
    """
    texts = [str(text) for text in path] if isinstance(path, list | tuple) else [str(path)]
    remote = next((text for text in texts if "://" in text), None)
    if remote is not None:
        raise ArgumentError(
            f"{OPTION} = '{EMPTY}' is for files of this machine, and {remote} is not one",
            hint="read a pattern that always matches a file, or leave the option out",
            location=source.location,
        )
    if not {"columns"} & {name.lower() for name in options}:
        raise ArgumentError(
            f"{OPTION} = '{EMPTY}' needs the columns of the file, which may not be there",
            hint="declare them: columns = {'id': 'BIGINT', ...}",
            location=source.location,
        )
    present = [text for text in texts if matching(text, root)]
    if present:
        return present
    nothing = no_files(source.function, options, source.location)
    assert nothing is not None, "its columns are declared"
    return nothing
