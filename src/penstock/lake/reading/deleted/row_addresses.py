"""One number for each row of several files: eight bytes, where a file's name and a position take a
hundred, and a join on one long is cheaper than one on both (`bench/scan_deletes.py` measures it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.lake.format.files import DataFile
from penstock.lake.reading.parquet.reading import FileKeys
from penstock.lazy import pa, pc
from penstock.spark.functions import fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

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
