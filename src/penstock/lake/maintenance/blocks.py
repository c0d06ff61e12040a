"""A file of an object store that is read front to back: in blocks, whatever its columns ask for.

Arrow asks for each column of each row group by itself, one after the other where it must not hold
the file whole: a file of DuckDB's, of 122,880 rows a group, is some hundred requests for each of
its columns, and each takes the store tens of milliseconds.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow.parquet as pq

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
