"""The rows of a version of a Delta table as one DataFrame: its Parquet files in one scan.

Partition values are joined by file, as a file need not have them; deleted rows go by their place
(`lake.reading.deleted`). Columns are read by their names in the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from penstock.delta import vectors
from penstock.delta.actions import Add, DeletionVector, Metadata
from penstock.delta.schema import is_mapped, physical_fields, table_schema
from penstock.delta.statistics import loosened, parsed
from penstock.lakes import storage
from penstock.lakes.format.files import DataFile
from penstock.lakes.format.schema import Column
from penstock.lakes.reading.conversions.spark_types import cast_type
from penstock.lakes.reading.deleted.frames import less_masked, masks
from penstock.lakes.reading.deleted.positions import RowAddresses, ordered
from penstock.lakes.reading.parquet.reading import FileKeys, read_files
from penstock.lazy import pa, pc, pq
from penstock.spark.failures import explained, local_path
from penstock.spark.functions import arrow_frame, fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_ADDRESS = "_penstock_address"  # tells each row of a scan from all others
_KEY, _CODE, _VALUE = "_penstock_key", "_penstock_code", "_penstock_value"
_BROADCAST_ROWS = 5_000_000  # masks of 64 rows; above, Spark decides itself how to join
_ZONED = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
_REMOTE_OR_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True)
class Scan:
    """Files of a table.

    ``deleted`` are positions of rows, by a file's path in the log, that go beside those of its
    deletion vector.
    """

    table: str
    uri: str
    metadata: Metadata
    files: tuple[Add, ...]
    deleted: Mapping[str, pa.Int64Array] = field(default_factory=dict, compare=False)


def absolute(uri: str, path: str) -> str:
    """The path of a file, from how the log has it: URL-encoded, relative to the table or a URI."""
    decoded = unquote(path)
    if _REMOTE_OR_URI.match(decoded):
        return local_path(decoded)
    return decoded if decoded.startswith("/") else f"{uri.rstrip('/')}/{decoded}"


def physical_rows(uri: str, file: Add) -> int:
    """The number of rows in a file, deleted ones too: by its statistics, or by its footer."""
    known = parsed(file.stats).get("numRecords")
    if isinstance(known, int):
        return known
    system, place = storage.open_system(absolute(uri, file.path))
    return int(pq.read_metadata(place, filesystem=system).num_rows)


def live_rows(uri: str, file: Add) -> int:
    """The number of rows that its deletion vector leaves."""
    deleted = 0 if file.vector is None else file.vector.cardinality
    return physical_rows(uri, file) - deleted


def marked(uri: str, file: Add, vector: DeletionVector) -> Add:
    """Return a file with another deletion vector.

    Args:
        uri: The directory of the table.
        file: The file as the log has it.
        vector: All rows that are deleted from it.

    Returns:
        The file. Its statistics may include deleted rows.
    """
    return replace(file, vector=vector, stats=loosened(file.stats, physical_rows(uri, file)))


@dataclass(frozen=True, slots=True)
class Addresses:
    """Numbers for the rows of files (`RowAddresses`), with the file of each code."""

    numbers: RowAddresses
    by_code: Mapping[int, Add]
    by_size: bool

    @classmethod
    def of(cls, uri: str, files: Sequence[Add]) -> Addresses:
        described = [_described(uri, file) for file in files]
        numbers = RowAddresses.by_size(described)
        by_size = numbers is not None
        numbers = numbers or RowAddresses.by_order(described)
        assert numbers is not None, "an order and a position fit into one long"
        pairs = zip(described, files, strict=True)
        return cls(numbers, {numbers.codes[d.path]: file for d, file in pairs}, by_size)


def _described(uri: str, file: Add) -> DataFile:
    return DataFile(absolute(uri, file.path), physical_rows(uri, file), file.size, 0)


def read(spark: SparkSession, scan: Scan) -> DataFrame:
    """The rows of a scan.

    Raises DataFileMissing, DataFileCorrupt.
    """
    hit = {file.path for file in scan.files if file.vector is not None} | set(scan.deleted)
    whole = [file for file in scan.files if file.path not in hit]
    parts = [file for file in scan.files if file.path in hit]
    with explained(table=scan.table):
        frames = [_read(spark, scan, files) for files in (whole, parts) if files]
        if not frames:
            return _empty(spark, scan.metadata)
        return reduce(lambda a, b: a.union(b), frames)


def _read(spark: SparkSession, scan: Scan, files: Sequence[Add]) -> DataFrame:
    """Files that all have deleted rows, or none."""
    gone = deleted_rows(scan, files)
    places = Addresses.of(scan.uri, files) if gone else None
    facts = _Facts.of(scan, files, places)
    sizes = {absolute(scan.uri, file.path): file.size for file in files}
    df = read_files(spark, _file_schema(scan.metadata), sizes, table=scan.table)
    df = _with_facts(spark, df, facts, places, scan.table)
    if gone and places is not None:
        df = less_masked(df, _masks(spark, gone, places), _ADDRESS)
    return df.select(*_columns(scan.metadata, facts))


def deleted_rows(scan: Scan, files: Sequence[Add]) -> dict[str, pa.Int64Array]:
    """The positions of deleted rows by a file's path in the log, ascending."""
    held = {file.path: file.vector for file in files if file.vector is not None}
    found = vectors.positions(scan.uri, held, scan.table)
    for file in files:
        more = scan.deleted.get(file.path)
        if more is not None:
            both = [found[file.path], more] if file.path in found else [more]
            found[file.path] = ordered(pa.concat_arrays(both))
    return found


@dataclass(frozen=True, slots=True)
class _Facts:
    """Facts of the log about files, to be joined to their rows: codes where sizes do not tell them
    apart, and partition values where they differ. Others are in ``constant``, by name.
    """

    keys: FileKeys
    table: pa.Table
    constant: Mapping[str, str | None]

    @classmethod
    def of(cls, scan: Scan, files: Sequence[Add], places: Addresses | None) -> _Facts:
        paths = [absolute(scan.uri, file.path) for file in files]
        keys = FileKeys.of(paths)
        columns = {_KEY: pa.array([keys.key(path) for path in paths], pa.string())}
        if places is not None and not places.by_size:
            codes = [places.numbers.codes[path] for path in paths]
            columns[_CODE] = pa.array(codes, pa.int64())
        constant: dict[str, str | None] = {}
        for physical, texts in _partition_texts(scan.metadata, files).items():
            if len(set(texts)) == 1:
                constant[physical] = texts[0]
            else:
                columns[_VALUE + physical] = pa.array(texts, pa.string())
        return cls(keys, pa.table(columns), constant)

    @property
    def joined(self) -> bool:
        return bool(self.table.num_columns > 1)


def _partition_texts(metadata: Metadata, files: Sequence[Add]) -> dict[str, list[str | None]]:
    """The values of each file by the physical name of the column; times have their zone."""
    types = {c.name: c.type for c in table_schema(metadata.schema_text).columns}
    texts: dict[str, list[str | None]] = {}
    for name, physical, _ in physical_fields(metadata):
        if name in metadata.partition_by:
            found = [dict(file.values).get(physical) for file in files]
            zoned = types[name] == "timestamptz"
            texts[physical] = [in_utc(text) if zoned else text for text in found]
    return texts


def in_utc(text: str | None) -> str | None:
    """Return the text of a time with its zone. A text without a zone is in UTC.

    Args:
        text: The value of a partition.

    Returns:
        The text with a zone.
    """
    return text if text is None or _ZONED.search(text) else f"{text}Z"


def _with_facts(
    spark: SparkSession, df: DataFrame, facts: _Facts, places: Addresses | None, table: str
) -> DataFrame:
    """``df``, just read, with _ADDRESS where ``places`` are given, and with what is joined."""
    beside: list[SparkColumn] = []
    numbers = None if places is None else places.numbers
    if places is not None and numbers is not None:
        position = df.metadataColumn("_metadata")["row_index"]
        number = numbers.read_column(df, table) if places.by_size else position
        beside.append(number.alias(_ADDRESS))
    if facts.joined:
        beside.append(facts.keys.column(df).alias(_KEY))
    if beside:
        df = df.select("*", *beside)
    if not facts.joined:
        return df
    df = df.join(fn.broadcast(arrow_frame(spark, facts.table)), _KEY, "left")
    if numbers is None or _CODE not in facts.table.column_names:
        return df
    return df.withColumn(_ADDRESS, fn.col(_CODE) * fn.lit(1 << numbers.shift) + fn.col(_ADDRESS))


def _masks(spark: SparkSession, gone: Mapping[str, pa.Int64Array], places: Addresses) -> DataFrame:
    bases = {file.path: code << places.numbers.shift for code, file in places.by_code.items()}
    numbers = [pc.add(rows, bases[path]) for path, rows in gone.items()]
    frame = arrow_frame(spark, masks(pa.concat_arrays(numbers)))
    return fn.broadcast(frame) if sum(map(len, numbers)) <= _BROADCAST_ROWS else frame


def _columns(metadata: Metadata, facts: _Facts) -> list[SparkColumn]:
    """The columns of the table from those of the files and from partition values."""
    mapped = is_mapped(metadata)
    columns = table_schema(metadata.schema_text).columns
    pairs = zip(columns, physical_fields(metadata), strict=True)
    return [_value(column, name, mapped, facts) for column, (_, name, _) in pairs]


def _value(column: Column, physical: str, mapped: bool, facts: _Facts) -> SparkColumn:
    if physical in facts.constant:
        value = fn.lit(facts.constant[physical]).cast(_type(column))
    elif _VALUE + physical in facts.table.column_names:
        value = fn.col(quoted(_VALUE + physical)).cast(_type(column))
    else:
        value = fn.col(quoted(physical))
        if mapped and column.children:
            value = value.cast(_type(column))  # which names the fields inside
    return value.alias(column.name)


def _type(column: Column) -> DataType | str:
    return cast_type(_without_ids(column))


def _without_ids(column: Column) -> Column:
    return replace(column, id=None, children=tuple(map(_without_ids, column.children)))


def _file_schema(metadata: Metadata) -> StructType:
    """The columns of the files, by their names in them."""
    from pyspark.sql.types import StructType

    fields: list[Any] = [
        {"name": physical, "type": kind, "nullable": True, "metadata": {}}
        for name, physical, kind in physical_fields(metadata)
        if name not in metadata.partition_by
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def _empty(spark: SparkSession, metadata: Metadata) -> DataFrame:
    columns = [
        fn.lit(None).cast(_type(column)).alias(column.name)
        for column in table_schema(metadata.schema_text).columns
    ]
    return spark.range(0).select(*columns)
