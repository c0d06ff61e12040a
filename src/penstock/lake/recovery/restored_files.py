"""Data files that come back: copies under names of their own, with what was deleted then.

Two rows of the catalog must not share a file: DuckDB's maintenance removes the file of a row that
no snapshot needs any more without looking whether another row has it (measured, 1.5.5), and both
would lose it. On a local disk a copy is a hard link and takes no room.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from penstock.errors import DataFileMissing
from penstock.lake.format.delete_files import SNAPSHOT_ID
from penstock.lake.format.delete_files import write as write_deletes
from penstock.lake.format.files import ColumnStats, DataFile, DeleteFile, FileSet
from penstock.lake.format.naming import new_uuid7
from penstock.lake.reading.deleted.positions import Whose, as_one, load
from penstock.lake.reading.parquet.identity import check_size
from penstock.lake.storage import is_remote, open_system, size_of, writing_to

_THREADS = 16


@dataclass(frozen=True, slots=True)
class Gone:
    """By data file id: positions that are not there at one snapshot, each once, in order."""

    positions: Mapping[int, pa.Int64Array]

    def of(self, file: DataFile) -> pa.Int64Array:
        found = self.positions.get(file.id or 0)
        return pa.array([], pa.int64()) if found is None else found


def gone_at(files: FileSet, snapshot_id: int, table: str) -> Gone:
    """What is deleted from the files, and what came into merged ones later only."""
    parts: dict[int, list[pa.Int64Array]] = {}
    deletes = [
        replace(file, delete=delete, more_deletes=())
        for file in files.files
        for delete in file.deletes
    ]
    for found in load(deletes, Whose(table, snapshot_id)):
        parts.setdefault(found.file.id or 0, []).append(found.positions)
    if files.inlined_deletes is not None:
        rows = files.inlined_deletes.rows
        for key in pc.unique(rows["file_id"]).to_pylist():
            mine = rows.filter(pc.equal(rows["file_id"], key))
            parts.setdefault(key, []).append(as_one(mine["position"]))
    for file in files.files:
        if file.partial is not None and file.partial.last > snapshot_id:
            parts.setdefault(file.id or 0, []).append(_later(file, snapshot_id))
    return Gone({key: _ordered(found) for key, found in parts.items()})


def _ordered(parts: Sequence[pa.Int64Array]) -> pa.Int64Array:
    every = pc.unique(pa.chunked_array(parts, pa.int64()).combine_chunks())
    return every.take(pc.sort_indices(every))


def _later(file: DataFile, snapshot_id: int) -> pa.Int64Array:
    """Where the rows of a merged file are that came after a snapshot."""
    system, place = open_system(file.path)
    with system.open_input_file(place) as source:
        since = pq.read_table(source, columns=[SNAPSHOT_ID])[SNAPSHOT_ID]
    found: pa.Int64Array = pc.indices_nonzero(pc.greater(since, snapshot_id)).cast(pa.int64())
    return found


def restored(
    files: Sequence[DataFile],
    gone: Gone,
    stats: Mapping[int, tuple[ColumnStats, ...]],
    directory: str,
) -> list[DataFile]:
    """Copies of these files below ``directory`` (ends in ``/``), as a commit can register them.

    Raises DataFileMissing.
    """

    def one(file: DataFile) -> DataFile:
        name = f"{directory}{_hive(file.path)}ducklake-{new_uuid7()}"
        copy = f"{name}.parquet"
        _copy(file.path, copy)
        check_size(file.path, size_of(copy) or 0, file.size_bytes)
        return replace(
            file,
            path=copy,
            id=None,
            begin_snapshot=None,
            delete=_delete(copy, f"{name}-delete.parquet", gone.of(file)),
            more_deletes=(),
            stats=stats.get(file.id or 0, ()),
            partial=None,
        )

    with ThreadPoolExecutor(_THREADS, "penstock-restored") as pool:
        return list(pool.map(one, files))


def _hive(path: str) -> str:
    """The directories ``name=value`` of a path: of some files only these have the values."""
    parts = [part for part in path.split("/")[:-1] if "=" in part]
    return "".join(f"{part}/" for part in parts)


def _copy(source: str, target: str) -> None:
    try:
        if is_remote(source) or is_remote(target):
            (from_system, from_place), (to_system, to_place) = (
                open_system(source),
                open_system(target),
            )
            fs.copy_files(
                from_place,
                to_place,
                source_filesystem=from_system,
                destination_filesystem=to_system,
            )
            return
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileNotFoundError:
            raise
        except OSError:  # another disk, or one without links
            _copy_bytes(source, target)
    except FileNotFoundError:
        raise DataFileMissing(
            f"{source}, which held rows of the table then, is not there",
            hint="roll back to another snapshot, or restore the file",
            data={"path": source},
        ) from None


def _copy_bytes(source: str, target: str) -> None:
    with Path(source).open("rb") as original, writing_to(target), Path(target).open("wb") as copy:
        shutil.copyfileobj(original, copy)


def _delete(data_path: str, path: str, positions: pa.Int64Array) -> DeleteFile | None:
    if not len(positions):
        return None
    return write_deletes(path, data_path, positions)
