"""One number for a row's file and place in it: eight bytes to bring here, where a file's name and a
position take a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from penstock.lake.scan import FILE, POSITION, Scan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

_BITS = 40  # of the position
_MOST_FILES = 64  # Spark compares a row's file with each
_BETWEEN = "\n"
_MOST_RUNS = 1_000  # of rows of one file each in a batch: from more, sorting takes less time


@dataclass(frozen=True, slots=True)
class PlaceNumbers:
    """The number of a row is its file's, by its place in ``keys``, and below it its position."""

    keys: tuple[str, ...]

    @classmethod
    def of(cls, source: Scan) -> Self | None:
        """Where the files are not too many and their keys can be told apart in a list."""
        files, keys = source.files.files, source.keys()
        if len(files) > _MOST_FILES or max((f.record_count for f in files), default=0) >> _BITS:
            return None
        found = tuple(keys.key(file.path) for file in files)
        return None if any(_BETWEEN in key for key in found) else cls(found)

    def column(self) -> SparkColumn:
        """The number of a row with FILE and POSITION; NULL for one that is in no file."""
        from pyspark.sql import functions as fn

        # Two literals, which Spark makes a list of once; with one for each key every call to the
        # JVM would be paid for.
        keys = fn.split(fn.lit(_BETWEEN.join(self.keys)), _BETWEEN)
        place = fn.array_position(keys, fn.col(FILE)) - fn.lit(1)
        return place * fn.lit(1 << _BITS) + fn.col(POSITION)

    def by_file(self, numbers: pa.ChunkedArray) -> dict[str, pa.Int64Array]:
        """The positions by key, each once and in order, of numbers in any order, none NULL."""
        import pyarrow as pa

        found: dict[str, list[pa.Int64Array]] = {}
        for number, positions in self._runs(numbers):
            found.setdefault(self.keys[number], []).append(positions)
        return {key: ordered(pa.concat_arrays(parts)) for key, parts in found.items()}

    def files(self, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
        """The place in ``keys`` of each row's file."""
        import pyarrow.compute as pc

        return pc.shift_right(numbers, _BITS)

    def positions(self, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
        import pyarrow.compute as pc

        return pc.bit_wise_and(numbers, (1 << _BITS) - 1)

    def _runs(self, numbers: pa.ChunkedArray) -> Iterator[tuple[int, pa.Int64Array]]:
        """Numbers of files with positions: as they come where those of a file come together."""
        import pyarrow.compute as pc

        for chunk in numbers.chunks:
            rows = chunk
            runs = _encoded(rows)
            if len(runs.values) > _MOST_RUNS:
                rows = rows.take(pc.array_sort_indices(rows))
                runs = _encoded(rows)
            positions, start = self.positions(rows), 0
            for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
                assert number >= 0, "a row is of a file that the scan does not have"
                yield number, positions.slice(start, end - start)
                start = end


def _encoded(numbers: pa.Int64Array) -> pa.RunEndEncodedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.run_end_encode(pc.shift_right(numbers, _BITS), run_end_type=pa.int64())


def ordered(positions: pa.Int64Array) -> pa.Int64Array:
    """Positions, each once and in order; most are so already."""
    import pyarrow.compute as pc

    if len(positions) < 2 or pc.all(pc.greater(positions[1:], positions[:-1])).as_py():
        return positions
    return pc.unique(positions.take(pc.array_sort_indices(positions)))
