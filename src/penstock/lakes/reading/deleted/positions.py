"""Positions of deleted rows: read from delete files on the driver, or as one number for each row.

The driver reads small deletes faster, as Arrow, than a Spark job does, and Spark cannot read
deletion vectors at all. The caller bounds how much is read.

What DuckLake calls puffin is a single bare blob of the kind deletion-vector-v1 of Iceberg's Puffin
specification: the length of magic and vector (4 bytes, big-endian), the magic, the vector, its
CRC-32 with the magic (big-endian). The vector is a 64-bit roaring bitmap in the portable layout.
It does not say which snapshot deleted a position.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyarrow import NativeFile

from penstock.errors import DataFileCorrupt, UnsupportedFeature
from penstock.lakes.format.files import DataFile, DeleteFile
from penstock.lakes.format.schema import SNAPSHOT_ID
from penstock.lakes.reading.parquet.reading import FileKeys, check_file, check_owner, check_size
from penstock.lakes.storage import is_remote, open_system, read_bytes
from penstock.lazy import pa, pc, pq
from penstock.spark.failures import file_corrupt, file_missing
from penstock.spark.functions import fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


_THREADS = 16


@dataclass(frozen=True, slots=True)
class Gone:
    """Rows deleted from one data file: their positions, and the snapshot that deleted each."""

    file: DataFile
    positions: pa.Int64Array
    since: pa.Int64Array


@dataclass(frozen=True, slots=True)
class Whose:
    """For messages: the table of the delete files, and the snapshot that is read."""

    table: str
    snapshot_id: int | None


def load(files: Sequence[DataFile], whose: Whose) -> list[Gone]:
    """The positions that the delete files of these data files delete up to the snapshot, if any.

    Raises DataFileMissing, DataFileCorrupt, UnsupportedFeature.
    """
    with ThreadPoolExecutor(min(_THREADS, max(1, len(files))), "penstock-deletes") as pool:
        return list(pool.map(lambda file: _load(file, whose), files))


def _load(file: DataFile, whose: Whose) -> Gone:
    delete = file.delete
    assert delete is not None, "asked for only where there is one"
    try:
        positions, since = _READERS[delete.format](
            file, delete, bound_of(delete, whose.snapshot_id)
        )
    except FileNotFoundError:
        raise file_missing(delete.path, whose.table, whose.snapshot_id) from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise _corrupt(delete, whose, str(error)) from error
    except DataFileCorrupt as error:
        raise _corrupt(delete, whose, error.data.get("why", str(error.message))) from error
    bounds = pc.min_max(positions)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    if positions.null_count or (least is not None and (least < 0 or most >= file.record_count)):
        raise _corrupt(
            delete, whose, f"it deletes rows that {file.path}, of {file.record_count} rows, lacks"
        )
    return Gone(file, positions, since)


def bound_of(delete: DeleteFile, snapshot_id: int | None) -> int | None:
    """The snapshot up to which its deletes count; all deletes of a staged file count."""
    return None if delete.id is None else snapshot_id


def _parquet(
    file: DataFile, delete: DeleteFile, snapshot_id: int | None
) -> tuple[pa.Array, pa.Array]:
    source = _source(delete.path)
    with pq.ParquetFile(source) as content:
        size = None if isinstance(source, str) else source.size()
        check_file(delete, content.metadata, size=size)
        why = check_owner(content.metadata, file.path)
        if why is not None:
            raise file_corrupt(delete.path, why, None, None)
        with_snapshots = SNAPSHOT_ID in content.schema_arrow.names
        read = content.read(["pos", SNAPSHOT_ID] if with_snapshots else ["pos"]).combine_chunks()
    since = _since(delete, read.num_rows)
    if not with_snapshots:
        return combined(read["pos"]), since
    # No delete counts before the delete file's row begins. After a lost race Penstock 0.1 left
    # files that also had the deletes of their predecessor, whose row had ended.
    since = pc.max_element_wise(read[SNAPSHOT_ID], since)
    table = pa.table({"pos": read["pos"], "since": since})
    # Also without a partial_max: DuckDB's flush of inlined rows leaves it NULL (1.5.5).
    if snapshot_id is not None:
        table = table.filter(pc.less_equal(table["since"], snapshot_id))
    return combined(table["pos"]), combined(table["since"])


def _source(path: str) -> str | NativeFile:
    """A source for pyarrow, which opens local paths itself at less cost."""
    if not is_remote(path):
        return path
    system, place = open_system(path)
    return system.open_input_file(place)


def _puffin(
    file: DataFile,  # noqa: ARG001 - of the table's shape
    delete: DeleteFile,
    snapshot_id: int | None,  # noqa: ARG001 - of the table's shape
) -> tuple[pa.Array, pa.Array]:
    content = read_bytes(delete.path)
    check_size(delete.path, len(content), delete.size_bytes)
    positions = vector_positions(content, delete.path)
    return positions, _since(delete, len(positions))


def _vector_inside(
    file: DataFile,  # noqa: ARG001 - of the table's shape
    delete: DeleteFile,
    snapshot_id: int | None,  # noqa: ARG001 - of the table's shape
) -> tuple[pa.Array, pa.Array]:
    """Of one vector among those of a file of Delta's, each with the frame that puffin has."""
    system, place = open_system(delete.path)
    with system.open_input_file(place) as source:
        source.seek(delete.footer_size)
        content = bytes(source.read(delete.size_bytes))
    positions = vector_positions(content, delete.path)
    return positions, _since(delete, len(positions))


_Reader = Callable[[DataFile, DeleteFile, int | None], tuple[pa.Array, pa.Array]]
_READERS: Mapping[str, _Reader] = {
    "parquet": _parquet,
    "puffin": _puffin,
    "vector": _vector_inside,
}


def _since(delete: DeleteFile, rows: int) -> pa.Int64Array:
    return pa.repeat(pa.scalar(delete.begin_snapshot, pa.int64()), rows)


def combined(column: pa.ChunkedArray) -> pa.Int64Array:
    """The column as one array."""
    chunks = column.combine_chunks()
    array = chunks.chunk(0) if isinstance(chunks, pa.ChunkedArray) else chunks
    return array.cast(pa.int64())


def _corrupt(delete: DeleteFile, whose: Whose, why: str) -> DataFileCorrupt:
    return file_corrupt(f"delete file {delete.path}", why, whose.table, whose.snapshot_id)


_MAGIC = bytes.fromhex("D1D33964")
_CONTAINER = b"PFA1"  # of a Puffin file proper: blobs, and a footer that lists them
_FRAME = 12  # bytes around the vector


def vector_positions(content: bytes, path: str) -> pa.Int64Array:
    """The positions, ascending, that the delete file ``path`` holds.

    Raises DataFileCorrupt where it is cut short or changed, UnsupportedFeature for a Puffin file
    with a footer.
    """
    if content.startswith(_CONTAINER):
        raise UnsupportedFeature(
            f"delete file {path} is a puffin file with a footer; only bare deletion vectors are "
            "read, which is what DuckDB writes",
            hint="rewrite the table with the writer that made the file",
            data={"path": path, "feature": "puffin files with a footer"},
        )
    return bitmap_positions(_vector(content, path), path)


def _vector(content: bytes, path: str) -> bytes:
    length = int.from_bytes(content[:4], "big")
    if len(content) < _FRAME or len(content) != length + 8 or content[4:8] != _MAGIC:
        raise _bad_vector(path, "it is not a deletion vector, or not a whole one")
    if zlib.crc32(content[4:-4]) != int.from_bytes(content[-4:], "big"):
        raise _bad_vector(path, "its checksum does not fit")
    return content[8:-4]


def bitmap_positions(vector: bytes, path: str) -> pa.Int64Array:
    """The positions, ascending, of a 64-bit roaring bitmap in the portable layout.

    Raises DataFileCorrupt, which names ``path``, where it is none.
    """
    from pyroaring import BitMap64

    try:
        values = BitMap64.deserialize(vector).to_array()
    except (ValueError, IndexError) as error:
        raise _bad_vector(path, "it holds no roaring bitmap") from error
    unsigned = pa.Array.from_buffers(pa.uint64(), len(values), [None, pa.py_buffer(values)])
    return unsigned.cast(pa.int64())


def _bad_vector(path: str, why: str) -> DataFileCorrupt:
    return DataFileCorrupt(
        f"delete file {path} cannot be read: {why}",
        hint="restore the file, or read a snapshot that does not need it",
        data={"path": path, "why": why},
    )


_LONG_BITS = 63
_LEAST_SHIFT = 6
_MOST_SIZES = 500  # each is a literal in the plan, 0.1 ms to make
_BETWEEN = "\n"
_RUNS = 1_000  # of rows of one file each in a batch: from more, sorting takes less time


@dataclass(frozen=True, slots=True)
class RowAddresses:
    """The number of a row is its file's code and, in the lowest ``shift`` bits, its position.

    ``codes`` (by path) use what is known where rows are numbered: the size of the file where Spark
    reads it (`by_size`), its index in ``keys`` for rows that name it (`by_key`), or any number
    (`by_order`). ``shift`` is at least 6, so that 64 consecutive numbers belong to one file
    (`deleted.masks`).
    """

    shift: int
    codes: Mapping[str, int]
    keys: tuple[str, ...] = ()

    @classmethod
    def by_size(cls, files: Sequence[DataFile]) -> RowAddresses | None:
        """Codes by size, if the sizes differ, are not too many, and fit into one long.

        Sizes come from the catalog; reading a file of another size raises an error.
        """
        codes = {file.path: file.size_bytes for file in files}
        sizes = set(codes.values())
        if not len(files) == len(sizes) <= _MOST_SIZES or not sizes or min(sizes) <= 0:
            return None
        return cls._fitting(files, codes)

    @classmethod
    def by_key(cls, files: Sequence[DataFile], keys: FileKeys, most: int) -> RowAddresses | None:
        """Codes by key, if there are at most ``most`` files and no key has the separator."""
        file_keys = tuple(keys.key(file.path) for file in files)
        if len(file_keys) > most or any(_BETWEEN in key for key in file_keys):
            return None
        return cls._fitting(files, {file.path: at for at, file in enumerate(files)}, file_keys)

    @classmethod
    def by_order(cls, files: Sequence[DataFile]) -> RowAddresses | None:
        """Codes by order, for rows that the driver numbers by `base`."""
        return cls._fitting(files, {file.path: at for at, file in enumerate(files)})

    @classmethod
    def _fitting(
        cls, files: Sequence[DataFile], codes: Mapping[str, int], keys: tuple[str, ...] = ()
    ) -> RowAddresses | None:
        most = max((file.record_count for file in files), default=0)
        shift = max(most.bit_length(), _LEAST_SHIFT)
        highest = max(codes.values(), default=0)
        return cls(shift, codes, keys) if highest.bit_length() + shift < _LONG_BITS else None

    def base(self, file: DataFile) -> int:
        """The number of the file's first row."""
        return self.codes[file.path] << self.shift

    def read_column(self, df: DataFrame, table: str) -> SparkColumn:
        """The number of each row of ``df``, a frame just read from Parquet; `by_size`."""
        metadata = df.metadataColumn("_metadata")
        size, position = metadata["file_size"], metadata["row_index"]
        message = f"a data file of {table} has not the size that the catalog says: "
        refusal = fn.raise_error(fn.concat(fn.lit(message), metadata["file_path"]))
        number = size * fn.lit(1 << self.shift) + position
        known = size.isin(*sorted(self.codes.values()))
        return fn.when(known, number).otherwise(refusal.cast("long"))

    def named_column(self, file: str, position: str) -> SparkColumn:
        """The number of a row with these columns, NULL for a row outside of files; `by_key`."""
        # Two literals, which Spark splits into a list once; a literal for each key would cost a
        # call to the JVM each.
        keys = fn.split(fn.lit(_BETWEEN.join(self.keys)), _BETWEEN)
        code = fn.array_position(keys, fn.col(file)) - fn.lit(1)
        return code * fn.lit(1 << self.shift) + fn.col(position)

    def by_file(self, numbers: pa.ChunkedArray, runs: int = _RUNS) -> dict[str, pa.Int64Array]:
        """The positions by key, sorted and without duplicates, of numbers that are not NULL.

        A batch with more than ``runs`` runs of rows of one file is sorted first.
        """
        by_key: dict[str, list[pa.Int64Array]] = {}
        for code, positions in self._runs(numbers, runs):
            by_key.setdefault(self.keys[code], []).append(positions)
        return {key: ordered(pa.concat_arrays(parts)) for key, parts in by_key.items()}

    def files(self, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
        """The code of each row's file."""
        return pc.shift_right(numbers, self.shift)

    def positions(self, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.bit_wise_and(numbers, (1 << self.shift) - 1)

    def _runs(self, numbers: pa.ChunkedArray, most: int) -> Iterator[tuple[int, pa.Int64Array]]:
        """Codes of files with positions, in runs of one file each."""
        for chunk in numbers.chunks:
            rows = chunk
            runs = self._encoded(rows)
            if len(runs.values) > most:
                rows = rows.take(pc.array_sort_indices(rows))
                runs = self._encoded(rows)
            positions, start = self.positions(rows), 0
            for code, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
                assert code >= 0, "a row is of a file that the scan does not have"
                yield code, positions.slice(start, end - start)
                start = end

    def _encoded(self, numbers: pa.Int64Array) -> pa.RunEndEncodedArray:
        return pc.run_end_encode(pc.shift_right(numbers, self.shift), run_end_type=pa.int64())


def ordered(positions: pa.Int64Array) -> pa.Int64Array:
    """Positions, sorted and without duplicates; most are already."""
    if len(positions) < 2 or pc.all(pc.greater(positions[1:], positions[:-1])).as_py():
        return positions
    return pc.unique(positions.take(pc.array_sort_indices(positions)))
