"""Files of many slices, read at once: the slice of a row is that of the file that it comes from.

What is read must be what each slice reads on its own. Files that are missing, or not written as the
others are, are found before anything is read; their slices are made apart. Columns that no call
declares are inferred for each slice, and only slices of the same columns are read together.

Tell which columns Spark infers from files, where that is certain without it.

Spark infers the columns of each file by a job or two, which for small files take longer than
reading them. Here a file's values are looked at in Python: those whose type is beyond doubt have a
kind each, and a file of such values has a description. Files of the same description have the same
columns, whatever these are called in Spark; of others nothing is said, and Spark is asked.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.csv_files import PATH, CsvFiles, united
from penstock.engine.inputs.file_reader import Files
from penstock.engine.inputs.input_files import UNREAD, open_file
from penstock.engine.inputs.resolve import Read
from penstock.errors import PenstockError, QueryFailed
from penstock.lazy import pq
from penstock.model.script.sources import FileSource
from penstock.model.slicing.slice_condition import MadeApart, NotJoint
from penstock.spark.failures import FILE, explained, local_path
from penstock.spark.functions import fn, run_sql
from penstock.sql.identifiers import fold
from penstock.sql.literals import text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MOST = 8 * 1024 * 1024  # bytes of a file that Python looks through; Spark is quicker with more
_LONG = range(-(2**63), 2**63)


class _Doubt(Exception):
    """Doubt about what Spark makes of a file."""


def described(files: Files, paths: Sequence[Path]) -> Hashable | None:
    """Describe the columns of ``files``, which are those of ``paths``; None where in doubt."""
    if not paths or any(path.suffix in UNREAD or path.stat().st_size > _MOST for path in paths):
        return None
    try:
        return _FORMATS[files.format](paths, files.options)
    except (_Doubt, OSError, ValueError, csv.Error, RecursionError):
        return None


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


FilesOf = Mapping[FileSource, Read]
_PATTERN = frozenset("*?[]{}\\")


@dataclass(frozen=True, slots=True)
class SlicedFiles:
    """``files`` of several slices; ``slices`` has the slice of each, by its path. They have
    ``columns``, a schema as JSON, where the call declares none. ``column`` is to say the slice.
    """

    files: Files | CsvFiles
    slices: Mapping[str, str]
    column: str
    columns: str | None = None

    def read(self, session: SparkSession) -> DataFrame:
        """The rows, with their slice as the last column. Raises NotJoint where Spark lists other
        files than are known.
        """
        frame = self._frame(session)
        if not self.slices:  # all files are empty
            return frame.drop(PATH).withColumn(self.column, fn.lit(None).cast("string"))
        columns = frame.columns[:-1]
        if any(fold(name) in {"_metadata", PATH, self.column} for name in columns):
            raise NotJoint(f"its files have a column {PATH} or _metadata")
        # Spark says here how it encodes each path; in the rows it does so after `file:/`.
        uris = {
            uri: self.slices.get(os.path.normpath(local_path(uri))) for uri in frame.inputFiles()
        }
        if None in uris.values() or len(uris) != len(self.slices):
            raise NotJoint("Spark lists other files than there are")
        pairs = ", ".join(
            f"({text_literal(form)}, {text_literal(str(slice_))})"
            for uri, slice_ in uris.items()
            for form in _forms(uri)
        )
        known = run_sql(session, f"SELECT * FROM VALUES {pairs} AS t(`{PATH}`, `{self.column}`)")
        rows = frame.join(fn.broadcast(known), [PATH], "left").drop(PATH)
        lost = fn.raise_error(fn.lit("a file that is read belongs to no slice"))
        return rows.withColumn(self.column, fn.coalesce(self.column, lost.cast("string")))

    def _frame(self, session: SparkSession) -> DataFrame:
        """The rows with the path of their file as the last column."""
        if self.columns is None or isinstance(self.files, CsvFiles):
            return self.files.read(session, with_path=True)
        from pyspark.sql.types import StructType

        reader = self.files.reader(session)
        schema = StructType.fromJson(json.loads(self.columns))
        frame = reader.schema(schema).load(list(self.files.paths))
        return frame.select("*", fn.col("_metadata.file_path").alias(PATH))

    def notices(self) -> Iterable[str]:
        """Return what is worth knowing of the files."""
        return self.files.notices()

    def blamed(self, error: PenstockError) -> QueryFailed | None:
        """Spark's error about one of the files, in the user's words, with its slice."""
        blamed = self.files.blamed(error)
        if blamed is not None:
            path = os.path.normpath(str(blamed.data.get(FILE)))
            blamed.data["slice"] = self.slices.get(path)
        return blamed


def _forms(uri: str) -> tuple[str, ...]:
    path = uri.removeprefix("file://")
    return (uri,) if path == uri else (uri, f"file:{path}")


def read_together(
    columns: Mapping[FileSource, str],
    of_slices: Mapping[str, FilesOf | PenstockError],
    session: SparkSession,
) -> dict[FileSource, SlicedFiles]:
    """Return the files of all slices, by what reads them; ``columns`` are to say their slices.

    ``of_slices`` are the files of each slice, or what is wrong with them, in the order of time.
    Raises MadeApart where not all of them can be read together, and NotJoint.
    """
    inferred, wrong = _Inferred(session), dict[str, str]()
    read: dict[str, dict[FileSource, _Listed]] = {}
    for slice_, files in of_slices.items():
        try:
            if isinstance(files, PenstockError):
                raise files
            read[slice_] = {source: inferred.of(each) for source, each in files.items()}
        except PenstockError as error:
            wrong[slice_] = error.message
    _require_one_group(list(of_slices), read, wrong)
    first = next(iter(read.values()))
    return {
        source: _joined([each[source] for each in read.values()], list(read), column)
        for source, column in columns.items()
        if source in first
    }


@dataclass(frozen=True, slots=True)
class _Listed:
    """Files of one slice with their paths, each normal, and what is inferred of them."""

    files: Files | CsvFiles
    paths: tuple[str, ...]
    columns: str | None

    @property
    def form(self) -> Hashable:
        """The same for files that can be read at once."""
        if isinstance(self.files, CsvFiles):
            return "csv", self.files.options, self.files.columns
        options = sorted(self.files.options.items())
        return self.files.format, *options, self.files.columns, self.files.formats, self.columns


@dataclass(slots=True)
class _Inferred:
    """The columns of files that declare none, by how they are described."""

    session: SparkSession
    known: dict[Hashable, str] = field(default_factory=dict)

    def of(self, files: Read) -> _Listed:
        """Raises NotJoint, and QueryFailed where Spark cannot infer them."""
        if not isinstance(files, Files | CsvFiles):
            raise NotJoint("its files are not of this machine")
        paths = tuple(_listed(files))
        if isinstance(files, CsvFiles) or files.columns:
            return _Listed(files, paths, None)
        described_ = described(files, [Path(path) for path in paths])
        columns = None if described_ is None else self.known.get(described_)
        if columns is None:
            with explained():
                schema = files.read(self.session).schema
            columns = schema.json()
            if described_ is not None:
                self.known[described_] = columns
        return _Listed(files, paths, columns)


def _listed(files: Files | CsvFiles) -> Iterator[str]:
    """Yield the files of this machine, those in directories too. Raises NotJoint."""
    for path in files.paths:
        if "://" in path:
            raise NotJoint(f"{path} is not of this machine")
        if not _PATTERN.isdisjoint(path):
            raise NotJoint(f"Spark reads {path} as a pattern")
        inside = sorted(Path(path).iterdir()) if Path(path).is_dir() else [Path(path)]
        for file in (each for each in inside if each == Path(path) or each.name[0] not in "._"):
            if file.is_dir():
                raise NotJoint(f"{path} has directories in it")
            yield os.path.normpath(file.absolute())


def _require_one_group(
    slices: Sequence[str],
    read: Mapping[str, Mapping[FileSource, _Listed]],
    wrong: Mapping[str, str],
) -> None:
    """Raise MadeApart unless all slices can be read at once."""

    def form(slice_: str) -> Hashable:
        return tuple(each.form for each in read[slice_].values())

    groups = [tuple(group) for _, group in groupby(read, key=form)]
    if len(groups) == 1 and not wrong:
        return
    why = next(iter(wrong.values()), "")
    if not why:
        why = f"files of {groups[1][0]} have other columns, or are written in another way"
    whole = [*groups, *((slice_,) for slice_ in wrong)]
    raise MadeApart(why, sorted(whole, key=lambda group: slices.index(group[0])))


def _joined(each: Sequence[_Listed], slices: Sequence[str], column: str) -> SlicedFiles:
    """Raise NotJoint for a file that several slices read."""
    found: dict[str, str] = {}
    for listed, slice_ in zip(each, slices, strict=True):
        for path in listed.paths:
            if found.setdefault(path, slice_) != slice_:
                raise NotJoint(f"{path} is read by {found[path]} and {slice_}")
    files = each[0].files
    if isinstance(files, CsvFiles):
        together = united([listed.files for listed in each if isinstance(listed.files, CsvFiles)])
        return SlicedFiles(together, found, column)
    return SlicedFiles(replace(files, paths=tuple(found)), found, column, each[0].columns)
