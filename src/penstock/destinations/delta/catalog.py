"""The index of a Delta root: a catalog whose commits are versions in the logs of Delta tables.

A commit is made in this order, all of it while no other writer of the index runs: rows and records
are written in a transaction of the index, the version is added to the table's log, and the
transaction ends. The version is the moment of publication: where another writer has made it first,
the transaction is undone and nothing has changed. A process that is killed in between has published
its data; the index reads that from the log, with the records that the commit carries
(`discovery`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from penstock.delta import commit
from penstock.delta.actions import Json, Metadata, Protocol
from penstock.delta.commit import BYTES, FILES, WRITTEN, name_metrics, name_parameters
from penstock.delta.features import (
    DELETION_VECTORS,
    MATERIALIZED,
    VECTORS,
    check_writable,
    protocol_for,
)
from penstock.delta.log import is_made_anew
from penstock.delta.log_files import list_log
from penstock.destinations.delta import actions, versions
from penstock.destinations.delta.marking import Settled, discard, needs_settling, settled
from penstock.destinations.delta.versions import Known
from penstock.errors import (
    CommitConflict,
    CommitUnknown,
    DataPathError,
    LakeError,
    UnsupportedFeature,
)
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.commits.commit import OnCommit
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.location import resolve
from penstock.lakes.format.changes import ChangeSet, TableChange
from penstock.lakes.format.files import DataFile, Table
from penstock.lakes.format.naming import fold
from penstock.lakes.snapshot import At, Snapshot
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMMENT = "comment"


class DeltaCatalog(Catalog):
    """A catalog whose commits are published in Delta's logs. ``root_id`` marks them as its own.

    ``vectors``: tables that are made, or lose rows, get deletion vectors from then on.
    """

    root_id: str = ""
    vectors: bool = False

    def __init__(self, *args: Any, **options: Any) -> None:
        """For `open`."""
        super().__init__(*args, **options)
        self.unreadable: dict[tuple[str, str], LakeError] = {}
        self.catch_up: Callable[[], None] | None = None  # reads what the logs have
        self.looked_at = 0.0  # by the monotonic clock
        self.is_behind = False  # another writer has made a version since the last look

    def find_table(self, schema: str, name: str, snapshot_id: int) -> Table | None:
        """As a lake's. Raises what is wrong with a table that cannot be read."""
        error = self.unreadable.get((fold(schema), fold(name)))
        if error is not None:
            raise error
        return self.find_any(schema, name, snapshot_id)

    def find_any(self, schema: str, name: str, snapshot_id: int) -> Table | None:
        """Find a table as far as it was read."""
        return super().find_table(schema, name, snapshot_id)

    def tables_at(self, connection: Connection, snapshot_id: int, schema: str, name: str) -> Table:
        """A table inside a transaction of the index."""
        found = reads.find_table(connection, self.data_path, snapshot_id, schema, name)
        assert found is not None, "it was made or changed there"
        return found

    def check_own_files(self) -> None:
        raise UnsupportedFeature(
            "files of a Delta root are not removed by Penstock: other readers may need versions "
            "that have them",
            hint="use VACUUM of an engine of Delta, which keeps those of its retention",
        )

    def commit(
        self,
        base: Snapshot,
        changes: ChangeSet,
        *,
        author: str | None = None,
        message: str | None = None,
        extra: str | None = None,
        on_commit: Sequence[OnCommit] = (),
    ) -> Snapshot:
        """As a lake's; raises UnsupportedFeature for what a log cannot have."""
        require_published(changes)
        short = without_records(extra)
        (change,) = changes.tables or (None,)
        if change is None:  # schemas and views are the index's alone
            return super().commit(
                base, changes, author=author, message=message, extra=short, on_commit=on_commit
            )
        ready = self._settled(base, change)
        version = _Version(
            self, base, ready, {"author": author, "message": message, "extra": extra}
        )
        try:
            made = super().commit(
                base,
                replace(changes, tables=(ready.change,)),
                author=author,
                message=message,
                extra=short,
                on_commit=[*on_commit, version.publish],
            )
        except BaseException as error:
            if version.may_be_there:
                self.is_behind = True
                if not isinstance(error, LakeError):
                    raise  # its files stay: the version may name them
                found = self._looked_up(version, error)
                if found is not None:
                    return found
            ready.discard()
            raise
        if ready.change is not change:
            discard(change)
        version.add_checkpoint()
        return made

    def _looked_up(self, version: _Version, error: LakeError) -> Snapshot | None:
        """The snapshot of a version that the index failed to record, read from the log; None where
        the log does not have it. Raises CommitUnknown where neither can be told.
        """
        try:
            if self.catch_up is not None:
                self.catch_up()
            with self.reading() as connection:
                found = version.snapshot_in(connection)
            if found is not None:
                return self.snapshot(At(version=found))
            if not version.is_there():
                return None
        except LakeError as again:
            raise version.unknown(error) from again
        raise version.unknown(error) from error

    def _settled(self, base: Snapshot, change: TableChange) -> Settled:
        if not needs_settling(change):
            return Settled(change)
        table = change.table or self.current_table(base, change)
        known = self._log_version(table)
        features = frozenset() if known.protocol is None else known.protocol.writer_features
        if MATERIALIZED in features and table.partition_by:
            raise UnsupportedFeature(
                f"the Delta table {table.qualified_name} has the writer feature {MATERIALIZED}, "
                "and a file that is written again may lack its partition columns",
                hint="change its rows with penstock.Delta, or replace whole partitions",
                data={"table": table.qualified_name, "feature": MATERIALIZED},
            )
        files = {file.id: file for file in self.files(table, base.id).files if file.id is not None}
        has_vectors = known.metadata is not None and known.metadata.is_on(VECTORS)
        return settled(change, files, table, by_vectors=self.vectors or has_vectors)

    def _log_version(self, table: Table) -> Known:
        with self.reading() as connection:
            return versions.known_of(connection, table.schema_name, table.name)

    def current_table(self, base: Snapshot, change: TableChange) -> Table:
        return self.table(change.schema_name, change.name, base.id)

    def publish_nothing(self, base: Snapshot, changes: ChangeSet, **info: Any) -> Snapshot:
        """Commit what the logs have already."""
        return super().commit(base, changes, **info)


def _gone(table: Table) -> DataPathError:
    return DataPathError(
        f"the log of the Delta table {table.qualified_name} is gone: {table.path}_delta_log has no "
        "version",
        hint="restore it; or delete the index of its root, beside the lake's catalog, where all "
        "that was below the root was removed",
        data={"path": table.path},
    )


def without_records(note: str | None) -> str | None:
    """A note without the records that only the log needs."""
    if note is None or '"records"' not in note:
        return note
    return json.dumps({key: each for key, each in json.loads(note).items() if key != "records"})


def require_published(changes: ChangeSet) -> None:
    """Raise UnsupportedFeature for changes that Delta's logs cannot have, or not at once."""
    others = {
        "compactions": bool(changes.compactions),
        "renamed tables": any(each.rename_to is not None for each in changes.tables),
        "rows in its catalog": any(each.inline is not None for each in changes.tables),
    }
    lacks = next((what for what, there in others.items() if there), None)
    if lacks is not None:
        raise UnsupportedFeature(
            f"a Delta root has no {lacks}", hint="use a lake for them, or an engine of Delta"
        )
    if changes.drop_schemas or any(
        each.drops is not None and each.create is None for each in changes.tables
    ):
        raise UnsupportedFeature(
            "a Delta root's tables are not dropped by Penstock",
            hint="remove the table's directory, once nobody reads it any more",
        )
    if len(changes.tables) > 1:
        names = " and ".join(f"{each.schema_name}.{each.name}" for each in changes.tables)
        raise UnsupportedFeature(
            f"one transaction cannot change {names}: each Delta table has a log of its own",
            hint="change one table in each transaction",
        )


class _Version:
    """The next version of the log of one table, made inside a commit of the index."""

    def __init__(
        self, catalog: DeltaCatalog, base: Snapshot, ready: Settled, info: Mapping[str, Any]
    ) -> None:
        self._catalog, self._base, self._info = catalog, base, info
        self._change, self._marks = ready.change, ready.marks
        self._id = new_uuid7()
        self._made: tuple[str, int] | None = None
        self._metadata: Metadata | None = None
        self.may_be_there = False  # the version is in the log, or nobody can tell

    def snapshot_in(self, connection: Connection) -> int | None:
        """The snapshot that an index has of the version, where it is this one."""
        schema, name = self._change.schema_name, self._change.name
        known = versions.known_of(connection, schema, name)
        path = f"{self._catalog.data_path}{schema}/{name}/"
        return known.snapshot_id if self._is_ours(path, known.version) else None

    def add_checkpoint(self) -> None:
        """Add a checkpoint to the log where one is due."""
        if self._made is not None and self._metadata is not None:
            path, version = self._made
            commit.write_if_due(path.rstrip("/"), version, self._metadata)

    def is_there(self) -> bool:
        """Return whether the log has the version."""
        return self._made is not None and self._is_ours(*self._made)

    def unknown(self, error: LakeError) -> CommitUnknown:
        """The error of a commit that is in the log, and not in the index."""
        table = f"{self._change.schema_name}.{self._change.name}"
        return CommitUnknown(
            f"the new version of the Delta table {table} may be in its log, and could not be "
            f"recorded: {error.message}",
            hint="run it again: what the log has is looked up first",
            data={"table": table},
        )

    def publish(self, connection: Connection, snapshot_id: int) -> None:
        """Raises CommitConflict where another writer made the version; then nothing is changed."""
        change = self._change
        table = self._catalog.tables_at(connection, snapshot_id, change.schema_name, change.name)
        known = versions.known_of(connection, table.schema_name, table.name)
        if known.version >= 0:
            self._require_same(connection, table, known.version)
        now = int(time.time() * 1000)
        metadata, protocol = self._defined(connection, known, table, snapshot_id, now)
        made = Known(known.version + 1, snapshot_id, metadata, protocol)
        names = metadata.partition_by
        lines = [
            self._info_action(known, snapshot_id, now, names),
            {"txn": {"appId": self._catalog.root_id, "version": snapshot_id, "lastUpdated": now}},
            *(protocol.json() for _ in (0,) if protocol != known.protocol),
            *(metadata.json() for _ in (0,) if metadata != known.metadata),
            *self._removed(connection, table, known, snapshot_id, now),
            *(self._added(table, each, names, now) for each in change.add),
        ]
        versions.note(connection, table.schema_name, table.name, made)
        before, self.may_be_there = self.may_be_there, True
        self._made, self._metadata = (table.path, made.version), metadata
        is_new = versions.add_version(table.path, made.version, lines)
        if not is_new and not (before and self._is_ours(table.path, made.version)):
            self.may_be_there = before
            raise self._conflict(table, f"has made version {made.version} of", made.version)

    def _require_same(self, connection: Connection, table: Table, version: int) -> None:
        """Raise DataPathError where the log is gone, CommitConflict where it is another table's.

        A version after those that are known would leave a gap in it.
        """
        listing = list_log(table.path.rstrip("/"))
        if listing.latest is None:
            raise _gone(table)
        ids = versions.first_ids(connection, (table.schema_name, table.name)).values()
        if is_made_anew(table.path.rstrip("/"), listing, version, next(iter(ids), None)):
            raise self._conflict(table, "has made anew", listing.latest)

    def _conflict(self, table: Table, deed: str, version: int) -> CommitConflict:
        self._catalog.is_behind = True
        return CommitConflict(
            f"another writer {deed} the Delta table {table.qualified_name}",
            hint="nothing was changed; run it again on the table as it is now",
            data={"table": table.qualified_name, "version": version},
        )

    def _is_ours(self, path: str, version: int) -> bool:
        """Tell whether an attempt before this one has made the version."""
        infos = versions.only(versions.read(path, version), "commitInfo")
        return any(info.get("txnId") == self._id for info in infos)

    def _info_action(
        self, known: Known, snapshot_id: int, now: int, partition_by: Sequence[str]
    ) -> Json:
        change = self._change
        is_overwrite = bool(change.end or change.deletes)
        operation = "MERGE" if is_overwrite and change.depends_on_rows else "WRITE"
        if change.create is not None:
            operation = "CREATE TABLE AS SELECT" if known.version < 0 else "REPLACE TABLE AS SELECT"
        parameters = name_parameters(operation, partition_by, is_overwrite=is_overwrite)
        counts = {
            WRITTEN: sum(file.record_count for file in change.add),
            FILES: len(change.add),
            BYTES: sum(file.size_bytes for file in change.add),
        }
        return {
            "commitInfo": {
                "timestamp": now,
                "operation": operation,
                "operationParameters": parameters,
                "operationMetrics": name_metrics(operation, counts),
                # delta-rs reads no history with a version below 0.
                **({"readVersion": known.version} if known.version >= 0 else {}),
                "isBlindAppend": change.only_adds and not change.depends_on_rows,
                "engineInfo": "Penstock",
                "txnId": self._id,
                "penstock": {"snapshot": snapshot_id, **self._info},
            }
        }

    def _defined(
        self, connection: Connection, known: Known, table: Table, snapshot_id: int, now: int
    ) -> tuple[Metadata, Protocol]:
        """Return what the table is with this version. Raises UnsupportedFeature for rules that it
        has and that the version would break.
        """
        before, change = known.metadata, self._change
        names = actions.partition_columns(table.schema, table.partition_by, table.qualified_name)
        if before is not None and change.create is None:
            self._require_layout(table, names, before)
            names = before.partition_by
        metadata = before
        if before is None or change.defines:
            kept = None if before is None or change.create is not None else before.schema_text
            metadata = replace(
                before or Metadata(table.uuid, "", created=now),
                schema_text=actions.schema_of(table.schema, table.qualified_name, kept),
                partition_by=tuple(names),
                description=comment_of(connection, table, snapshot_id),
            )
        assert metadata is not None, "one that is not made now was before"
        if self._marks or (self._catalog.vectors and change.create is not None):
            metadata = metadata.with_option(VECTORS, "true")
        protocol = protocol_for(known.protocol, metadata)
        deletes = bool(change.end or change.deletes) or change.drops is not None
        check_writable(protocol, metadata, table.qualified_name, deletes=deletes)
        return metadata, protocol

    def _require_layout(self, table: Table, names: Sequence[str], before: Metadata) -> None:
        """Raise UnsupportedFeature where the table is to be partitioned in another way."""
        if self._change.partition_by is None or tuple(names) == before.partition_by:
            return
        known = ", ".join(before.partition_by) or "nothing"
        raise UnsupportedFeature(
            f"{table.qualified_name} is partitioned by {known} in Delta, which cannot change while "
            "it has rows",
            hint="rebuild the table with --full-refresh",
        )

    def _added(self, table: Table, file: DataFile, names: Sequence[str], now: int) -> Json:
        vector = self._marks.get(file.path)
        return actions.added(table.path, file, names, table.schema, now=now, vector=vector)

    def _removed(
        self, connection: Connection, table: Table, known: Known, snapshot_id: int, now: int
    ) -> list[Json]:
        """The files that the table had and has no more, or with other deletion vectors."""
        change = self._change
        old = change.drops if change.drops is not None else change.table_id
        if old is None or known.metadata is None:
            return []
        names = known.metadata.partition_by
        c = t.data_file.c
        query = select(c.data_file_id, c.path, c.path_is_relative, c.file_size_bytes).where(
            c.table_id == old, c.end_snapshot == snapshot_id
        )
        rows = connection.execute(query.order_by(c.data_file_id)).all()
        has_vectors = known.protocol and DELETION_VECTORS in known.protocol.reader_features
        if has_vectors or self._marks:
            paths = {resolve(table.path, row.path, row.path_is_relative) for row in rows}
            new = {file.path for file in change.add}
            marks = {path: each for path, each in self._marks.items() if path not in new}
            return versions.replaced(table.path, known.version, paths, marks, now)
        values = _values(connection, [row.data_file_id for row in rows]) if names else {}
        return [
            actions.removed(
                table.path,
                resolve(table.path, row.path, row.path_is_relative),
                row.file_size_bytes,
                names,
                values.get(row.data_file_id),
                now=now,
            )
            for row in rows
        ]


def _values(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[str | None, ...]]:
    found: dict[int, list[tuple[int, str | None]]] = {}
    c = t.file_partition_value.c
    query = select(c.data_file_id, c.partition_key_index, c.partition_value)
    for start in range(0, len(ids), 500):
        chunk = ids[start : start + 500]
        for file_id, index, value in connection.execute(query.where(c.data_file_id.in_(chunk))):
            found.setdefault(file_id, []).append((index, value))
    return {file_id: tuple(value for _, value in sorted(each)) for file_id, each in found.items()}


def comment_of(connection: Connection, table: Table, snapshot_id: int) -> str | None:
    """The comment of a table at a snapshot."""
    query = select(t.tag.c.value).where(
        t.tag.c.object_id == table.id, t.tag.c.key == _COMMENT, reads.visible(t.tag, snapshot_id)
    )
    return connection.execute(query).scalar()
