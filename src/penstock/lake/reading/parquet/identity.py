"""Whether a file is the one that the catalog names: its size, its rows, its footer.

Another file in its place has the same field ids as soon as it is of another table, so it would be
read, deleted from and compacted without a word. Whoever opens a file has what this asks for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.lake.format.files import DataFile, DeleteFile
from penstock.lake.spark.failures import file_corrupt
from penstock.lake.storage import is_remote

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_PATHS = "file_path"  # of a delete file: the data file that it is of


def check_size(
    path: str, size: int, told: int, table: str | None = None, snapshot_id: int | None = None
) -> None:
    """Raises DataFileCorrupt where a file has another size than the catalog says."""
    if size != told:
        why = f"it has {size} bytes where the catalog says {told}: another file is in its place"
        raise file_corrupt(path, why, table, snapshot_id)


def check_file(
    file: DataFile | DeleteFile,
    metadata: pq.FileMetaData,
    table: str | None = None,
    snapshot_id: int | None = None,
    size: int | None = None,
) -> None:
    """Raises DataFileCorrupt unless this is the footer of ``file``.

    ``size`` is that of the file, if known; a local one is asked for its own.
    """
    if size is None and not is_remote(file.path):
        size = os.stat(file.path).st_size  # noqa: PTH116 - a Path costs more than the look
    if size is not None:
        check_size(file.path, size, file.size_bytes, table, snapshot_id)
    rows = file.record_count if isinstance(file, DataFile) else file.delete_count
    pairs = (("rows", metadata.num_rows, rows), ("bytes of footer", *_footers(file, metadata)))
    for what, there, told in pairs:
        if there != told:
            why = f"it has {there} {what} where the catalog says {told}"
            raise file_corrupt(file.path, why, table, snapshot_id)


def check_owner(metadata: pq.FileMetaData, data_path: str) -> str | None:
    """Why a delete file is not of this data file, by its statistics; ``None`` if nothing says so.

    Directories may have moved since, or be relative: the file's name and its partition count.
    """
    for at in range(metadata.num_row_groups):
        chunk = metadata.row_group(at).column(0)
        statistics = chunk.statistics if chunk.path_in_schema == _PATHS else None
        if statistics is None or not statistics.has_min_max:
            continue
        for text in {statistics.min, statistics.max}:
            if str(text).endswith(".parquet") and _name(str(text)) != _name(data_path):
                return f"it deletes rows of {text}, not of {data_path}"
    return None


def _footers(file: DataFile | DeleteFile, metadata: pq.FileMetaData) -> tuple[int, int]:
    """The footer's size as it is and as it should be; some writers leave it out."""
    return metadata.serialized_size, file.footer_size or metadata.serialized_size


def _name(path: str) -> str:
    """The file's name with the directories ``name=value`` right above it."""
    *folders, name = path.replace("\\", "/").split("/")
    while folders and "=" in folders[-1]:
        name = f"{folders.pop()}/{name}"
    return name
