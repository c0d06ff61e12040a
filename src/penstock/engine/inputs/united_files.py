"""Files whose columns are matched by name: ``union_by_name`` of ``read_csv``, as DuckDB has it.

Files with the same header are read at once. A column that some lack is NULL in their rows, and its
type holds the values of all: the widest of numbers, and text where types have nothing in common.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.file_reader import Files
from penstock.engine.inputs.input_files import Fault, Unfit, csv_rows, open_file, other_columns
from penstock.errors import ArgumentError, Location, PenstockError, QueryFailed
from penstock.spark.functions import fn
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Header = tuple[str, ...]
_NUMBERS = ("int", "bigint", "double")  # that Spark infers, the widest last
_HINT = "give it its columns: union_by_name needs a header in each file"


def headers_of(paths: Sequence[str], options: Mapping[str, str]) -> dict[Header, list[str]]:
    """Return the files of each header, in the order of first mention. Raises Unfit."""
    found: dict[Header, list[str]] = {}
    for text in paths:
        path = Path(text)
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in inside:
            if file == path or (file.is_file() and file.name[0] not in "._"):
                found.setdefault(_header(file, options), []).append(str(file))
    return found


def _header(path: Path, options: Mapping[str, str]) -> Header:
    if "://" in str(path):
        raise Unfit(Fault(path, "union_by_name reads files of this machine"), "copy it here")
    with open_file(path) as file:
        rows = csv_rows(codecs.iterdecode(file, options["encoding"], "replace"), options)
        first = next((row for row in rows if row), None)
    if first is None:
        raise Unfit(Fault(path, "the file is empty: it says nothing of its columns"), _HINT)
    names = (first[0].removeprefix("\ufeff"), *first[1:])
    if len(set(map(fold, names))) < len(names) or "" in names:
        raise Unfit(Fault(path, "two of its columns have one name, or one has none"), _HINT)
    return names


def by_name(
    files: Files, options: Mapping[str, Any], location: Location | None
) -> Files | UnitedFiles:
    """Return files whose columns are matched by name, where the call asks for it.

    ``options`` are those of the call. Raises ArgumentError and QueryFailed, at ``location``.
    """
    if not files.by_name:
        return files
    if files.options["header"] != "true":
        message = "union_by_name needs the header of each file"
        raise ArgumentError(message, hint="take header = false away", location=location)
    asked = {name.lower(): value for name, value in options.items()}
    declared: Mapping[str, str] = asked.get("columns") or {}
    try:
        headers = headers_of(files.paths, files.options)
        parts = tuple(
            Part(_files(files, header, paths, declared), header)
            for header, paths in headers.items()
        )
    except Unfit as unfit:
        raise QueryFailed(
            unfit.fault.text(files.root), hint=unfit.hint, location=location
        ) from None
    if len(parts) == 1 and not declared:
        return files
    return UnitedFiles(parts, {name: spark_type(kind) for name, kind in declared.items()})


def _files(files: Files, header: Header, paths: list[str], declared: Mapping[str, str]) -> Files:
    """Return the files of one header. Raises Unfit for a column that is not declared."""
    if not declared:
        return replace(files, paths=tuple(paths))
    types = {fold(name): spark_type(str(kind)) for name, kind in declared.items()}
    new = [name for name in header if fold(name) not in types]
    if new:
        path = Path(paths[0])
        fault = other_columns(path, files.options, tuple(declared)) or Fault(
            path, f"`columns` has no {', '.join(f'`{name}`' for name in new)}"
        )
        raise Unfit(fault, "declare all columns of the files, or none")
    schema = _ddl({name: types[fold(name)] for name in header})
    return replace(files, paths=tuple(paths), schema=schema, columns=header)


def _ddl(types: Mapping[str, str]) -> str:
    return ", ".join(f"{quote_identifier(name, mark='`')} {of}" for name, of in types.items())


@dataclass(frozen=True, slots=True)
class Part:
    """Files that have the same header."""

    files: Files
    header: Header


@dataclass(frozen=True, slots=True)
class UnitedFiles:
    """Files of several headers; ``declared`` are the columns, with Spark's types, that the call
    gives.
    """

    parts: tuple[Part, ...]
    declared: Mapping[str, str]

    def read(self, session: SparkSession) -> DataFrame:
        """The rows of all files, in the columns of all."""
        types = self.declared or self._inferred(session)
        frames = []
        for part in self.parts:
            own = {fold(name): name for name in part.header}
            of = {fold(name): kind for name, kind in types.items()}
            schema = _ddl({name: of[fold(name)] for name in part.header})
            frame = replace(part.files, schema=schema, columns=part.header).read(session)
            frames.append(
                frame.select(
                    *(
                        (
                            fn.col(quote_identifier(own[fold(name)], mark="`"))
                            if fold(name) in own
                            else fn.lit(None).cast(kind)
                        ).alias(name)
                        for name, kind in types.items()
                    )
                )
            )
        return reduce(lambda one, other: one.unionAll(other), frames)

    def _inferred(self, session: SparkSession) -> dict[str, str]:
        """The columns in the order of first mention; each type holds the values of all files."""
        names: dict[str, str] = {}
        types: dict[str, str] = {}
        for part in self.parts:
            schema = part.files.read(session).schema
            for name, each in zip(part.header, schema, strict=True):
                own = each.dataType.simpleString()
                key = fold(name)
                names.setdefault(key, name)
                types[key] = wider(types.get(key, own), own)
        return {names[key]: kind for key, kind in types.items()}

    def notices(self) -> tuple[str, ...]:
        return ()

    def blamed(self, error: PenstockError) -> QueryFailed | None:
        """Spark's error about one of the files, in the user's words; None for other errors."""
        return next(filter(None, (part.files.blamed(error) for part in self.parts)), None)


def wider(one: str, other: str) -> str:
    """Return the type that holds the values of two that Spark infers."""
    if one == other:
        return one
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    return "string"
