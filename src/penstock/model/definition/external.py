"""EXTERNAL models: tables that others write, as ``external_models.yaml`` describes them.

Metadata only: nothing runs. Each entry has a ``name``, and may have a ``description``, ``columns``
with their types (kinds.md, EXTERNAL), and ``fresh``: how old the table may be (`freshness`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import Diagnostic, Location
from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model
from penstock.model.files.yaml_file import Reading
from penstock.model.values.asset import DEFAULT_SCHEMA, ColumnType, Names, TableName, UnknownName
from penstock.settings.quantities import seconds_of
from penstock.sql.dialect import DUCKDB, SPARK
from penstock.sql.identifiers import dotted, fold
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from yaml.nodes import Node

FILE = "external_models.yaml"
#: files that may describe them, and the directory of more
FILES = (FILE, "external_models.yml", "schema.yaml", "schema.yml")
DIRECTORY = "external_models"
_KEYS = ("name", "description", "columns", "gateway", "fresh")


@dataclass(frozen=True, slots=True)
class External:
    """``columns`` are those that its entry has, which need not be all. ``fresh`` is a duration as
    written: readers wait for a table that has not changed for longer.
    """

    table: TableName
    location: Location
    description: str | None = None
    columns: tuple[ColumnType, ...] = ()
    fresh: str | None = None

    def is_called(self, name: str) -> bool:
        bare = (self.table.table,) if self.table.schema == DEFAULT_SCHEMA else ()
        return name in (*bare, self.table.qualified, self.table.full, str(self.table))


def external_files(root: Path) -> list[Path]:
    """The files of a project that describe external models, those that are there."""
    more = sorted((root / DIRECTORY).glob("*.y*ml")) if (root / DIRECTORY).is_dir() else []
    return [path for path in (*(root / name for name in FILES), *more) if path.is_file()]


def read_externals(
    text: str, path: Path, names: Names
) -> tuple[tuple[External, ...], tuple[Diagnostic, ...]]:
    """The entries of a file in their order, and what is wrong with the others."""
    import yaml

    reading = Reading(path, "external")
    root = reading.root(text)
    found: list[External] = []
    if root is not None:
        try:
            for node in reading.items(root, "the file"):
                external = _entry(reading, node, names)
                found += [external] if external is not None else []
        except yaml.constructor.ConstructorError as error:
            reading.refuse_tag(error)
    return tuple(found), tuple(reading.findings)


def _entry(reading: Reading, node: Node, names: Names) -> External | None:
    entry = reading.mapping(node, "an external model", _KEYS)
    said = reading.text(entry.get("name"))
    if said is None:
        if entry:
            reading.error(node, "an external model has no name", "add name: schema.table")
        return None
    try:
        table = names.resolve(tuple(dotted(said)))
    except UnknownName as error:
        reading.error(entry["name"], str(error), error.hint)
        return None
    if "gateway" in entry:
        hint = "write the lake as the first part of the name: lake.schema.table"
        reading.error(entry["gateway"], "a lake is the first part of a table's name", hint)
    columns = tuple(_columns(reading, entry["columns"])) if "columns" in entry else ()
    fresh = reading.text(entry.get("fresh"))
    if "fresh" in entry and not seconds_of(fresh):
        hint = "write how long ago it may have changed last: fresh: 36h"
        reading.error(entry["fresh"], "fresh is not a duration", hint)
        fresh = None
    place, about = reading.where(entry["name"]), reading.text(entry.get("description"))
    return External(table, place, about, columns, fresh)


def _columns(reading: Reading, node: Node) -> Iterator[ColumnType]:
    for name, value in reading.mapping(node, "columns").items():
        kind = reading.text(value) or ""
        try:
            spark = type_in_spark(kind)
        except ValueError as error:
            hint = "write a type such as bigint, decimal(10, 2) or timestamp"
            reading.error(value, f"column {name} {error}", hint)
            continue
        yield ColumnType(name, spark, reading.where(value), SPARK)


def type_in_spark(text: str) -> str:
    """A type as Spark or DuckDB calls it, in Spark's SQL. Raises ValueError."""
    try:
        return spark_type(text, SPARK)
    except ValueError:
        return spark_type(text, DUCKDB)


def wrong_entries(externals: Iterable[External], models: Iterable[Model]) -> Iterator[Diagnostic]:
    """Entries for one table, and for a table that a model makes."""
    makers = {table_key(model.target): model for model in models}
    first: dict[str, External] = {}
    for external in externals:
        key = table_key(external.table)
        other, maker = first.setdefault(key, external), makers.get(key)
        if other is not external:
            place = f"{Path(other.location.path).name}:{other.location.line}"
            message = f"{external.table} is described twice, first in {place}"
            yield _error(external, message, "keep one of them")
        elif maker is not None:
            message = f"{external.table} is made by {maker.name}, so it is not external"
            yield _error(external, message, "take the entry away: the model says its columns")


def unlike(
    externals: Iterable[External], columns_of: Callable[[TableName], Mapping[str, str] | None]
) -> Iterator[Diagnostic]:
    """Yield what entries say that is not so; ``columns_of`` gives a table's types in Spark's SQL,
    by name, ``None`` where that is not known, and nothing where there is no such table.
    """
    for external in externals:
        real = columns_of(external.table)
        if real is None:
            continue
        if not real:
            message = f"table {external.table} does not exist"
            hint = "is the name right? what reads it fails until it is there"
            yield Diagnostic("warning", message, external.location, hint, "external")
            continue
        types = {fold(name): kind for name, kind in real.items()}
        for column in external.columns:
            kind = types.get(fold(column.name))
            if kind is None:
                message = f"{external.table} has no column {column.name}"
                hint = f"its columns are {', '.join(real)}"
            elif type_in_spark(kind) != column.type:
                said = column.type.lower()
                message = f"column {column.name} of {external.table} is {kind}, not {said}"
                hint = f"write {column.name}: {kind}"
            else:
                continue
            yield Diagnostic("error", message, column.location, hint, "external")


def _error(external: External, message: str, hint: str) -> Diagnostic:
    return Diagnostic("error", message, external.location, hint, "external")
