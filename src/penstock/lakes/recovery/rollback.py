"""Rolling a table back to an earlier snapshot, as a new snapshot: its history stays.

Newer rows end; rows that were in force then and have ended since are restored with their row ids:
files as copies, inlined rows as they were stored. The columns are also restored. The table keeps
its name, comments, partitioning and sort keys.

Two rows of the catalog must not share a file: DuckDB's maintenance removes the file of a row that
no snapshot needs any more without checking whether another row has it (measured, 1.5.5), and both
would lose it. On a local disk a copy is a hard link, which takes no space.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyarrow import fs
from sqlalchemy import Connection

from penstock.errors import (
    ArgumentError,
    CommitUnknown,
    DataFileMissing,
    PenstockError,
    TableNotFound,
    UnsupportedFeature,
)
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.files import files as catalog_files
from penstock.lakes.catalog.files import maintenance_rows
from penstock.lakes.catalog.snapshots.history import NOTE
from penstock.lakes.format.changes import ChangeSet, InlineChange, TableChange
from penstock.lakes.format.files import (
    BEGIN_COLUMN,
    ROW_ID_COLUMN,
    ColumnStats,
    DataFile,
    DeleteFile,
    FileSet,
    Table,
)
from penstock.lakes.format.files import write as write_deletes
from penstock.lakes.format.naming import TableRef, new_uuid7
from penstock.lakes.format.schema import SNAPSHOT_ID
from penstock.lakes.reading.deleted.positions import Whose, combined, load
from penstock.lakes.reading.parquet.reading import check_size
from penstock.lakes.snapshot import LATEST, At, Moment, Snapshot
from penstock.lakes.storage import is_remote, open_system, remove_directory, size_of, writing_to
from penstock.lazy import pa, pc, pq


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The result of a rollback; ``snapshot`` is ``None`` when the table had not changed, and of
    what a dry run only counts.
    """

    to: int
    snapshot: Snapshot | None
    files_ended: int = 0
    files_restored: int = 0
    rows_ended: int = 0  # inlined rows
    rows_restored: int = 0
    columns_changed: bool = False

    @property
    def differs(self) -> bool:
        """Return whether the table was not as it was then."""
        files = self.files_ended or self.files_restored
        return bool(files or self.rows_ended or self.rows_restored or self.columns_changed)


@dataclass(frozen=True, slots=True)
class _States:
    """The table then and now, with its files, and the rows deleted from them."""

    then: Table
    now: Table
    before: FileSet
    after: FileSet
    gone_then: Gone
    gone_now: Gone


def rollback(
    catalog: Catalog,
    table: str | TableRef,
    version: int | None = None,
    timestamp: Moment | None = None,
    *,
    author: str | None = None,
    message: str | None = None,
    dry_run: bool = False,
) -> RolledBack:
    """Restore the table's state at a snapshot, in one commit; only count with ``dry_run``.

    Raises SnapshotNotFound for an expired snapshot, TableNotFound where the table did not exist
    then, ArgumentError where no snapshot is named, DataFileMissing, UnsupportedFeature,
    CommitConflict.
    """
    ref = TableRef.parse(table) if isinstance(table, str) else table
    if not dry_run:
        catalog.check_writable()
    base, target = catalog.latest(), catalog.snapshot(_target(version, timestamp))
    now = catalog.table(ref.schema, ref.name, base.id)
    states = _load(catalog, now, base, target)
    altered = states.then.schema != states.now.schema
    work = _Work(*_differing(states), *_inlined(states), altered)
    if not work:
        return RolledBack(target.id, None)
    if work.altered:
        _check_layout(states)
    snapshot = None
    if not dry_run:
        said = (author, message or f"{ref} as it was at snapshot {target.id}")
        extra = json.dumps({NOTE: {"table": str(ref), "to": target.id}})
        snapshot = _commit(catalog, base, states, work, (*said, extra))
    counts = (len(work.ends), len(work.back), len(work.row_ends), len(work.row_backs))
    return RolledBack(target.id, snapshot, *counts, columns_changed=work.altered)


@dataclass(frozen=True, slots=True)
class _Work:
    """Files to restore and ids of files to end; the same for inlined rows."""

    back: list[DataFile]
    ends: tuple[int, ...]
    row_ends: tuple[int, ...]
    row_backs: list[maintenance_rows.Version]
    altered: bool

    def __bool__(self) -> bool:
        return bool(self.back or self.ends or self.row_ends or self.row_backs or self.altered)


def _commit(
    catalog: Catalog,
    base: Snapshot,
    states: _States,
    work: _Work,
    info: tuple[str | None, str, str],
) -> Snapshot:
    """Copy the files to restore and commit with ``info``: author, message and extra."""
    now = states.now
    directory = f"{now.path}{new_uuid7()}/"
    change = TableChange(
        now.schema_name,
        now.name,
        table_id=now.id,
        schema=states.then.schema if work.altered else None,
        end=work.ends,
        inline=InlineChange(end_rows=work.row_ends) if work.row_ends else None,
        depends_on_rows=True,
    )

    def bring(connection: Connection, snapshot_id: int) -> None:
        name = now.qualified_name
        maintenance_rows.bring_back(connection, now.id, name, snapshot_id, work.row_backs)

    with _removing_on_failure(directory, BaseException):
        change = _with_files(catalog, change, work.back, states, directory)
    author, message, extra = info
    # If the commit ends without an answer, it may have landed: then the files stay.
    with _removing_on_failure(directory, PenstockError):
        return catalog.commit(
            base,
            ChangeSet(tables=(change,)),
            author=author,
            message=message,
            extra=extra,
            on_commit=(bring,) if work.row_backs else (),
        )


@contextmanager
def _removing_on_failure(directory: str, kind: type[BaseException]) -> Iterator[None]:
    """Remove the copies that are not needed."""
    try:
        yield
    except CommitUnknown:
        raise
    except kind:
        remove_directory(directory.rstrip("/"))
        raise


def _target(version: int | None, timestamp: Moment | None) -> At:
    at = At.of(version, timestamp)
    if at == LATEST:
        raise ArgumentError(
            "a rollback needs the snapshot to go back to",
            hint="give a version (3), or a timestamp ('2026-05-16 09:30')",
        )
    return at


def _load(catalog: Catalog, now: Table, base: Snapshot, target: Snapshot) -> _States:
    with catalog.reading() as connection:
        tables = reads.load_tables(connection, catalog.data_path, target.id, now.id)
        if not tables:
            raise TableNotFound(
                f"table {now.qualified_name} did not exist at snapshot {target.id}",
                hint="it was made later; one of its name that was dropped can be read with "
                "AT (VERSION => ...) and written to a new table",
                data={"table": now.qualified_name, "snapshot": target.id},
            )
        before = catalog_files.load_files(connection, tables[0], target.id)
        after = catalog_files.load_files(connection, now, base.id)
    name = now.qualified_name
    return _States(
        tables[0],
        now,
        before,
        after,
        gone_at(before, target.id, name),
        gone_at(after, base.id, name),
    )


def _differing(states: _States) -> tuple[list[DataFile], tuple[int, ...]]:
    """The old files to restore, and ids of present files to end; files of both states are neither.

    A copy that an earlier rollback made counts as the file itself.
    """
    now: dict[tuple[object, ...], DataFile] = {}
    for file in states.after.files:
        now[(file.id,)] = now[_content(file)] = file
    back: list[DataFile] = []
    same_ids: set[int | None] = set()
    for file in states.before.files:
        same = now.get((file.id,)) or now.get(_content(file))
        if same is not None and states.gone_then.of(file).equals(states.gone_now.of(same)):
            same_ids.add(same.id)
        else:
            back.append(file)
    return back, tuple(f.id or 0 for f in states.after.files if f.id not in same_ids)


def _content(file: DataFile) -> tuple[object, ...]:
    """A key that only copies of one file share: row ids are assigned only once."""
    if file.row_id_start is None:
        return (file.id,)
    sizes = (file.record_count, file.size_bytes, file.footer_size)
    return (file.row_id_start, *sizes, file.mapping_id)


def _inlined(states: _States) -> tuple[tuple[int, ...], list[maintenance_rows.Version]]:
    """Row ids of inlined rows to end, and versions of inlined rows to restore.

    A version that an earlier rollback has brought back counts as the version itself.
    """
    then, now = _versions(states.before), _versions(states.after)
    ends, back = now - then, then - now
    both = {row_id for row_id, _ in ends} & {row_id for row_id, _ in back}
    if both and states.then.schema == states.now.schema:
        old, new = _values(states.before, both), _values(states.after, both)
        same = {row_id for row_id in both if old[row_id] == new[row_id]}
        ends = {each for each in ends if each[0] not in same}
        back = {each for each in back if each[0] not in same}
    return tuple(sorted(row_id for row_id, _ in ends)), sorted(back)


def _values(files: FileSet, row_ids: Collection[int]) -> dict[int, dict[str, object]]:
    """The values of some inlined rows, by their ids."""
    parts = files.inlined.parts if files.inlined is not None else ()
    wanted = pa.array(sorted(row_ids), pa.int64())
    found: dict[int, dict[str, object]] = {}
    for part in parts:
        own = part.rows.filter(pc.is_in(part.rows[ROW_ID_COLUMN].cast(pa.int64()), wanted))
        for row in own.to_pylist():  # columns of the table are called by their field ids
            found[row[ROW_ID_COLUMN]] = {n: value for n, value in row.items() if n.isdecimal()}
    return found


def _versions(files: FileSet) -> set[maintenance_rows.Version]:
    parts = files.inlined.parts if files.inlined is not None else ()
    return {
        version
        for part in parts
        for version in zip(
            part.rows[ROW_ID_COLUMN].to_pylist(), part.rows[BEGIN_COLUMN].to_pylist(), strict=True
        )
    }


def _check_layout(states: _States) -> None:
    """Check that the columns of the partitioning, which stays, existed at the snapshot."""
    missing = [
        field.column
        for field in states.now.partition_by
        if states.then.schema.find(field.column) is None
    ]
    if missing:
        raise UnsupportedFeature(
            f"table {states.now.qualified_name} is partitioned by {missing[0]}, a column that it "
            "did not have then",
            hint="reset the partitioning first (ALTER TABLE ... RESET PARTITIONED BY)",
            data={"table": states.now.qualified_name, "column": missing[0]},
        )


def _with_files(
    catalog: Catalog,
    change: TableChange,
    back: list[DataFile],
    states: _States,
    directory: str,
) -> TableChange:
    ids = [file.id or 0 for file in back]
    with catalog.reading() as connection:
        stats = maintenance_rows.file_stats(connection, states.now.id, ids)
    return replace(change, add=tuple(restored(back, states.gone_then, stats, directory)))


_THREADS = 16


@dataclass(frozen=True, slots=True)
class Gone:
    """The positions that are not visible at a snapshot by data file id, sorted and unique."""

    positions: Mapping[int, pa.Int64Array]

    def of(self, file: DataFile) -> pa.Int64Array:
        positions = self.positions.get(file.id or 0)
        return pa.array([], pa.int64()) if positions is None else positions


def gone_at(files: FileSet, snapshot_id: int, table: str) -> Gone:
    """The rows that are deleted from the files, and newer rows of merged files."""
    parts: dict[int, list[pa.Int64Array]] = {}
    deletes = [
        replace(file, delete=delete, more_deletes=())
        for file in files.files
        for delete in file.deletes
    ]
    for deleted in load(deletes, Whose(table, snapshot_id)):
        parts.setdefault(deleted.file.id or 0, []).append(deleted.positions)
    if files.inlined_deletes is not None:
        rows = files.inlined_deletes.rows
        for key in pc.unique(rows["file_id"]).to_pylist():
            mine = rows.filter(pc.equal(rows["file_id"], key))
            parts.setdefault(key, []).append(combined(mine["position"]))
    for file in files.files:
        if file.partial is not None and file.partial.last > snapshot_id:
            parts.setdefault(file.id or 0, []).append(_later(file, snapshot_id))
    return Gone({key: _ordered(arrays) for key, arrays in parts.items()})


def _ordered(parts: Sequence[pa.Int64Array]) -> pa.Int64Array:
    every = pc.unique(pa.chunked_array(parts, pa.int64()).combine_chunks())
    return every.take(pc.sort_indices(every))


def _later(file: DataFile, snapshot_id: int) -> pa.Int64Array:
    """The positions of a merged file's rows that are newer than a snapshot."""
    system, place = open_system(file.path)
    with system.open_input_file(place) as source:
        since = pq.read_table(source, columns=[SNAPSHOT_ID])[SNAPSHOT_ID]
    later: pa.Int64Array = pc.indices_nonzero(pc.greater(since, snapshot_id)).cast(pa.int64())
    return later


def restored(
    files: Sequence[DataFile],
    gone: Gone,
    stats: Mapping[int, tuple[ColumnStats, ...]],
    directory: str,
) -> list[DataFile]:
    """Copies of these files below ``directory`` (ends in ``/``), as a commit can register them.

    Raises DataFileMissing.
    """

    def copied(file: DataFile) -> DataFile:
        # Some files need the directories ``name=value`` of their path for their values.
        folders = "".join(f"{part}/" for part in file.path.split("/")[:-1] if "=" in part)
        name = f"{directory}{folders}ducklake-{new_uuid7()}"
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
        return list(pool.map(copied, files))


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
            f"{source}, which had rows of the table then, is missing",
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
