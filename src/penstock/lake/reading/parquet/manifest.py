"""Many files at once: Spark is given a list with their sizes instead of looking for each.

Named one by one, Spark globs every path and asks for its status, and each travels to the JVM by
itself: 10,000 take 2 s. A streaming sink, though, leaves a log of its files, and of a directory
that has one Spark's reader takes the files from it: 100,000 in 1.5 s. Such a log is written here
to a directory for the moment and read once: the DataFrame has the list in memory, and the directory
is gone before anybody has the DataFrame. (A process killed in between leaves one among the system's
temporary files.) Nothing is looked up again, so a size that is too small would lose rows: the sizes
are those of the disk, never those of a catalog.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_PLAIN = re.compile(
    r"[A-Za-z0-9_./~-]*"
).fullmatch  # needs no quoting, which takes ten times as long

_LEAST = 32  # files: for fewer it is not worth the while

_SETTING = "spark.sql.streaming.fileStreamSink.ignoreMetadata"


def serves(spark: SparkSession, count: int) -> bool:
    """Whether so many local files are better read by a list.

    Not with Spark Connect: its server need not have this disk, and reads the list at every action.
    """
    if count < _LEAST or "connect" in type(spark).__module__:
        return False
    return str(spark.conf.get(_SETTING, "false")).lower() != "true"


def read(reader: DataFrameReader, sizes: Mapping[str, int]) -> DataFrame:
    """The rows of these files, by absolute local path, with their sizes in bytes."""
    with tempfile.TemporaryDirectory(prefix="penstock-files-") as folder:
        log = Path(folder) / "_spark_metadata"
        log.mkdir()
        lines = ["v1", *(_line(path, size) for path, size in sizes.items())]
        (log / "0").write_text("\n".join(lines))
        # The option keeps Spark from taking `country=x` in a path for a column.
        df = reader.option("recursiveFileLookup", "true").parquet(Path(folder).as_uri())
        df.schema  # noqa: B018 - the list is read while it is there
        return df


def _line(path: str, size: int) -> str:
    url = path if _PLAIN(path) else quote(path)  # neither has what JSON would escape
    return (
        f'{{"path":"file://{url}","size":{size},"isDir":false,"modificationTime":0,'
        '"blockReplication":1,"blockSize":33554432,"action":"add"}'
    )
