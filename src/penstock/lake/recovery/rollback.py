"""A table as it was at an earlier snapshot, as a new snapshot: nothing of its history goes.

What came since ends; what was in force then and is no more comes back, under the row ids that it
had: files as copies (`restored_files`), rows that the catalog itself held as they were stored. The
columns are those of then, too. The table keeps its name, comments, partitioning and sort keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from penstock.errors import (
    ArgumentError,
    CommitUnknown,
    PenstockError,
    TableNotFound,
    UnsupportedFeature,
)
from penstock.lake.catalog import reads
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.files import files as catalog_files
from penstock.lake.catalog.files import rollback_rows
from penstock.lake.format.changes import ChangeSet, InlineChange, TableChange
from penstock.lake.format.files import DataFile, FileSet, Table
from penstock.lake.format.inlined.found import BEGIN_COLUMN, ROW_ID_COLUMN
from penstock.lake.format.naming import TableRef, new_uuid7
from penstock.lake.recovery.restored_files import Gone, gone_at, restored
from penstock.lake.snapshot import LATEST, At, Moment, Snapshot
from penstock.lake.storage import remove_directory


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback did; ``snapshot`` is ``None`` when the table was as it had been."""

    to: int
    snapshot: Snapshot | None
    files_ended: int = 0
    files_restored: int = 0
    rows_ended: int = 0  # of those that the catalog itself holds
    rows_restored: int = 0
    columns_changed: bool = False


@dataclass(frozen=True, slots=True)
class _States:
    """The table then and now, with its files, and what is not in force of them."""

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
) -> RolledBack:
    """Make the table what it was at a snapshot, in one commit.

    Raises SnapshotNotFound for one that expired, TableNotFound where the table of this name was
    not there then, ArgumentError where no snapshot is named, DataFileMissing, UnsupportedFeature,
    CommitConflict.
    """
    ref = TableRef.parse(table) if isinstance(table, str) else table
    catalog.check_writable()
    base, target = catalog.latest(), catalog.snapshot(_target(version, timestamp))
    now = catalog.table(ref.schema, ref.name, base.id)
    states = _load(catalog, now, base, target)
    work = _work(states)
    if not work:
        return RolledBack(target.id, None)
    if work.altered:
        _check_layout(states)
    said = (author, message or f"{ref} as it was at snapshot {target.id}")
    extra = json.dumps({"penstock_rollback": {"table": str(ref), "to": target.id}})
    snapshot = _commit(catalog, base, states, work, (*said, extra))
    counts = (len(work.ends), len(work.back), len(work.row_ends), len(work.row_backs))
    return RolledBack(target.id, snapshot, *counts, columns_changed=work.altered)


@dataclass(frozen=True, slots=True)
class _Work:
    """Files that come back and ids of those that end; the same of inlined rows."""

    back: list[DataFile]
    ends: tuple[int, ...]
    row_ends: tuple[int, ...]
    row_backs: list[rollback_rows.Version]
    altered: bool

    def __bool__(self) -> bool:
        return bool(self.back or self.ends or self.row_ends or self.row_backs or self.altered)


def _work(states: _States) -> _Work:
    altered = states.then.schema != states.now.schema
    return _Work(*_differing(states), *_inlined(states), altered)


def _commit(
    catalog: Catalog,
    base: Snapshot,
    states: _States,
    work: _Work,
    told: tuple[str | None, str, str],
) -> Snapshot:
    """Copy what comes back and commit; ``told`` are author, message and extra."""
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
        rollback_rows.bring_back(connection, now.id, name, snapshot_id, work.row_backs)

    with _removing_on_failure(directory, BaseException):
        change = _with_files(catalog, change, work.back, states, directory)
    author, message, extra = told
    # Whatever ends the commit but an answer leaves it open whether it landed: then the files stay.
    with _removing_on_failure(directory, PenstockError):
        return catalog.commit(
            base,
            ChangeSet(tables=(change,)),
            author=author,
            message=message,
            extra=extra,
            also=(bring,) if work.row_backs else (),
        )


@contextmanager
def _removing_on_failure(directory: str, kind: type[BaseException]) -> Iterator[None]:
    """Remove the copies when they will not be needed."""
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
        found = reads.load_tables(connection, catalog.data_path, target.id, now.id)
        if not found:
            raise TableNotFound(
                f"table {now.qualified_name} was not there at snapshot {target.id}",
                hint="it was made later; one of its name that was dropped can be read with "
                "AT (VERSION => ...) and written to a new table",
                data={"table": now.qualified_name, "snapshot": target.id},
            )
        before = catalog_files.load_files(connection, found[0], target.id)
        after = catalog_files.load_files(connection, now, base.id)
    name = now.qualified_name
    return _States(
        found[0],
        now,
        before,
        after,
        gone_at(before, target.id, name),
        gone_at(after, base.id, name),
    )


def _differing(states: _States) -> tuple[list[DataFile], tuple[int, ...]]:
    """Files of then that come back, and ids of those that end: all but those that are as they were.

    A copy that an earlier rollback made is as good as the file itself.
    """
    now: dict[tuple[object, ...], DataFile] = {}
    for file in states.after.files:
        now[(file.id,)] = now[_content(file)] = file
    back: list[DataFile] = []
    kept: set[int | None] = set()
    for file in states.before.files:
        same = now.get((file.id,)) or now.get(_content(file))
        if same is not None and states.gone_then.of(file).equals(states.gone_now.of(same)):
            kept.add(same.id)
        else:
            back.append(file)
    return back, tuple(f.id or 0 for f in states.after.files if f.id not in kept)


def _content(file: DataFile) -> tuple[object, ...]:
    """The same for copies of one file, and for no others: row ids are given once."""
    if file.row_id_start is None:
        return (file.id,)
    sizes = (file.record_count, file.size_bytes, file.footer_size)
    return (file.row_id_start, *sizes, file.mapping_id)


def _inlined(states: _States) -> tuple[tuple[int, ...], list[rollback_rows.Version]]:
    """Row ids of inlined rows that end, and versions of them that come back."""
    then, now = _versions(states.before), _versions(states.after)
    return tuple(sorted(row_id for row_id, _ in now - then)), sorted(then - now)


def _versions(files: FileSet) -> set[rollback_rows.Version]:
    parts = files.inlined.parts if files.inlined is not None else ()
    return {
        version
        for part in parts
        for version in zip(
            part.rows[ROW_ID_COLUMN].to_pylist(), part.rows[BEGIN_COLUMN].to_pylist(), strict=True
        )
    }


def _check_layout(states: _States) -> None:
    """The partitioning stays, so its columns must have been there then."""
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
        stats = rollback_rows.file_stats(connection, states.now.id, ids)
    return replace(change, add=tuple(restored(back, states.gone_then, stats, directory)))
