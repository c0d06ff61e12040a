"""Writing Arrow rows as data files without Spark.

The files are like those of Spark's writes (`writing.spark`): partitioned, sorted where the keys are
plain columns, in a directory of their own. All columns have field ids, at any depth, so no name
mapping is needed.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes import storage
from penstock.lakes.format.files import DataFile
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.naming import fold, new_uuid7
from penstock.lakes.format.partitioning import (
    PartitionKey,
    directory_names,
    hive_directory,
    murmur3_32,
)
from penstock.lakes.format.schema import EMBEDDED, Column, TableSchema
from penstock.lakes.format.statistics import from_footer
from penstock.lakes.format.values.bounds import base_type, partition_to_text
from penstock.lakes.reading.conversions.validation import missing_field
from penstock.lakes.writing.spark import Target, Written
from penstock.lazy import pa, pc, pq

_FIELD_ID = b"PARQUET:field_id"
_V2 = "PARQUET_2_0"
_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}
_SAMPLE = 4_096  # rows
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of timestamps without a zone
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)


def write(values: pa.Table, target: Target) -> Written:
    """Write ``values``, the columns of the target typed as `inlined.values.arrow_schema` has them.

    Raises UnsupportedFeature for types that are not written.
    """
    return write_history(values, target)[0]


def write_history(
    values: pa.Table,
    target: Target,
    embed: Mapping[str, Any] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> tuple[Written, list[pa.Table]]:
    """As `write`, and for each file its rows of the columns ``beside``, which are not written.

    ``embed`` has EMBEDDED_ROW_ID and SNAPSHOT_ID, in the order of ``values``, to be stored as well.
    """
    rows = _in_files(values, target.schema, target.table)
    for name, array in (embed or {}).items():
        rows = rows.append_column(_field(name, pa.int64(), EMBEDDED[name]), array)
    names = rows.column_names
    for name, array in (beside or {}).items():
        rows = rows.append_column(name, array)
    rows = _sorted(rows, target)
    directory = f"{target.path}{new_uuid7()}"
    files: list[DataFile] = []
    others: list[pa.Table] = []
    try:
        for file, part in _files(rows, target, directory, names):
            files.append(replace(file, has_row_ids=bool(embed)))
            others.append(part.select(list(beside or ())))
    except BaseException:
        storage.remove_directory(directory)
        raise
    return Written(tuple(files), rows.num_rows, directory if files else None), others


def _files(
    rows: pa.Table, target: Target, directory: str, own_columns: Sequence[str]
) -> Iterator[tuple[DataFile, pa.Table]]:
    names = directory_names(target.partition_by)
    most = target.settings.rows_per_file(target.schema)
    pieces = (
        (values, part.slice(start, most))
        for values, part in _parts(rows, target)
        for start in range(0, max(1, part.num_rows), most)
    )
    for number, (values, whole) in enumerate(pieces):
        part = whole.select(own_columns)
        folder = ""
        if values is not None and target.settings.hive:
            folder = hive_directory(names, values)
        path = f"{directory}/{folder}{number:05d}.parquet"
        storage.make_parent(path)
        with storage.output(path) as out:
            pq.write_table(part, out, use_dictionary=_coded(part), **_settings(target))
        system, name = storage.open_system(path)
        metadata = pq.read_metadata(name, filesystem=system)
        nans = (
            id_
            for field, column in zip(part.schema, part.columns, strict=True)
            for id_ in _nans(field, column)
        )
        file = DataFile(
            path=path,
            record_count=part.num_rows,
            size_bytes=system.get_file_info(name).size,
            footer_size=metadata.serialized_size,
            partition_id=target.partition_id,
            partition_values=values,
            # pyarrow's bounds leave NaN out, unlike those of Spark's files
            stats=from_footer(metadata, target.schema, frozenset(nans)),
        )
        yield file, whole


def _nans(field: pa.Field, array: Any) -> Iterator[int]:
    """The ids of float columns, at any depth, that hold a NaN."""
    kind = field.type
    if pa.types.is_floating(kind):
        if pc.any(pc.is_nan(array)).as_py():
            yield int(field.metadata[_FIELD_ID])
    elif pa.types.is_nested(kind):
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        for chunk in chunks:
            for part, inner in _inside(kind, chunk):
                yield from _nans(part, inner)


def _inside(kind: Any, chunk: Any) -> Iterator[tuple[pa.Field, Any]]:
    if pa.types.is_map(kind):
        yield from ((kind.key_field, chunk.keys), (kind.item_field, chunk.items))
    elif pa.types.is_list(kind):
        yield kind.field(0), chunk.flatten()
    else:
        yield from zip(kind, chunk.flatten(), strict=True)


def _parts(
    rows: pa.Table, target: Target
) -> Iterator[tuple[tuple[str | None, ...] | None, pa.Table]]:
    """The rows by partition, with its values; all rows for a table without partitioning."""
    if not target.partition_by:
        yield None, rows
        return
    columns = [
        [_partition_value(key, value) for value in rows[key.column.name].to_pylist()]
        for key in target.partition_by
    ]
    places: dict[tuple[str | None, ...], list[int]] = {}
    for at, values in enumerate(zip(*columns, strict=True)):
        places.setdefault(values, []).append(at)
    for values, mine in places.items():
        yield values, rows.take(pa.array(mine, pa.int64()))


def _partition_value(key: PartitionKey, value: Any) -> str | None:
    if value is None:
        return None
    if key.transform == "bucket":
        return str((murmur3_32(_hashed(key.column, value)) & 0x7FFFFFFF) % key.buckets)
    if key.transform == "identity":
        text = partition_to_text(key.column.type, value)
        if text is None:
            raise UnsupportedFeature(
                f"{value!r} of column {key.column.name!r} has no text to partition by",
                hint="write the row from a DataFrame",
                data={"column": key.column.name},
            )
        return text
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC)
    return str(getattr(value, key.transform, 0))  # a date has no hour: it is midnight


def _hashed(column: Column, value: Any) -> bytes:
    """The bytes that are hashed for a bucket (see `bucket_hash`)."""
    kind = base_type(column.type)
    as_text = kind.startswith("uint") or (kind == "decimal" and _digits(column.type)[0] > 18)
    turn = str if as_text else next(turn for types, turn in _HASHED if isinstance(value, types))
    encoded: Any = turn(value) if turn is not _unscaled else _unscaled(value, column.type)
    if kind in _UNITS:
        encoded //= _UNITS[kind]
    if isinstance(encoded, int):
        return encoded.to_bytes(8, "little", signed=True)
    return encoded.encode() if isinstance(encoded, str) else bytes(encoded)


def _digits(kind: str) -> tuple[int, int]:
    precision, scale = kind.split("(")[1].rstrip(") ").split(",")
    return int(precision), int(scale)


def _unscaled(value: Decimal, kind: str) -> int:
    return int(value.scaleb(_digits(kind)[1]))


def _moment(value: dt.datetime) -> int:
    return (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICRO


_UNITS = {"timestamp_s": 1_000_000, "timestamp_ms": 1000}
_HASHED: Sequence[tuple[type, Callable[..., Any]]] = (
    (dt.datetime, _moment),  # before its base
    (dt.date, lambda value: (value - _EPOCH.date()).days),
    (float, lambda value: struct.pack("<d", value + 0.0)),
    (Decimal, _unscaled),
    (int, int),
    (str, str),
    (bytes, bytes),
)


def _settings(target: Target) -> dict[str, Any]:
    """The options of Spark's writer as arguments of Arrow's."""
    options = target.settings.parquet
    codec = options.get("compression", "snappy")
    level = options.get("parquet.compression.codec.zstd.level")
    rows = options.get("parquet.block.row.count.limit")
    return {
        "compression": _CODECS.get(codec, codec),
        "compression_level": None if level is None else int(level),
        "row_group_size": None if rows is None else int(rows),
        "data_page_version": "2.0" if options.get("parquet.writer.version") == _V2 else "1.0",
        "store_schema": False,
        "store_decimal_as_integer": True,
        "version": "2.6",
    }


def _coded(rows: pa.Table) -> list[str] | bool:
    """The columns whose first values repeat, to be dictionary-encoded. For others a dictionary
    costs time for the look-ups, and space for the codes beside the values."""
    if any(pa.types.is_nested(field.type) for field in rows.schema):
        return True
    some = rows.slice(0, _SAMPLE)
    return [name for name in some.column_names if _repeats(some[name])]


def _repeats(values: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(values).as_py() * 2 <= len(values) - values.null_count)


def _sorted(rows: pa.Table, target: Target) -> pa.Table:
    """The rows sorted by the sort keys, if they are plain columns."""
    known = {fold(column.name): column for column in target.schema.columns}
    keys = [(known.get(fold(key.expression.strip('"'))), key) for key in target.sort_by]
    if not keys or not target.settings.sort or any(c is None or c.children for c, _ in keys):
        return rows
    order: list[tuple[str, str]] = []
    helped = rows
    for at, (column, key) in enumerate(keys):
        assert column is not None, "looked at before"
        nulls = pc.is_null(rows[column.name]).cast(pa.int8())  # Arrow puts them last otherwise
        helped = helped.append_column(f"_penstock_null{at}", nulls)
        order.append((f"_penstock_null{at}", "ascending" if key.nulls_last else "descending"))
        order.append((column.name, "descending" if key.descending else "ascending"))
    return rows.take(pc.sort_indices(helped, order))


def _in_files(values: pa.Table, schema: TableSchema, table: str) -> pa.Table:
    """The columns in the types of files, with field ids."""
    fields: list[pa.Field] = []
    columns: list[Any] = []
    for column, field, array in zip(
        schema.columns, arrow_schema(schema), values.columns, strict=True
    ):
        fields.append(_with_ids(column, field.type, table))
        lacking = missing_field(array, column) if column.children else None
        if lacking is not None:
            raise SchemaMismatch(
                f"field {lacking} of {table} is NOT NULL, and a row has none",
                hint="give it a value in each row; nothing was written",
                data={"table": table, "column": lacking},
            )
        turn = _TURNS.get(base_type(column.type))
        columns.append((array if turn is None else turn(array)).cast(fields[-1].type))
    return pa.table(columns, schema=pa.schema(fields))


def can_write(schema: TableSchema) -> bool:
    """Return whether files of these columns can be written without Spark."""
    return not any(base_type(column.type) in _REFUSED for column in schema.walk())


def _with_ids(column: Column, kind: pa.DataType, table: str) -> pa.Field:
    if column.type == "struct":
        inside = [
            _with_ids(child, kind.field(at).type, table) for at, child in enumerate(column.children)
        ]
        return _field(column.name, pa.struct(inside), column.id)
    if column.type == "list":
        element = _with_ids(column.children[0], kind.value_type, table)
        return _field(column.name, pa.list_(element.with_name("element")), column.id)
    if column.type == "map":
        key = _with_ids(column.children[0], kind.key_type, table)
        item = _with_ids(column.children[1], kind.item_type, table)
        return _field(
            column.name,
            pa.map_(key.with_name("key").with_nullable(False), item.with_name("value")),
            column.id,
        )
    name = base_type(column.type)
    if name in _REFUSED:
        raise UnsupportedFeature(
            f"table {table} has column {column.name!r} of type {column.type}, which is not written "
            "to files",
            hint="flush the table, or write these rows, with DuckDB",
            data={"table": table, "column": column.name, "type": column.type},
        )
    return _field(column.name, _ON_FILE.get(name, kind), column.id)


def _field(name: str, kind: pa.DataType, number: int | None) -> pa.Field:
    return pa.field(name, kind, metadata={_FIELD_ID: str(number).encode()})


def _times(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts of times as microseconds of the day."""
    counts = [None if text is None else _micros_of_day(text) for text in array.to_pylist()]
    return pa.chunked_array([pa.array(counts, pa.int64())])


def _micros_of_day(text: str) -> int:
    clock, _, fraction = text.partition(".")
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + int(fraction.ljust(6, "0") or 0)


def _doubles(array: pa.ChunkedArray) -> pa.ChunkedArray:
    return array.cast(pa.float64())


_ON_FILE: Mapping[str, pa.DataType] = {
    "time": pa.time64("us"),
    "timestamp_ns": pa.timestamp("ns"),
    "int128": pa.float64(),
    "uint128": pa.float64(),
}
_TURNS: Mapping[str, Callable[[Any], Any]] = {
    "time": _times,
    "int128": _doubles,
    "uint128": _doubles,
}
_REFUSED = frozenset({"timetz", "time_ns", "interval", "geometry", "variant"})
