"""Commit: conflict check, retries of a transaction that another writer overtook (how often, and how
long between attempts), and the outcome of a COMMIT whose answer was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from sqlalchemy import Connection, Engine, exc, select

from penstock.errors import CatalogError, CommitConflict, CommitError, CommitUnknown, LakeError
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.commit_context import CommitContext, schemas_at
from penstock.lakes.catalog.commits.retry import RetryPolicy, exhausted
from penstock.lakes.catalog.commits.writes import (
    CommitInfo,
    SnapshotTaken,
    publish,
    question,
    since_snapshot,
    start,
    write,
)
from penstock.lakes.catalog.database import engine as engines
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.faults import (
    busy,
    connection_lost,
    corrupt,
    locked,
    lost_race,
    translating,
)
from penstock.lakes.catalog.database.location import CatalogLocation
from penstock.lakes.catalog.database.round_trips import Answer, ask, is_remote
from penstock.lakes.catalog.snapshots.history import renamed_since, slice_changed
from penstock.lakes.format.changes import ChangeSet, TableChange, check_together
from penstock.lakes.format.conflicts import check, needs_schemas, parse_changes, touched
from penstock.lakes.snapshot import At, Snapshot

T = TypeVar("T")


OnCommit = Callable[[Connection, int], None]

_LOOKS = 4  # times to ask what became of a commit before it counts as unknown


class _ConnectionLost(Exception):
    """``sent`` is the snapshot that COMMIT had been sent for, or ``None`` before that."""

    def __init__(self, sent: Snapshot | None) -> None:
        self.sent = sent
        super().__init__()


class _CommitBusy(Exception):
    """A reader held the catalog until COMMIT timed out; nothing landed."""

    def __init__(self, error: LakeError) -> None:
        self.error = error
        super().__init__()


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit and what its attempts share."""

    engine: Engine
    location: CatalogLocation
    data_path: str
    base: Snapshot
    changes: ChangeSet
    info: CommitInfo
    on_commit: Sequence[OnCommit]
    retry: RetryPolicy
    inlines: bool  # where no option of the lake says so

    def run(self) -> Snapshot:
        """Commit, and return the snapshot made.

        Raises CommitConflict and RetriesExhausted when it did not land, CommitUnknown when
        nobody can tell, CatalogLocked and CatalogUnreachable when it was not tried.
        """
        if not self.changes:
            raise CommitError("there is nothing to commit", hint="stage a change first")
        check_together(self.changes)
        last: BaseException | None = None
        was_busy = False
        for attempt in range(self.retry.retries + 1):
            if attempt:
                self.retry.pause(attempt - 1)
            try:
                return self._attempt()
            except _CommitBusy as waited:
                if was_busy:  # twice for as long as a lock is waited for
                    raise waited.error from waited
                was_busy = True
            except SnapshotTaken as taken:
                last = taken
            except _ConnectionLost as lost:
                last = lost.__cause__
                if lost.sent is not None and self._landed(lost.sent):
                    return lost.sent
        raise exhausted(self.retry) from last

    def _attempt(self) -> Snapshot:
        sent: Snapshot | None = None
        with translating(self.location), self.engine.connect() as connection:
            try:
                asked = [question(self.changes)]
                if is_remote(connection):  # elsewhere it costs no more to ask when there is need
                    asked.append(since_snapshot(self.base.id))
                with engines.begin_and_ask(connection, *asked) as (transaction, answers):
                    snapshot, context = self._write(connection, *answers)
                    if self.on_commit or not is_remote(connection):
                        publish(context)
                        for write_more in self.on_commit:
                            write_more(connection, snapshot.id)
                    sent = snapshot  # from now on: COMMIT is sent together with the last writes
                    publish(context, transaction)
            except exc.DBAPIError as error:
                if lost_race(error):
                    raise SnapshotTaken from error
                if sent is not None and busy(error):
                    raise _CommitBusy(locked(self.location, error)) from error
                if error.connection_invalidated or (sent is not None and connection_lost(error)):
                    raise _ConnectionLost(sent) from error
                raise
        return snapshot

    def _write(
        self, connection: Connection, known: Answer, since: Answer | None = None
    ) -> tuple[Snapshot, CommitContext]:
        beginning = start(self.changes, known)
        if beginning is None:
            raise corrupt(self.location, "it holds no snapshot")
        if beginning.latest.id != self.base.id:
            self._check(connection, beginning.latest, since)
        return write(
            connection, self.data_path, beginning, self.changes, self.info, inlines=self.inlines
        )

    def _check(self, connection: Connection, latest: Snapshot, since: Answer | None) -> None:
        """Raise CommitConflict unless what others did since the base lets this commit follow."""
        # Writers that do not take our lock (DuckDB on PostgreSQL) may commit while this runs. Their
        # snapshot has the id that ours would get: the insert fails and the commit is retried.
        if since is None:
            [since] = ask(connection, since_snapshot(self.base.id))
        others = [
            snapshot
            for snapshot in (reads.as_snapshot(row) for row in since)
            if snapshot.id <= latest.id
        ]
        if len(others) != latest.id - self.base.id:
            raise CommitConflict(
                f"what was changed since snapshot {self.base.id} is no longer on record",
                hint="run it again on the table as it is now",
                data={"base": self.base.id, "latest": latest.id},
            )
        ids: dict[str, int] = {}
        if needs_schemas(self.changes):
            schemas = schemas_at(connection, self.data_path, self.base)
            ids = {name: entry.id for name, entry in schemas.items()}
        parsed = [parse_changes(other.id, other.changes) for other in others]
        renamed: Mapping[int, frozenset[int]] = {}
        if any(theirs.created_tables for theirs in parsed):  # which is all that a rename says
            renamed = renamed_since(connection, touched(self.changes), self.base.id)
        for other, theirs in zip(others, parsed, strict=True):
            known = replace(theirs, renamed=renamed.get(other.id, frozenset()))
            conflict = check(self.changes, known, ids)
            if conflict is not None:
                raise self._conflict(other, conflict.what)
        for change in self.changes.tables:
            if change.replaces:
                self._check_slices(connection, change, others)

    def _check_slices(
        self, connection: Connection, change: TableChange, others: Sequence[Snapshot]
    ) -> None:
        """Raise CommitConflict where rows of a slice that is replaced came or went meanwhile."""
        (table,) = reads.load_tables(connection, self.data_path, self.base.id, change.table_id)
        for other in reversed(others):  # the first that is found is the one that did it
            theirs = parse_changes(other.id, other.changes)
            if table.id not in theirs.inserted | theirs.deleted:
                continue
            for column, value in change.replaces:
                if slice_changed(connection, table, other.id - 1, (column, value)):
                    what = f"changed rows of {table.qualified_name} where {column} is {value}"
                    raise self._conflict(other, what)

    def _conflict(self, other: Snapshot, what: str) -> CommitConflict:
        by = f" by {other.author}" if other.author else ""
        said = f" ({other.message!r})" if other.message else ""
        return CommitConflict(
            f"snapshot {other.id}{by}{said}, made since snapshot {self.base.id}, {what}",
            hint="nothing was changed; run it again on the tables as they are now",
            data={
                "base": self.base.id,
                "snapshot": other.id,
                "time": other.time,
                "author": other.author,
                "message": other.message,
                "changes": other.changes,
                "what": what,
            },
        )

    def _landed(self, sent: Snapshot) -> bool:
        """Return whether a commit without an answer is in the catalog.

        Asked under the writers' lock: the lost transaction holds it until it has ended one way or
        the other, so a "no" is final. Raises CommitUnknown when nobody can be asked.
        """
        last: CatalogError | None = None
        for look in range(_LOOKS):
            try:
                with engines.writing(self.engine, self.location) as connection:
                    return self._is_ours(connection, sent)
            except CatalogError as error:
                last = error
                self.retry.pause(look)
        raise CommitUnknown(
            f"the connection was lost while snapshot {sent.id} was being committed, and "
            f"{self.location} cannot be asked whether it is there",
            hint="look for it with `penstock snapshots` before running again; no file was removed",
            data={"snapshot": sent.id, "time": sent.time},
        ) from last

    def _is_ours(self, connection: Connection, sent: Snapshot) -> bool:
        snapshot = reads.snapshot(connection, At(version=sent.id))
        # To the microsecond when it was made, what it did, and who said so; else its files tell.
        if snapshot is None or (snapshot.time, snapshot.changes) != (sent.time, sent.changes):
            return False
        if (snapshot.author, snapshot.message, snapshot.extra) != (
            sent.author,
            sent.message,
            sent.extra,
        ):
            return False
        ours = self._file_names()
        paths = connection.execute(
            select(t.data_file.c.path).where(t.data_file.c.begin_snapshot == sent.id)
        ).scalars()
        return not ours or not ours.isdisjoint(PurePosixPath(path).name for path in paths)

    def _file_names(self) -> set[str]:
        files = (file for change in self.changes.tables for file in change.add)
        return {PurePosixPath(file.path).name for file in files}
