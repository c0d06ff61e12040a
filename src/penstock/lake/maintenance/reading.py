"""Read data files one after the other, ahead of their consumer, in bounded memory.

The rows that delete files and the catalog delete are read with them. A file of an object store is
read front to back in blocks: Arrow asks for each column of each row group by itself, one after the
other where it must not hold the file whole. A file of DuckDB's, of 122,880 rows a group, is some
hundred requests for each of its columns, and each takes the store tens of milliseconds.
"""

from __future__ import annotations

import io
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.lake.format.field_ids import EMBEDDED_ROW_ID, MAPPED_ROW_ID
from penstock.lake.format.files import DataFile, FileSet
from penstock.lake.reading.deleted.positions import Whose, load
from penstock.lake.reading.parquet.reading import check_file
from penstock.lake.spark.failures import file_corrupt, file_missing
from penstock.lake.storage import is_remote, open_system

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_THREADS = 4
_WHOLE = 8 << 20  # bytes: larger files are read in pieces
_TOGETHER = 256 << 10  # bytes: smaller files are read several in one task
_EXPANDS = 8  # how much larger a file may become in memory, at a guess


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one file, from its row ``start`` on, as the file has them."""

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
                for file, found in zip(batch, future.result(), strict=True):
                    yield Piece(file, 0, found)
            held -= _cost(batch)


_Batch = tuple[DataFile, ...]  # what is read at one go: small files together


def _batches(files: Sequence[DataFile]) -> Iterator[_Batch]:
    """A task of the pool for a file of some kilobytes takes as long as reading it does."""
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
            found = pa.Table.from_batches([batch], content.schema_arrow)
            yield Piece(file, start, _row_ids_named(file, found))
            start += batch.num_rows


def _row_ids_named(file: DataFile, rows: pa.Table) -> pa.Table:
    """``rows`` with their embedded ids under the name that files with field ids have for them."""
    names = rows.column_names
    mapped = file.uses_mapping or file.mapping_id is not None
    if not mapped or MAPPED_ROW_ID not in names or EMBEDDED_ROW_ID in names:
        return rows
    return rows.rename_columns({MAPPED_ROW_ID: EMBEDDED_ROW_ID})


def _opened(source: object, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    # Buffered ahead, a large file would be here whole.
    return pq.ParquetFile(
        source, metadata=metadata, coerce_int96_timestamp_unit="us", pre_buffer=False
    )


def _in_blocks(source: pa.NativeFile, rows: int) -> pq.ParquetFile:
    """A file of a store, where it costs to ask: of ``rows`` rows at a time."""
    metadata = pq.read_metadata(source)  # by itself: its block is the last that is needed
    kept = window(metadata, rows)
    file = source if kept is None else pa.PythonFile(Blocks(source, kept), mode="r")
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
        found: dict[int, list[pa.Array]] = defaultdict(list)
        singly = [
            replace(file, delete=delete, more_deletes=())
            for file in group
            for delete in file.deletes
        ]
        for gone in load(singly, self.whose):
            found[gone.file.id or 0].append(gone.positions)
        for file_id, positions in self.inlined.items():
            found[file_id].append(positions)
        return {key: pa.concat_arrays(arrays) for key, arrays in found.items()}


def deletes_of(group: Sequence[DataFile], files: FileSet, whose: Whose) -> Deletes:
    if files.inlined_deletes is None:
        return Deletes(whose)
    rows = files.inlined_deletes.rows
    hit = {file.id for file in group if file.id is not None}
    inlined: dict[int, pa.Int64Array] = {}
    for file_id in sorted(hit & set(rows["file_id"].to_pylist())):
        here = rows.filter(pc.equal(rows["file_id"], file_id))["position"]
        inlined[file_id] = pa.concat_arrays(here.chunks)
    return Deletes(whose, inlined)


_BLOCK = 8 << 20  # bytes
_MOST = 64 << 20  # bytes kept: above them a group's columns are large by themselves


class Source(Protocol):
    """What is read of pyarrow's files."""

    def size(self) -> int: ...

    def read_at(self, nbytes: int, offset: int) -> bytes: ...


class Blocks(io.RawIOBase):
    """``source`` as a Python file for `pyarrow.PythonFile`, which reads it by one thread a time.

    At least ``window`` bytes are kept of what was read last.
    """

    def __init__(self, source: Source, window: int, block: int = _BLOCK) -> None:
        super().__init__()
        self._source = source
        self._block = block
        self._most = window // block + 2  # it begins and ends amid a block
        self._size = source.size()
        self._at = 0
        self._kept: OrderedDict[int, bytes] = OrderedDict()

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
        found = b"".join(self._get(number) for number in numbers)
        first = start - numbers.start * self._block
        return found[first : first + asked]

    def _get(self, number: int) -> bytes:
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        start = number * self._block
        found = self._source.read_at(min(self._block, self._size - start), start)
        self._kept[number] = found
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return found


def window(metadata: pq.FileMetaData, rows: int) -> int | None:
    """The most bytes of a file that ``rows`` rows in a row are in; ``None``: too many to be kept.

    Arrow reads one column of all those rows, then the next: what is not kept is asked for again.
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
