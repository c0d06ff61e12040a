"""Commit to a Delta log: one file per version, made where there is none, or a conflict.

A commit has an entry in the history, and every so many commits end with a checkpoint.

A commit is serializable: it lands on a newer version than the one that it was made from only where
nothing that others committed since would have changed it. Whether it landed is never guessed: each
carries an id of its own, and the log is asked.

Name what DESCRIBE HISTORY shows of a commit: parameters and metrics, as Delta's writers do.

The names are those of delta-spark 4.4, seen in the logs of tests/delta/fixtures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from penstock.delta.actions import Add, Json, Metadata, Protocol, lines
from penstock.delta.features import CHECKPOINT_INTERVAL, check_writable, protocol_for
from penstock.delta.log import Commit, LogState, advance, is_made_anew, key_of, load, read_commit
from penstock.delta.log_files import Listing, commit_path, list_log, put_if_absent
from penstock.delta.statistics import matching
from penstock.distribution import VERSION
from penstock.errors import (
    CommitConflict,
    CommitUnknown,
    DataPathError,
    EnvironmentMissing,
    PenstockError,
    RetriesExhausted,
)
from penstock.lakes import storage
from penstock.sql.text import Predicate

_TRIES = 200  # each that fails is a commit of somebody else
MESSAGE = "message"  # the key of the message in the user's metadata


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes that a commit would make to the version ``base``; ``None``: it makes the table.

    ``reads`` are predicates of the rows that it depends on: one without a condition is all of them.
    """

    base: LogState | None
    metadata: Metadata
    added: tuple[Add, ...] = ()
    removed: tuple[Add, ...] = ()
    reads: tuple[Predicate, ...] = ()
    operation: str = "WRITE"
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_blind(self) -> bool:
        """Return whether it appends rows whatever there are."""
        return not self.removed and not self.reads

    @property
    def changes_table(self) -> bool:
        return self.base is None or self.metadata != self.base.metadata


def commit(uri: str, table: str, proposal: Proposal) -> LogState:
    """Commit, on the newest version that there is by then, and return the new state.

    Raises CommitConflict, RetriesExhausted, DataPathError and UnsupportedFeature, where nothing
    has changed; CommitUnknown where that cannot be told.
    """
    base = proposal.base
    protocol = protocol_for(None if base is None else base.protocol, proposal.metadata)
    check_writable(protocol, proposal.metadata, table, deletes=bool(proposal.removed))
    transaction = str(uuid4())
    state = base
    for _ in range(_TRIES):
        newer = _commits_after(uri, state)
        if newer and newer[0].transaction_id == transaction:  # the store showed it late
            return _landed(uri, table, newer[0].version, state)
        state = _newest(uri, table, proposal, state, newer)
        number = 0 if state is None else state.number + 1
        content = lines(_actions(proposal, protocol, state, transaction))
        if _put(uri, table, number, content, transaction):
            return _landed(uri, table, number, state)
    raise RetriesExhausted(
        f"the commit to the Delta table {table} did not land: others were quicker {_TRIES} times",
        hint="run it again",
        data={"table": table},
    )


def _landed(uri: str, table: str, number: int, before: LogState | None) -> LogState:
    """The state of a version that was just made.

    Raises CommitUnknown where the log cannot be read: the version names its files by then.
    """
    try:
        after = load(uri, number) if before is None else advance(uri, before, number)
    except (OSError, PenstockError) as error:
        raise _unread(table, number, str(error)) from error
    if after is None or after.number != number:
        raise _unread(table, number, "the log is gone")
    return after


def _unread(table: str, number: int, cause: str) -> CommitUnknown:
    return CommitUnknown(
        f"version {number} of the Delta table {table} landed, and cannot be read: {cause}",
        hint="look at the table's history when its store answers again; no file was removed",
        data={"table": table, "version": number},
    )


def _commits_after(uri: str, state: LogState | None) -> list[Commit]:
    """The commits after a state, up to a gap."""
    commits: list[Commit] = []
    number = 0 if state is None else state.number + 1
    while (commit := read_commit(uri, number)) is not None:
        commits.append(commit)
        number += 1
    return commits


def _newest(
    uri: str, table: str, proposal: Proposal, state: LogState | None, newer: Sequence[Commit]
) -> LogState | None:
    """The state after others' commits, on which this one may land. Raises CommitConflict."""
    if state is None:
        if newer or list_log(uri).latest is not None:
            raise _conflict(table, "another commit has made it meanwhile", None)
        return None
    newest, listing = advance(uri, state, state.number + len(newer)), list_log(uri)
    latest, following = listing.latest or 0, newest.number + 1
    if _is_another_table(uri, listing, state):
        raise _conflict(table, "another engine replaced the table", listing.latest)
    if latest > newest.number and following not in listing.commits:
        why = f"its log has version {latest}, but not version {following}"
        raise _conflict(table, why, latest)
    for newer_commit in newer:
        _check(table, proposal, newer_commit)
    gone = next((file for file in proposal.removed if file.key not in newest.by_key), None)
    if gone is not None:
        why = f"version {newest.number} no longer has {gone.path}, which this commit replaces"
        raise _conflict(table, why, newest.number)
    return newest


def _is_another_table(uri: str, listing: Listing, state: LogState) -> bool:
    """Return whether the log belongs to another table than the state."""
    if not is_made_anew(uri, listing, state.number, state.metadata.id):
        return False
    if listing.latest is None or listing.latest < state.number:
        return True
    # A table that was replaced may have got its id in a version after the first.
    current = load(uri, state.number)
    return current is None or current.metadata.id != state.metadata.id


def _check(table: str, proposal: Proposal, others: Commit) -> None:
    """Raise CommitConflict where another commit excludes this one."""
    if any(others.of_kind("metaData")) or any(others.of_kind("protocol")):
        raise _conflict(table, f"version {others.version} changed what it is", others.version)
    if not others.changes_rows:
        return
    added = [Add.of(json) for json in others.of_kind("add") if json.get("dataChange", True)]
    keys = {key_of(json) for json in others.of_kind("remove") if json.get("dataChange", True)}
    base_files = {} if proposal.base is None else proposal.base.by_key
    removed = [file for key, file in base_files.items() if key in keys]
    for files, verb in ((added, "added"), (removed, "removed or changed")):
        if any(matching(files, proposal.metadata, predicate) for predicate in proposal.reads):
            why = f"version {others.version} {verb} rows that this commit depends on"
            raise _conflict(table, why, others.version)


def _conflict(table: str, why: str, version: int | None) -> CommitConflict:
    return CommitConflict(
        f"the commit to the Delta table {table} did not land: {why}",
        hint="run it again, on the table as it is now",
        data={"table": table, "version": version},
    )


def _actions(
    proposal: Proposal, protocol: Protocol, state: LogState | None, transaction: str
) -> list[Json]:
    now = time.time_ns() // 1_000_000
    actions: list[Json] = [{"commitInfo": _info(proposal, state, transaction, now)}]
    if state is None or protocol != state.protocol:
        actions.append(protocol.json())
    if state is None or proposal.changes_table:
        actions.append(proposal.metadata.json())
    actions += [file.removal(now) for file in proposal.removed]
    actions += [file.json() for file in proposal.added]
    return actions


def _info(proposal: Proposal, state: LogState | None, transaction: str, now: int) -> Json:
    return {
        "timestamp": now,
        "operation": proposal.operation,
        "operationParameters": dict(proposal.parameters),
        **({} if state is None else {"readVersion": state.number}),
        "isolationLevel": "Serializable",
        "isBlindAppend": proposal.is_blind,
        "operationMetrics": dict(proposal.metrics),
        "engineInfo": f"Penstock/{VERSION}",
        "txnId": transaction,
    }


def user_metadata(info: Mapping[str, Any]) -> dict[str, str]:
    """Metadata that a commit has for its users; a text that is not ours is its message."""
    text = info.get("userMetadata")
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return {MESSAGE: text}
    return dict(found) if isinstance(found, dict) else {MESSAGE: text}


def _put(uri: str, table: str, number: int, content: bytes, transaction: str) -> bool:
    """Make the file of the version; False where another commit has made it."""
    path = commit_path(uri, number)
    try:
        storage.make_parent(path)
        if put_if_absent(path, content):
            return True
    except (OSError, DataPathError) as error:
        there = _look(uri, table, number, error)
        if there is not None:
            return there.transaction_id == transaction
        if storage.is_remote(uri):  # a request that timed out may still arrive
            raise _unknown(table, number, error) from error
        raise
    # A store's client repeats a request that timed out: the file may be our own.
    there = _look(uri, table, number, None)
    return there is not None and there.transaction_id == transaction


def _look(uri: str, table: str, number: int, cause: Exception | None) -> Commit | None:
    try:
        return read_commit(uri, number)
    except (OSError, PenstockError) as error:
        raise _unknown(table, number, cause or error) from error


def _unknown(table: str, number: int, error: Exception) -> CommitUnknown:
    return CommitUnknown(
        f"whether version {number} of the Delta table {table} landed is not known: {error}",
        hint="look at the table's history when its store answers again",
        data={"table": table, "version": number},
    )


_USUAL = 10  # commits; as all writers of Delta have it


def require_deltalake() -> None:
    """Raise EnvironmentMissing where delta-rs is not installed."""
    if find_spec("deltalake") is None:
        raise EnvironmentMissing(
            "Delta tables need the package deltalake, which is not installed",
            hint="pip install 'penstock-spark[delta]'",
        )


def write_if_due(uri: str, version: int, metadata: Metadata) -> None:
    """Write a checkpoint of a version that was just made, each tenth or as the table says."""
    if is_due(version, metadata):
        write_checkpoint(uri, version)


def is_due(version: int, metadata: Metadata) -> bool:
    """Return whether a checkpoint is due at this version. The checkpoints of some tables are
    protected: what delta-rs cleans up after it has written one is not known for certain.
    """
    if metadata.option("delta.requireCheckpointProtectionBeforeVersion") is not None:
        return False
    text = metadata.option(CHECKPOINT_INTERVAL) or ""
    every = int(text) if text.isdigit() and int(text) > 0 else _USUAL
    return version > 0 and version % every == 0


def write_checkpoint(uri: str, version: int) -> None:
    """Write a checkpoint of a version. Readers need none, so a failure does not fail the commit."""
    if find_spec("deltalake") is None:  # a project's tables are written without it
        return
    deltalake: Any = import_module("deltalake")
    failures: Any = import_module("deltalake.exceptions").DeltaError
    try:
        options = storage_options(uri)
        deltalake.DeltaTable(uri, version=version, storage_options=options).create_checkpoint()
    except (failures, OSError):
        return


def storage_options(uri: str) -> dict[str, str] | None:
    """The settings of the store as delta-rs names them; ``None`` for a local disk."""
    if not storage.is_remote(uri):
        return None
    settings = storage.storage_of(uri) or storage.Storage()
    values = {
        "AWS_ACCESS_KEY_ID": settings.access_key,
        "AWS_SECRET_ACCESS_KEY": settings.secret_key,
        "AWS_SESSION_TOKEN": settings.session_token,
        "AWS_ENDPOINT_URL": settings.endpoint,
        "AWS_REGION": settings.region or ("us-east-1" if settings.endpoint else None),
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": str(not settings.path_style).lower(),
        "AWS_ALLOW_HTTP": "true" if (settings.endpoint or "").startswith("http:") else None,
    }
    return {name: value for name, value in values.items() if value is not None}


INSERTED, UPDATED, DELETED, WRITTEN = "inserted", "updated", "deleted", "written"  # rows
FILES, BYTES = "files", "bytes"  # that were added
# The counts that an operation reports. Another operation reports what it wrote.
_METRICS: Mapping[str, Mapping[str, str]] = {
    "MERGE": {
        INSERTED: "numTargetRowsInserted",
        UPDATED: "numTargetRowsUpdated",
        DELETED: "numTargetRowsDeleted",
        WRITTEN: "numOutputRows",
    },
    "DELETE": {DELETED: "numDeletedRows"},
    "UPDATE": {UPDATED: "numUpdatedRows"},
}
_WRITE_METRICS = {WRITTEN: "numOutputRows", FILES: "numFiles", BYTES: "numOutputBytes"}


def name_metrics(operation: str, counts: Mapping[str, int]) -> dict[str, str]:
    """Return the metrics of a commit.

    Args:
        operation: What the commit is, as ``WRITE``.
        counts: Numbers by INSERTED, UPDATED, DELETED, WRITTEN, FILES and BYTES.

    Returns:
        The counts that Delta's writers report for the operation, as texts.
    """
    names = _METRICS.get(operation, _WRITE_METRICS)
    return {name: str(counts[kind]) for kind, name in names.items() if kind in counts}


def name_parameters(
    operation: str, partition_by: Sequence[str], *, is_overwrite: bool
) -> dict[str, str]:
    """Return the parameters of a commit.

    Args:
        operation: What the commit is, as ``WRITE``.
        partition_by: The columns by which the table is partitioned.
        is_overwrite: Whether the commit removes files of the previous version.

    Returns:
        The mode of a write, and the partitions of a write or of a new table. Other operations have
        none. Penstock does not report ``predicate``, because it keeps conditions as Spark
        expressions and not as the user's text.
    """
    partitions = json.dumps(list(partition_by))
    if operation == "WRITE":
        return {"mode": "Overwrite" if is_overwrite else "Append", "partitionBy": partitions}
    return {"partitionBy": partitions} if "TABLE" in operation and "SET" not in operation else {}
