"""What tells the files of one scan apart, in Python and in Spark alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.lake.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_LONG_BITS = 63
_LEAST_SHIFT = 6
_MOST_SIZES = 500  # each is a literal in the plan, 0.1 ms to make
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/+")


@dataclass(frozen=True, slots=True)
class FileKeys:
    """Keys of files: their names where these differ, else their whole paths."""

    by_name: bool

    @classmethod
    def of(cls, paths: Iterable[str]) -> FileKeys:
        names = [_name(path) for path in paths]
        return cls(by_name=len(set(names)) == len(names))

    def key(self, path: str) -> str:
        return _name(path) if self.by_name else "/" + _SCHEME.sub("/", path).lstrip("/")

    def column(self, df: DataFrame) -> SparkColumn:
        """The key of the file that a row of ``df`` comes from, a frame just read from Parquet."""
        from pyspark.sql import functions as fn

        metadata = df.metadataColumn("_metadata")  # also where a table has a column of this name
        if self.by_name:
            return metadata["file_name"]
        # Spark gives a URI. url_decode takes + for a space, as forms do and paths do not.
        path = fn.replace(metadata["file_path"], fn.lit("+"), fn.lit("%2B"))
        return fn.regexp_replace(fn.url_decode(path), "^[A-Za-z][A-Za-z0-9+.-]*:/+", "/")


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Places:
    """One number for each row of several files: the file's size, then the position in it.

    A join on one long is cheaper than one on a file's name and a position; what the whole costs,
    `bench/scan_deletes.py` measures. It wants files that differ in size, as most do; sizes are
    what the catalog says, and a file of another size is an error when it is read.
    """

    shift: int  # 6 at least: 64 places that follow each other are of one file (`delete_masks`)
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, files: Iterable[DataFile]) -> Places | None:
        """Where the sizes differ, are not too many, and fit with the positions into one long."""
        listed = list(files)
        sizes = tuple(sorted({file.size_bytes for file in listed}))
        shift = max((file.record_count for file in listed), default=0).bit_length()
        shift = max(shift, _LEAST_SHIFT)
        if not len(listed) == len(sizes) <= _MOST_SIZES or not sizes or sizes[0] <= 0:
            return None
        return cls(shift, sizes) if sizes[-1].bit_length() + shift < _LONG_BITS else None

    def base(self, file: DataFile) -> int:
        """The number of the file's first row."""
        return file.size_bytes << self.shift

    def column(self, df: DataFrame, table: str) -> SparkColumn:
        """The number of each row of ``df``, a frame just read from Parquet."""
        from pyspark.sql import functions as fn

        metadata = df.metadataColumn("_metadata")
        size, position = metadata["file_size"], metadata["row_index"]
        message = f"a data file of {table} has not the size that the catalog says: "
        refusal = fn.raise_error(fn.concat(fn.lit(message), metadata["file_path"]))
        number = size * fn.lit(1 << self.shift) + position
        return fn.when(size.isin(*self.sizes), number).otherwise(refusal.cast("long"))
