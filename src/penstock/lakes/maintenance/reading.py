"""Read data files one after the other, ahead of their consumer, in bounded memory.

Positions deleted by delete files and by the catalog are read, too. A file in an object store is
read front to back in blocks: unless Arrow may hold the whole file, it requests each column of each
row group separately. A file of DuckDB's, with 122,880 rows a group, would take some hundred
requests for each column, and each request takes tens of milliseconds.
"""

from __future__ import annotations

import io
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from penstock.lakes.format.files import DataFile, FileSet
from penstock.lakes.format.schema import EMBEDDED_ROW_ID, MAPPED_ROW_ID
from penstock.lakes.reading.deleted.positions import Whose, load
from penstock.lakes.reading.parquet.reading import check_file
from penstock.lakes.storage import is_remote, open_system
from penstock.lazy import pa, pc, pq
from penstock.spark.failures import file_corrupt, file_missing

_THREADS = 4
_WHOLE = 8 << 20  # bytes: larger files are read in pieces
_TOGETHER = 256 << 10  # bytes: several smaller files are read in one task
_EXPANDS = 8  # how much larger a file may become in memory, at a guess


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one file, from its row ``start`` on, with the file's own columns."""

    file: DataFile
    start: int
    rows: pa.Table


def pieces(files: Sequence[DataFile], *, table: str, rows: int, memory: int) -> Iterator[Piece]:
    """The rows of these files in their order, large files in pieces of ``rows`` rows.

    At most about ``memory`` bytes are read ahead. Raises DataFileMissing, DataFileCorrupt.
    """
    ahead: deque[tuple[_Batch, Future[list[pa.Table]] | None]] = deque()
    waiting = _batches(files)
    following = next(waiting, None)
    held = 0
    with ThreadPoolExecutor(_THREADS, "penstock-compaction") as pool:
        while ahead or following:
            while following and (not ahead or held + _cost(following) <= memory):
                held += _cost(following)
                small = following[0].size_bytes <= _WHOLE
                ahead.append((following, pool.submit(_all, following, table) if small else None))
                following = next(waiting, None)
            batch, future = ahead.popleft()
            if future is None:
                yield from _in_pieces(batch[0], table, rows)
            else:
                for file, rows_of_file in zip(batch, future.result(), strict=True):
                    yield Piece(file, 0, rows_of_file)
            held -= _cost(batch)


_Batch = tuple[DataFile, ...]  # what is read at one go: small files together


def _batches(files: Sequence[DataFile]) -> Iterator[_Batch]:
    """Group small files: a task of the pool costs as much as reading a few kilobytes."""
    batch: list[DataFile] = []
    size = 0
    for file in files:
        if batch and (size + file.size_bytes > _TOGETHER or is_remote(file.path)):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(file)
        size += file.size_bytes
    if batch:
        yield tuple(batch)


def _all(files: _Batch, table: str) -> list[pa.Table]:
    return [_whole(file, table) for file in files]


def _cost(batch: _Batch) -> int:
    return min(sum(file.size_bytes for file in batch), _WHOLE) * _EXPANDS


def _whole(file: DataFile, table: str) -> pa.Table:
    with _explained(file, table):
        # One read of the disk: looking for the footer first takes three.
        content = _content(file.path)
        opened = _opened(pa.BufferReader(content))
        check_file(file, opened.metadata, table, size=len(content))
        return _row_ids_named(file, opened.read(use_threads=False))


def _content(path: str) -> bytes | pa.Buffer:
    if not is_remote(path):
        return Path(path).read_bytes()
    system, name = open_system(path)
    with system.open_input_file(name) as stream:
        return stream.read_buffer()


def _in_pieces(file: DataFile, table: str, rows: int) -> Iterator[Piece]:
    system, name = open_system(file.path)
    with _explained(file, table), system.open_input_file(name) as stream:
        content = _in_blocks(stream, rows) if is_remote(file.path) else _opened(stream)
        check_file(file, content.metadata, table, size=stream.size())
        start = 0
        for batch in content.iter_batches(rows):
            rows_of_batch = pa.Table.from_batches([batch], content.schema_arrow)
            yield Piece(file, start, _row_ids_named(file, rows_of_batch))
            start += batch.num_rows


def _row_ids_named(file: DataFile, rows: pa.Table) -> pa.Table:
    """``rows`` with their embedded ids under the name that files with field ids have for them."""
    names = rows.column_names
    mapped = file.uses_mapping or file.mapping_id is not None
    if not mapped or MAPPED_ROW_ID not in names or EMBEDDED_ROW_ID in names:
        return rows
    return rows.rename_columns({MAPPED_ROW_ID: EMBEDDED_ROW_ID})


def _opened(source: object, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    # With buffering ahead, the whole of a large file would be in memory.
    return pq.ParquetFile(
        source, metadata=metadata, coerce_int96_timestamp_unit="us", pre_buffer=False
    )


def _in_blocks(source: pa.NativeFile, rows: int) -> pq.ParquetFile:
    """A file of an object store, read in blocks for ``rows`` rows at a time."""
    metadata = pq.read_metadata(source)  # separately: it is in the last block of the file
    blocks = window(metadata, rows)
    file = source if blocks is None else pa.PythonFile(Blocks(source, blocks), mode="r")
    return _opened(file, metadata)


@contextmanager
def _explained(file: DataFile, table: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise file_missing(file.path, table, None) from None
    except (pa.ArrowException, OSError) as error:
        raise file_corrupt(file.path, str(error), table, None) from error


@dataclass(frozen=True, slots=True)
class Deletes:
    """``inlined`` are positions by file id; the delete files are those that the files name."""

    whose: Whose
    inlined: Mapping[int, pa.Int64Array] = field(default_factory=dict)

    def of(self, group: Sequence[DataFile]) -> dict[int, pa.Int64Array]:
        """The positions deleted from these files, by file id: the delete files are read now."""
        by_file: dict[int, list[pa.Array]] = defaultdict(list)
        singly = [
            replace(file, delete=delete, more_deletes=())
            for file in group
            for delete in file.deletes
        ]
        for gone in load(singly, self.whose):
            by_file[gone.file.id or 0].append(gone.positions)
        for file_id, positions in self.inlined.items():
            by_file[file_id].append(positions)
        return {key: pa.concat_arrays(arrays) for key, arrays in by_file.items()}


def deletes_of(group: Sequence[DataFile], files: FileSet, whose: Whose) -> Deletes:
    if files.inlined_deletes is None:
        return Deletes(whose)
    rows = files.inlined_deletes.rows
    hit = {file.id for file in group if file.id is not None}
    inlined: dict[int, pa.Int64Array] = {}
    for file_id in sorted(hit & set(rows["file_id"].to_pylist())):
        of_file = rows.filter(pc.equal(rows["file_id"], file_id))["position"]
        inlined[file_id] = pa.concat_arrays(of_file.chunks)
    return Deletes(whose, inlined)


_BLOCK = 8 << 20  # bytes
_MOST = 64 << 20  # bytes in the cache; above it each column of a group is large on its own


class Source(Protocol):
    """The part of pyarrow's file interface that is used."""

    def size(self) -> int: ...

    def read_at(self, nbytes: int, offset: int) -> bytes: ...


class Blocks(io.RawIOBase):
    """``source`` as a Python file for `pyarrow.PythonFile`, which uses one thread at a time.

    At least the last ``window`` bytes that were read are cached.
    """

    def __init__(self, source: Source, window: int, block: int = _BLOCK) -> None:
        super().__init__()
        self._source = source
        self._block = block
        self._most = window // block + 2  # it begins and ends amid a block
        self._size = source.size()
        self._at = 0
        self._cache: OrderedDict[int, bytes] = OrderedDict()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}
        self._at = starts[whence] + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        asked = left if size is None or size < 0 else min(size, left)
        start, self._at = self._at, self._at + asked
        if asked > self._block:
            return self._source.read_at(asked, start)
        numbers = range(start // self._block, -(-(start + asked) // self._block))
        blocks = b"".join(self._get(number) for number in numbers)
        first = start - numbers.start * self._block
        return blocks[first : first + asked]

    def _get(self, number: int) -> bytes:
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        start = number * self._block
        block = self._source.read_at(min(self._block, self._size - start), start)
        self._cache[number] = block
        while len(self._cache) > self._most:
            self._cache.popitem(last=False)
        return block


def window(metadata: pq.FileMetaData, rows: int) -> int | None:
    """The most bytes that ``rows`` consecutive rows take in a file; ``None``: too many to cache.

    Arrow reads one column of all these rows, then the next, so blocks that were evicted from the
    cache are requested again.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    sizes = [
        sum(group.column(at).total_compressed_size for at in range(group.num_columns))
        for group in groups
    ]
    most = held = counted = end = 0
    for first, group in enumerate(groups):
        # The first may give one row only, so the others are to have them all.
        while end < len(groups) and (end <= first or counted - group.num_rows < rows):
            held += sizes[end]
            counted += groups[end].num_rows
            end += 1
        most = max(most, held)
        held -= sizes[first]
        counted -= group.num_rows
    return most if most <= _MOST else None
