"""Read the distinct values of one column of one data file, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.lakes.format.schema import SNAPSHOT_ID
from penstock.lazy import pa, pc, pq

_MOST = 100_000  # distinct values


def distinct(path: str, field_id: int, *, by_snapshot: bool) -> list[tuple[str, int | None]] | None:
    """Return the values as texts, in a merged file each with the snapshots of its rows.

    NULL is none of them. None where the file is elsewhere, cannot be read, has too many of them, or
    does not name its columns by field ids.
    """
    if "://" in path or not Path(path).is_file():
        return None
    try:
        with pq.ParquetFile(path) as file:
            name = next(_named(file.schema_arrow, field_id), None)
            names = [name, SNAPSHOT_ID] if by_snapshot else [name]
            if name is None or not set(names) <= set(file.schema_arrow.names):
                return None
            rows = file.read(columns=names)
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError):  # encrypted, for one
        return None
    rows = rows.filter(pc.is_valid(rows[name])).group_by(names).aggregate([])
    if rows.num_rows > _MOST:
        return None
    try:
        texts = pc.cast(rows[name], pa.string()).to_pylist()
    except pa.ArrowException:
        return None
    snapshots = rows[SNAPSHOT_ID].to_pylist() if by_snapshot else [None] * len(texts)
    return list(zip(texts, snapshots, strict=True))


def snapshots_in(path: str) -> frozenset[int] | None:
    """Return the snapshots that the rows of a merged file, or of a delete file, are of.

    Args:
        path: The file.

    Returns:
        The ids; None where the file is elsewhere, cannot be read, or does not have them.
    """
    if "://" in path or not Path(path).is_file():
        return None
    try:
        with pq.ParquetFile(path) as file:
            if SNAPSHOT_ID not in file.schema_arrow.names:
                return None
            return frozenset(pc.unique(file.read(columns=[SNAPSHOT_ID])[SNAPSHOT_ID]).to_pylist())
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _named(schema: pa.Schema, field_id: int) -> Iterator[str]:
    """Yield the column of an id."""
    for field in schema:
        own = (field.metadata or {}).get(b"PARQUET:field_id")
        if own is not None and int(own) == field_id:
            yield field.name
