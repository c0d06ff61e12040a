"""What tells the files of one scan apart, in Python and in Spark alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

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
