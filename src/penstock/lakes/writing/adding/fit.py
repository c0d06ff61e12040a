"""Matching the columns of an added Parquet file to those of a table: by name, whatever their ids.

DuckDB 1.5.5 maps added files the same way (measured): letter case aside, at every depth, values in
the path before the file's own columns. The accepted types are those of the documents ("Adding
Files", Type Mapping) and further ones that DuckDB 1.5.5 accepts (measured), except those that it
accepts by mistake: times in milliseconds as whole numbers, bit strings as text, half floats as
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import SchemaMismatch
from penstock.lakes.format.files import NameMapping
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema, type_text
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions.spark_types import (
    INT96,
    MILLISECONDS,
    NANOSECONDS_IN_UTC,
    reads_itself,
)
from penstock.lakes.reading.parquet.footers import kind_of
from penstock.lazy import pa, pq

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """Accepted differences between a file and the table.

    ``allow_missing`` allows missing columns (they read as their default), ``ignore_extra_columns``
    ignores columns that the table lacks. ``hive_partitioning`` takes columns and partition values
    from directories ``name=value``; unless it is false, this happens where such directories exist.
    ``int96_in_utc`` takes INT96, as Spark writes it, for times with a zone too.
    """

    allow_missing: bool = False
    ignore_extra_columns: bool = False
    hive_partitioning: bool | None = None
    int96_in_utc: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the file and its column; ``bounds`` says whether the file's bounds are valid."""

    index: int
    column: Column
    bounds: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """``hive`` are the columns whose value is in the path; ``own`` their leaves in the file.

    The mapping's fields are in the file's order.
    """

    mapping: NameMapping
    leaves: tuple[Leaf, ...]
    hive: tuple[Column, ...] = ()
    own: tuple[Leaf, ...] = ()


@dataclass(slots=True)
class _Work:
    file: str
    table: str
    rules: Rules
    kinds: Iterator[tuple[int, str]]
    fields: dict[Path, int] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)


def fit(
    schema: pq.ParquetSchema,
    columns: TableSchema,
    hive: Sequence[Column],
    rules: Rules,
    *,
    file: str,
    table: str,
) -> Fit:
    """Map a file of this schema. ``hive`` are the columns in the file's path.

    Raises SchemaMismatch that names the file, the column, and both types where these differ.
    """
    kinds = enumerate(kind_of(schema.column(at)) for at in range(len(schema)))
    work = _Work(file, table, rules, kinds)
    _group(work, list(schema.to_arrow_schema()), columns.columns, (), frozenset(map(_id, hive)))
    ids = frozenset(map(_id, hive))
    inside = {path for path, field_id in work.fields.items() if len(path) == 1 and field_id in ids}
    mapping = NameMapping(
        None,
        {path: field_id for path, field_id in work.fields.items() if path[:1] not in inside},
        {_id(column): column.name for column in hive},
    )
    return Fit(
        mapping,
        tuple(leaf for leaf in work.leaves if leaf.column.id not in ids),
        tuple(hive),
        tuple(leaf for leaf in work.leaves if leaf.column.id in ids),
    )


def _id(column: Column) -> int:
    return column.id or 0


def _group(
    work: _Work,
    fields: Sequence[pa.Field],
    columns: Sequence[Column],
    parent: Path,
    elsewhere: frozenset[int] = frozenset(),
) -> None:
    """Map the fields of the file or of a struct; columns in ``elsewhere`` may be missing."""
    known = {fold(column.name): column for column in columns}
    seen: set[str] = set()
    for child in fields:
        name, path = fold(child.name), (*parent, child.name)
        if name in seen:
            raise _mismatch(work, path, "is there twice, letter case aside", "rename one")
        seen.add(name)
        column = known.get(name)
        if column is None:
            _extra(work, child, path)
        else:
            _column(work, child, column, path)
    for name, column in known.items():
        if name not in seen and _id(column) not in elsewhere:
            _missing(work, column, (*parent, column.name))


def _extra(work: _Work, child: pa.Field, path: Path) -> None:
    if not work.rules.ignore_extra_columns:
        raise _mismatch(
            work,
            path,
            f"is in the file and not in table {work.table}",
            "set ignore_extra_columns to leave it out, or add the column to the table first",
        )
    for _ in _leaves(child.type):
        next(work.kinds)


def _missing(work: _Work, column: Column, path: Path) -> None:
    if not work.rules.allow_missing:
        raise _mismatch(
            work,
            path,
            f"of table {work.table} is not in the file",
            "set allow_missing to read it as its default, or NULL",
        )
    if not column.nullable and column.initial_default is None:
        raise _mismatch(
            work,
            path,
            f"of table {work.table} is NOT NULL, has no default, and is not in the file",
            "write the column into the file",
        )


def _column(work: _Work, pa_field: pa.Field, column: Column, path: Path) -> None:
    work.fields[path] = _id(column)
    inner = _inner(pa_field.type)
    if inner is None and not column.children:
        _leaf(work, column, path)
        return
    if inner is None or inner[0] != column.type:
        type_found = next(work.kinds)[1] if inner is None else inner[0]
        raise _differs(work, column, path, type_found)
    if column.type == "struct":
        _group(work, inner[1], column.children, path)
        return
    for name, child, into in zip(_NAMES[column.type], inner[1], column.children, strict=True):
        _column(work, child, into, (*path, name))


_NAMES = {"list": ("list",), "map": ("key", "value")}  # names of unnamed children in mappings


def _leaf(work: _Work, column: Column, path: Path) -> None:
    index, kind = next(work.kinds)
    zoned = work.rules.int96_in_utc and (kind, column.type) == (INT96, "timestamptz")
    if not zoned and not accepts(kind, column.type):
        raise _differs(work, column, path, kind)
    work.leaves.append(Leaf(index, column, keeps_bounds(kind, column.type)))


def _inner(kind: pa.DataType) -> tuple[str, list[pa.Field]] | None:
    """The name of a nested type in a table, and its children."""
    for test, name, fields in _NESTED:
        if test(kind):
            return name, fields(kind)
    return None


_NESTED: tuple[
    tuple[Callable[[pa.DataType], bool], str, Callable[[pa.DataType], list[pa.Field]]], ...
] = (
    (pa.types.is_struct, "struct", list),
    (pa.types.is_map, "map", lambda kind: [kind.key_field, kind.item_field]),
    (pa.types.is_list, "list", lambda kind: [kind.value_field]),
    (pa.types.is_large_list, "list", lambda kind: [kind.value_field]),
    (pa.types.is_fixed_size_list, "list", lambda kind: [kind.value_field]),
)


def _leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    inner = _inner(kind)
    if inner is None:
        yield kind
    else:
        for child in inner[1]:
            yield from _leaves(child.type)


def _differs(work: _Work, column: Column, path: Path, file_type: str) -> SchemaMismatch:
    wanted = type_text(column)
    takes = "a column of the same structure" if column.children else accepted(column.type)
    error = _mismatch(
        work,
        path,
        f"is {file_type} there and {wanted} in table {work.table}",
        f"it takes {takes}; rewrite the file with a cast, or insert its rows",
    )
    error.data.update({"file_type": file_type, "table_type": wanted})
    return error


def _mismatch(work: _Work, path: Path, what: str, hint: str) -> SchemaMismatch:
    column = ".".join(path)
    return SchemaMismatch(
        f"{work.file}: column {column!r} {what}",
        hint=hint,
        data={"path": work.file, "column": column, "table": work.table},
    )


_MOMENTS = ("timestamp", MILLISECONDS, INT96)
# By the table's type: the kinds of `reading.conversions.spark_types`, its own first.
_ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "boolean": ("boolean",),
    "int8": ("int8",),
    "int16": ("int16", "int8", "uint8"),
    "int32": ("int32", "int16", "int8", "uint16", "uint8"),
    "int64": ("int64", "int32", "int16", "int8", "uint32", "uint16", "uint8"),
    "uint8": ("uint8",),
    "uint16": ("uint16", "uint8"),
    "uint32": ("uint32", "uint16", "uint8"),
    "uint64": ("uint64", "uint32", "uint16", "uint8"),
    "float32": ("float32",),
    "float64": ("float64", "float32"),
    "varchar": ("varchar",),
    "json": ("json",),
    "blob": ("blob",),
    "uuid": ("uuid",),
    "date": ("date",),
    "time": ("time",),
    "timestamp": (*_MOMENTS, "timestamp_ns"),
    "timestamp_s": _MOMENTS,
    "timestamp_ms": _MOMENTS,
    "timestamp_ns": ("timestamp_ns", *_MOMENTS),
    "timestamptz": ("timestamptz", NANOSECONDS_IN_UTC),
    "interval": ("interval",),
}
_NANOSECONDS = frozenset({"timestamp_ns", NANOSECONDS_IN_UTC})
_COARSE = frozenset({"timestamp_s", "timestamp_ms"})


def accepts(kind: str, type_text: str) -> bool:
    """Return whether a file's column of ``kind`` holds only values of the table's type.

    A decimal must have room before and after the point: ``P' <= P and S' <= S``, as the documents
    have it, would let 999999.99 into a decimal(8,6).
    """
    if base_type(type_text) == "decimal":
        return base_type(kind) == "decimal" and reads_itself(kind, type_text)
    return kind in _ACCEPTED.get(base_type(type_text), ())


def accepted(type_text: str) -> str:
    """The types that `accepts` accepts, in words."""
    if base_type(type_text) == "decimal":
        return f"{type_text} or a decimal that fits into it"
    return ", ".join(_ACCEPTED.get(base_type(type_text), ())) or "no column of any type"


def keeps_bounds(kind: str, type_text: str) -> bool:
    """Return whether the file's bounds are valid for the column: finer times
    are truncated on read.
    """
    table = base_type(type_text)
    if kind in _NANOSECONDS:
        return table == "timestamp_ns"
    return not (table in _COARSE and kind == "timestamp")
