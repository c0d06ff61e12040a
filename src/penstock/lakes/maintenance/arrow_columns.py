"""Columns of Parquet files as Arrow columns of one type, so that files can be merged.

Arrow preserves the types of Parquet except a few (``interval``, ``timetz``, ``geometry``,
``variant``): tables with those are refused rather than written with other types.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.files import NameMapping
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions.spark_types import INFINITE
from penstock.lazy import pa, pc

FIELD_ID = b"PARQUET:field_id"
_TEXT_OF_UUID = 36  # characters: how Spark writes them

_LEAVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "int128": pa.float64(),  # DuckDB's files hold them as DOUBLE
    "uint128": pa.float64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamp_s": pa.timestamp("us"),
    "timestamp_ms": pa.timestamp("ms"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "varchar": pa.string(),
    "json": pa.json_(pa.string()),
    "blob": pa.binary(),
    "uuid": pa.uuid(),
}


def arrow_field(column: Column, table: str) -> pa.Field:
    """The column with its field id, and those inside it. Raises UnsupportedFeature."""
    kind = base_type(column.type)
    inside = [arrow_field(child, table) for child in column.children]
    if kind in _NESTED:
        type_ = _NESTED[kind](inside)
    elif kind == "decimal":
        precision, scale = column.type.removeprefix("decimal(").rstrip(")").split(",")
        type_ = pa.decimal128(int(precision), int(scale))
    elif kind in _LEAVES:
        type_ = _LEAVES[kind]
    else:
        raise UnsupportedFeature(
            f"table {table} has column {column.name!r} of type {column.type}, whose files are "
            "not compacted",
            hint="compact the table with DuckDB",
            data={"table": table, "column": column.name, "type": column.type},
        )
    return pa.field(column.name, type_, metadata={FIELD_ID: str(column.id).encode()})


_NESTED: Mapping[str, Callable[[list[pa.Field]], pa.DataType]] = {
    "struct": pa.struct,
    "list": lambda inside: pa.list_(inside[0].with_name("element")),
    "map": lambda inside: pa.map_(
        inside[0].with_name("key").with_nullable(False), inside[1].with_name("value")
    ),
}


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a table as a file has it, at any depth: see `columns_of_file`."""

    column: Column  # with only those children that the file has
    at: int  # its index in the file, or in what it is inside
    inside: tuple[FileColumn, ...] = ()


def columns_of_file(
    file: pa.Schema, schema: TableSchema, mapping: NameMapping | None
) -> tuple[FileColumn, ...]:
    """The columns of ``schema`` that the file has: by field id, name mapping, or name."""
    columns = (_file_column(column, list(file), mapping, ()) for column in schema.columns)
    return tuple(column for column in columns if column is not None)


def schema_of(columns: tuple[FileColumn, ...]) -> TableSchema:
    return TableSchema(tuple(column.column for column in columns))


def _file_column(
    column: Column, fields: list[pa.Field], mapping: NameMapping | None, path: tuple[str, ...]
) -> FileColumn | None:
    at = _index(column, fields, mapping, path)
    if at is None:
        return None
    return _file_column_at(column, fields[at], at, mapping, (*path, fields[at].name))


_INNER = {"list": ("list",), "map": ("key", "value")}


def _file_column_at(
    column: Column, field: pa.Field, at: int, mapping: NameMapping | None, path: tuple[str, ...]
) -> FileColumn:
    """The parts of ``column`` that ``field`` has; ``path`` is the path of the field."""
    inner = _children(field.type)
    names = _INNER.get(base_type(column.type))
    if names is None:
        looked = (_file_column(child, inner, mapping, path) for child in column.children)
        children = [child for child in looked if child is not None]
    else:  # a list's element, a map's key and value are where they are, whatever they are called
        places = zip(column.children, inner, names, strict=True)
        children = [
            _file_column_at(child, child_field, place, mapping, (*path, name))
            for place, (child, child_field, name) in enumerate(places)
        ]
    held = replace(column, children=tuple(child.column for child in children))
    return FileColumn(held, at, tuple(children))


def _index(
    column: Column, fields: list[pa.Field], mapping: NameMapping | None, path: tuple[str, ...]
) -> int | None:
    for at, field in enumerate(fields):
        field_id = (field.metadata or {}).get(FIELD_ID)
        if field_id is not None and int(field_id) == column.id:
            return at
    if mapping is not None:
        named = (mapping.fields.get((*path, field.name)) for field in fields)
        return next((at for at, mapped_id in enumerate(named) if mapped_id == column.id), None)
    if any((field.metadata or {}).get(FIELD_ID) is not None for field in fields):
        return None
    wanted = fold(column.name)
    return next((at for at, field in enumerate(fields) if fold(field.name) == wanted), None)


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_struct(kind):
        return [kind.field(at) for at in range(kind.num_fields)]
    return [kind.value_field] if _is_list(kind) else []


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def conform(column: pa.ChunkedArray, source: FileColumn, wanted: pa.DataType) -> pa.ChunkedArray:
    """A file's column as ``wanted``, the type of `arrow_field` for the parts that the file has."""
    if column.type == wanted and not source.inside:
        return column
    if not source.inside:
        return pa.chunked_array([_leaf(chunk, wanted) for chunk in column.chunks], wanted)
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return pa.chunked_array([_nested(whole, source, wanted)], wanted)


def _nested(array: pa.Array, source: FileColumn, wanted: pa.DataType) -> pa.Array:
    """``array`` starts at the beginning of its buffers, as a concatenated array does."""
    if not source.inside:
        return _leaf(array, wanted)
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(wanted):
        fields = [wanted.field(at) for at in range(wanted.num_fields)]
        inner = [
            _nested(array.field(child.at), child, field.type)
            for child, field in zip(source.inside, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=mask)
    if pa.types.is_map(wanted):
        key, value = source.inside
        keys = _nested(array.keys, key, wanted.key_type)
        items = _nested(array.items, value, wanted.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=mask)
    offsets = array.offsets.cast(pa.int32())
    inner_values = _nested(array.values, source.inside[0], wanted.value_type)
    return pa.ListArray.from_arrays(offsets, inner_values, type=wanted, mask=mask)


def _leaf(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted:
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if wanted == pa.uuid():
        return pa.ExtensionArray.from_storage(wanted, _uuid_bytes(array))
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, array.cast(wanted.storage_type))
    return _promoted(array, wanted)


def _promoted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Values of a file that is older than the column's type. Raises UnsupportedFeature."""
    kind = array.type
    has_zone = [pa.types.is_timestamp(type_) and type_.tz is not None for type_ in (kind, wanted)]
    by_division = pa.types.is_decimal(kind) and pa.types.is_floating(wanted)
    if has_zone != [False, True] and not by_division:
        if pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted):
            return _moments(array, wanted)
        if pa.types.is_decimal(kind) and pa.types.is_decimal(wanted) and kind.scale > wanted.scale:
            array = pc.round(array, wanted.scale, "half_towards_infinity")
        nearest = pa.types.is_integer(kind) and pa.types.is_floating(wanted)
        try:
            return array.cast(wanted, safe=not nearest)
        except pa.ArrowInvalid:
            pass
    raise UnsupportedFeature(
        f"a file to be compacted has values of {kind}, which this version does not convert to "
        f"{wanted}, the type that its table has now",
        hint="compact the table with DuckDB: CALL ducklake_rewrite_data_files('lake')",
        data={"type": str(wanted), "file": str(kind)},
    )


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _moments(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Times in another unit, as DuckDB (1.5.5) reads them: thousandths of a second are rounded,
    halves away from 1970, and of nanoseconds the rest is cut off.
    """
    if array.type.unit == wanted.unit:
        return array.cast(wanted)
    counts = array.cast(pa.int64())
    per, wanted_per = _PER_SECOND[array.type.unit], _PER_SECOND[wanted.unit]
    infinite = pc.equal(pc.abs(counts), int64(INFINITE))
    if wanted_per > per:
        there = pc.if_else(infinite, int64(0), counts)
        turned = pc.multiply_checked(there, int64(wanted_per // per))
    else:
        size = int64(per // wanted_per)
        turned = pc.divide(counts, size)
        if wanted.unit == "ms":
            rest = pc.subtract(counts, pc.multiply(turned, size))
            half = pc.greater_equal(pc.multiply(pc.abs(rest), int64(2)), size)
            turned = pc.add(turned, pc.if_else(half, pc.sign(rest), int64(0)).cast(pa.int64()))
    return pc.if_else(infinite, counts, turned).cast(wanted)


def int64(value: int) -> pa.Scalar:
    """A number as an Arrow scalar. Without a type pyarrow looks for pandas each time."""
    return pa.scalar(value, pa.int64())


def _uuid_bytes(array: pa.Array) -> pa.Array:
    """UUIDs as sixteen raw bytes, also from text of 36 characters."""
    raw = pa.binary(16)
    if array.type == raw:
        return array
    lengths = pc.unique(pc.binary_length(array).drop_null()).to_pylist()
    if lengths in ([], [16]):
        return array.cast(raw)
    text = pc.replace_substring(array.cast(pa.string()), "-", "")
    filled = pc.fill_null(text, "0" * 32)
    content = binascii.unhexlify("".join(filled.to_pylist()))
    whole = pa.Array.from_buffers(raw, len(array), [None, pa.py_buffer(content)])
    return pc.if_else(array.is_valid(), whole, pa.scalar(None, raw))


def nan_columns(table: pa.Table) -> frozenset[int]:
    """The ids of the float columns, at any depth, that hold a NaN; see `stats.from_footer`."""
    ids: set[int] = set()
    for field, column in zip(table.schema, table.columns, strict=True):
        if _has_float(field.type):
            for chunk in column.chunks:
                ids |= set(_nans(field, chunk))
    return frozenset(ids)


def _has_float(kind: pa.DataType) -> bool:
    inside = _children(kind)
    return any(_has_float(child.type) for child in inside) if inside else pa.types.is_floating(kind)


def _nans(field: pa.Field, array: pa.Array) -> Iterator[int]:
    kind = field.type
    if pa.types.is_floating(kind):
        field_id = (field.metadata or {}).get(FIELD_ID)
        if field_id is not None and pc.any(pc.is_nan(array)).as_py():
            yield int(field_id)
    elif pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            if _has_float(kind.field(at).type):
                yield from _nans(kind.field(at), array.field(at))
    elif pa.types.is_map(kind):
        yield from _nans(kind.key_field, array.keys)
        yield from _nans(kind.item_field, array.items)
    elif _is_list(kind):
        yield from _nans(kind.value_field, array.values)
