"""Delete files in Parquet: writing them, and correcting the snapshot that a staged file assumed.

Positions are in order. A file that replaces another has a third column with the snapshot that
deleted each position, as DuckDB 1.5.5 writes it (`DuckLakeDelete`, "delete file with snapshots"):
its row in the catalog begins with the least of them, and ends with the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from penstock.lake.format.field_ids import OF_DELETES, SNAPSHOT_ID
from penstock.lake.format.files import DeleteFile
from penstock.lake.storage import is_remote, open_system, output
from penstock.lazy import pa, pc, pq

# Positions in order take a byte or two as differences, where a dictionary of them takes ten.
_SETTINGS = {
    "compression": "snappy",
    "use_dictionary": ["file_path"],
    "column_encoding": {"pos": "DELTA_BINARY_PACKED"},
    "store_schema": False,
}


def write(
    path: str, data_path: str, positions: pa.Array, since: pa.Array | None = None
) -> DeleteFile:
    """Write ``positions`` of the data file ``data_path``; ``since`` are their snapshots.

    The directory of ``path`` exists. What the snapshots mean for the catalog is the caller's.
    """
    codes = pa.repeat(pa.scalar(0, pa.int32()), len(positions))
    names = pa.DictionaryArray.from_arrays(codes, pa.array([data_path], pa.string()))
    columns = [names, positions, *([] if since is None else [since])]
    return _written(path, columns)


def renumbered(file: DeleteFile, snapshot_id: int) -> DeleteFile:
    """The staged ``file`` with ``snapshot_id`` in place of the snapshot that it assumed.

    The commit lost a race for that snapshot; positions of older snapshots keep theirs. The file is
    overwritten, once for each lost race. Nobody reads it before it is committed.
    """
    assert file.partial_max is not None, "only such files tell snapshots"
    system, place = open_system(file.path)
    with system.open_input_file(place) as source:
        content = pq.read_table(source, columns=list(OF_DELETES), read_dictionary=["file_path"])
    snapshots = content[SNAPSHOT_ID]
    mine = pc.greater_equal(snapshots, file.partial_max)
    since = pc.if_else(mine, pa.scalar(snapshot_id, pa.int64()), snapshots)
    if not is_remote(file.path):  # Hadoop's checksum is that of the content before
        folder, _, name = file.path.rpartition("/")
        Path(f"{folder}/.{name}.crc").unlink(missing_ok=True)
    columns = [content["file_path"], content["pos"], since]
    return replace(_written(file.path, columns), begin_snapshot=file.begin_snapshot)


def _written(path: str, columns: Sequence[pa.Array | pa.ChunkedArray]) -> DeleteFile:
    types = (pa.dictionary(pa.int32(), pa.string()), pa.int64(), pa.int64())
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
        for (name, number), kind in zip(OF_DELETES.items(), types, strict=True)
    ]
    content = pa.table(list(columns), schema=pa.schema(fields[: len(columns)]))
    with output(path) as out:
        pq.write_table(content, out, **_SETTINGS)
        size = out.tell()
    system, place = open_system(path)
    with system.open_input_file(place) as source:
        footer = pq.read_metadata(source).serialized_size
    return DeleteFile(path, content.num_rows, size, footer)


def sequence(count: int) -> pa.Int64Array:
    """The integers from 0 on. Python's range would take 60 ms a million under the interpreter's
    lock."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=-1)
