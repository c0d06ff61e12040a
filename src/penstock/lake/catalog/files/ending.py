"""Taking rows away: data files that end whole, and delete files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, func, select

from penstock.errors import CommitConflict
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.database.paths import resolve, stored_path
from penstock.lake.catalog.database.rows import Record
from penstock.lake.catalog.work import Target, Work
from penstock.lake.delete_files import renumbered
from penstock.lake.files import DeleteFile

_THREADS = 16
_CHUNK = 5000  # ids bound in one statement; both databases take 32,000 and more


def end_files(work: Work, target: Target, file_ids: Sequence[int]) -> None:
    """End data files whole, and the delete files that were in force on them."""
    for chunk in _chunks(file_ids):
        if _end(work, t.data_file, target.id, chunk) != len(chunk):
            raise _files_gone(target.name)
        _end(work, t.delete_file, target.id, chunk)
    work.tokens.of("deleted_from_table", target.id)


def add_deletes(work: Work, target: Target, deletes: Mapping[int, DeleteFile]) -> None:
    """Register cumulative delete files; each takes the place of the one before it.

    A file that tells which snapshot deleted each row replaces the row of the one before, as in
    DuckDB: it begins with the first of them, and the old file is scheduled for deletion. A row
    that ended instead would overlap the one that DuckDB makes next, which begins with the least
    snapshot in the file. The staged file foresaw the snapshot after the transaction's; where
    others were quicker, it is corrected now, while nobody else commits.

    After a file that does not tell snapshots the row before ends, and the new one begins.
    """
    connection, snapshot_id = work.connection, work.snapshot_id
    earlier = _deletes_in_force(connection, target.id, list(deletes), target.name)
    succeeding = {key for key, file in deletes.items() if file.partial_max and key in earlier}
    replaced = [earlier[key] for key in succeeding]
    _replace_deletes(connection, replaced, work.data_path, target.path)
    for chunk in _chunks([key for key in earlier if key not in succeeding]):
        _end(work, t.delete_file, target.id, chunk)
    late = [key for key in succeeding if deletes[key].partial_max != snapshot_id]
    from concurrent.futures import ThreadPoolExecutor  # seldom needed

    with ThreadPoolExecutor(_THREADS, "penstock-renumbered") as pool:
        corrected = pool.map(lambda key: renumbered(deletes[key], snapshot_id), late)
        settled = {**deletes, **dict(zip(late, corrected, strict=True))}
    work.insert(
        t.delete_file,
        [
            delete_row(target, key, file, work.ids.file())
            | {
                "begin_snapshot": file.begin_snapshot if key in succeeding else snapshot_id,
                "partial_max": snapshot_id if key in succeeding else None,
            }
            for key, file in settled.items()
        ],
    )
    work.tokens.of("deleted_from_table", target.id)


def delete_row(target: Target, data_file_id: int, file: DeleteFile, own_id: int) -> dict[str, Any]:
    """A row of ``ducklake_delete_file`` but for its snapshots."""
    return {
        "delete_file_id": own_id,
        "table_id": target.id,
        "data_file_id": data_file_id,
        "format": file.format,
        "delete_count": file.delete_count,
        "file_size_bytes": file.size_bytes,
        "footer_size": file.footer_size,
    } | stored_path(target.path, file.path)


def _deletes_in_force(
    connection: Connection, table_id: int, file_ids: Sequence[int], name: str
) -> dict[int, Record]:
    """The delete files in force by data file. Raises CommitConflict if a data file has ended."""
    c = t.delete_file.c
    found: dict[int, Record] = {}
    for chunk in _chunks(file_ids):
        if _in_force(connection, table_id, chunk) != len(chunk):
            raise _files_gone(name)
        query = t.delete_file.select().where(
            c.data_file_id.in_(chunk), c.table_id == table_id, c.end_snapshot.is_(None)
        )
        found |= {row.data_file_id: row for row in connection.execute(query)}
    return found


def _replace_deletes(
    connection: Connection, rows: Sequence[Record], data_path: str, table_path: str
) -> None:
    """Take rows of delete files away, and schedule the files for deletion."""
    if not rows:
        return
    c = t.delete_file.c
    for chunk in _chunks([row.delete_file_id for row in rows]):
        connection.execute(t.delete_file.delete().where(c.delete_file_id.in_(chunk)))
    now = dt.datetime.now(dt.UTC)
    connection.execute(
        t.files_scheduled_for_deletion.insert(),
        [
            {"data_file_id": row.delete_file_id, "schedule_start": now}
            | stored_path(data_path, resolve(table_path, row.path, row.path_is_relative))
            for row in rows
        ],
    )


def _end(work: Work, table: Table, table_id: int, file_ids: Sequence[int]) -> int:
    return work.end(table, table.c.data_file_id.in_(file_ids), table.c.table_id == table_id)


def _in_force(connection: Connection, table_id: int, file_ids: Sequence[int]) -> int:
    c = t.data_file.c
    query = select(func.count()).where(
        c.data_file_id.in_(file_ids), c.table_id == table_id, c.end_snapshot.is_(None)
    )
    return connection.execute(query).scalar_one()


def _chunks(file_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(file_ids), _CHUNK):
        yield file_ids[start : start + _CHUNK]


def _files_gone(name: str) -> CommitConflict:
    return CommitConflict(
        f"files of table {name} that this commit replaces are not there any more",
        hint="run it again on the table as it is now",
    )
