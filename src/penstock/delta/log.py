"""The state of a Delta table at a version: its log replayed, from a checkpoint on where it has one.

"Delta Log Entries", "Checkpoints" and "Action Reconciliation" of Delta's protocol.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.delta.actions import NO_COLUMNS, Add, DeletionVector, Json, Key, Metadata, Protocol
from penstock.delta.log_files import Checkpoint, Listing, commit_path, list_log, log_directory
from penstock.errors import DataFileCorrupt, SnapshotNotFound
from penstock.lakes import storage
from penstock.lazy import pa, pq

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class LogState:
    """A version: its files by key, and what the table is."""

    number: int
    metadata: Metadata
    protocol: Protocol
    by_key: Mapping[Key, Add]


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the log. ``info`` is its commitInfo, ``time`` aware, in UTC."""

    version: int
    time: dt.datetime
    info: Mapping[str, Any]
    actions: tuple[Json, ...]

    def of_kind(self, kind: str) -> Iterator[Json]:
        """Its actions of one kind: ``add``, ``remove``, ``metaData``, ..."""
        return (action[kind] for action in self.actions if action.get(kind) is not None)

    @property
    def operation(self) -> str | None:
        return self.info.get("operation")

    @property
    def transaction_id(self) -> str | None:
        """Return the unique id that the writer gave it, if any."""
        return self.info.get("txnId")

    @property
    def changes_rows(self) -> bool:
        """Return whether it added or removed rows, rather than only other files or settings."""
        files = (file for kind in ("add", "remove") for file in self.of_kind(kind))
        return any(file.get("dataChange", True) for file in files)


def load(uri: str, version: int | None = None) -> LogState | None:
    """The state at a version, the newest by default; ``None`` where the table does not exist.

    Raises SnapshotNotFound for a version that the log does not reach, or no longer has.
    """
    listing = list_log(uri)
    if listing.latest is None:
        return None
    number = listing.latest if version is None else version
    start, commits = _way(uri, listing, number)
    content = _Content()
    if start is not None:
        with well_formed(f"the checkpoint of version {start.version} of {uri}"):
            for part in _parts(uri, start):
                content.take_part(part)
    for commit in commits:
        with well_formed(commit_path(uri, commit)):
            content.commit(_actions(uri, commit))
    return content.state(number, uri)


@contextmanager
def well_formed(place: str) -> Iterator[None]:
    """Raise DataFileCorrupt for actions that lack a field, or have one of another type."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        kind = type(error).__name__
        raise DataFileCorrupt(
            f"{place} cannot be read: an action breaks Delta's protocol ({kind}: {error})",
            hint="restore the file, or read the table with the engine that made it",
            data={"path": place},
        ) from error


def advance(uri: str, state: LogState, until: int | None = None) -> LogState:
    """The newest state, or that of a version, from an older one of the same table."""
    number = state.number
    content = _Content.of(state)
    while number != until and (actions := _actions_if_any(uri, number + 1)) is not None:
        number += 1
        with well_formed(commit_path(uri, number)):
            content.commit(actions)
    return state if number == state.number else content.state(number, uri)


def read_commit(uri: str, version: int) -> Commit | None:
    """One commit; ``None`` where the log has no file of it."""
    actions = _actions_if_any(uri, version)
    if actions is None:
        return None
    info: Json = next((a["commitInfo"] for a in actions if a.get("commitInfo")), {})
    return Commit(version, _time(uri, version, info), info, tuple(actions))


def is_made_anew(uri: str, listing: Listing, version: int, id_: str | None) -> bool:
    """Return whether a table is another than the one that had a version.

    Another engine may have removed its directory and made a table of the same name.

    Args:
        uri: The directory of the table.
        listing: The files of its log.
        version: A version that the table had.
        id_: The id of the table in its version 0; None where that version was not read.

    Returns:
        Whether the log ends before the version, or begins with another table.
    """
    if listing.latest is None or listing.latest < version:
        return True
    first = storage.read_bytes(commit_path(uri, 0)) if 0 in listing.commits else b""
    lines = b"\n".join(line for line in first.splitlines() if b'"metaData"' in line)
    actions = _parsed(lines, commit_path(uri, 0))
    return any(action["metaData"]["id"] != id_ for action in actions if action.get("metaData"))


def commits_of(uri: str) -> list[Commit]:
    """The commits of which the log still has files, oldest first."""
    found = (read_commit(uri, number) for number in list_log(uri).commits)
    return [commit for commit in found if commit is not None]


def version_at(uri: str, moment: dt.datetime) -> int:
    """The version in force at a time. Raises SnapshotNotFound for one before the first."""
    best = None
    for commit in commits_of(uri):
        if commit.time <= moment:
            best = commit.version
    if best is None:
        raise SnapshotNotFound(
            f"{uri} has no version of {moment.isoformat(sep=' ')} or before",
            hint="read a later one: history() has the versions with their times",
        )
    return best


def _time(uri: str, version: int, info: Mapping[str, Any]) -> dt.datetime:
    """The time of a commit: what it says itself where it must, else when its file was written."""
    stated = info.get("inCommitTimestamp")
    if stated is not None:
        return _EPOCH + dt.timedelta(milliseconds=stated)
    system, path = storage.open_system(commit_path(uri, version))
    written: dt.datetime | None = system.get_file_info(path).mtime
    return _EPOCH if written is None else written.astimezone(dt.UTC)


def _way(uri: str, listing: Listing, number: int) -> tuple[Checkpoint | None, range]:
    """The checkpoint to begin with, and the commits after it, up to ``number``."""
    there = set(listing.commits)
    points = [point for point in listing.checkpoints if point.version <= number]
    start = max(points, key=lambda point: point.version, default=None)
    commits = range(0 if start is None else start.version + 1, number + 1)
    lacking = next((version for version in commits if version not in there), None)
    if number < 0 or lacking is not None:
        raise SnapshotNotFound(
            f"{uri} has no version {number}: its log {_shown(listing, number, lacking)}",
            hint="read another version; the first ones go when a log is cleaned up",
            data={"version": number},
        )
    return start, commits


def _shown(listing: Listing, number: int, lacking: int | None) -> str:
    starts = [*listing.commits[:1], *(point.version for point in listing.checkpoints)]
    oldest, newest = min(starts), listing.latest or 0
    if lacking is not None and oldest < number <= newest and lacking > oldest:
        return f"lacks the file of version {lacking}, which it is made from"
    return f"has versions {oldest} to {newest}"


def _actions(uri: str, version: int) -> list[Json]:
    actions = _actions_if_any(uri, version)
    if actions is None:
        raise SnapshotNotFound(f"{commit_path(uri, version)} does not exist", hint="read it again")
    return actions


def _actions_if_any(uri: str, version: int) -> list[Json] | None:
    path = commit_path(uri, version)
    try:
        return _parsed(storage.read_bytes(path), path)
    except FileNotFoundError:
        return None


def _parsed(content: bytes, path: str) -> list[Json]:
    try:
        actions = [json.loads(line) for line in content.splitlines() if line.strip()]
        if not all(isinstance(action, dict) for action in actions):
            raise ValueError("a line is not an object")
    except ValueError as error:
        raise DataFileCorrupt(
            f"{path} cannot be read: {error}",
            hint="restore the file: versions from there on are lost without it",
            data={"path": path},
        ) from error
    return actions


_SIDECARS = "_sidecars"
_COLUMNS = ("metaData", "protocol", "txn", "sidecar")
_OF_FILES = (
    *("path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector"),
)
_ADD_COLUMNS = [f"add.{name}" for name in (*_OF_FILES, "dataChange")]


def checkpoint_rows(uri: str, checkpoint: Checkpoint) -> Iterator[Json]:
    """The rows of a checkpoint, each an action; maps are pairs, as Arrow has them."""
    for part in _parts(uri, checkpoint):
        rows = part if isinstance(part, list) else part.to_pylist()
        yield from (row for row in rows if row.get("sidecar") is None)


def _parts(uri: str, checkpoint: Checkpoint) -> Iterator[pa.Table | list[Json]]:
    """The files of a checkpoint, and those that these name."""
    directory = log_directory(uri)
    for name in checkpoint.names:
        path = f"{directory}/{name}"
        part = _parsed(storage.read_bytes(path), path) if name.endswith(".json") else _table(path)
        yield part
        for sidecar in _of_kind(part, "sidecar"):
            place = sidecar["path"]
            yield _table(place if "/" in place else f"{directory}/{_SIDECARS}/{place}")


def _table(path: str) -> pa.Table:
    system, place = storage.open_system(path)
    with system.open_input_file(place) as source, pq.ParquetFile(source) as file:
        return file.read(columns=[*_COLUMNS, *_ADD_COLUMNS])


def _of_kind(part: pa.Table | list[Json], kind: str) -> list[Json]:
    """The actions of one kind."""
    if isinstance(part, list):
        return [action[kind] for action in part if action.get(kind) is not None]
    return list(part[kind].drop_null().to_pylist()) if kind in part.column_names else []


def _files(part: pa.Table) -> Iterator[Add]:
    """The files of a checkpoint, column by column: a dict for each row would take twice as long."""
    if "add" not in part.column_names:
        return
    for rows in part["add"].drop_null().chunks:
        held = {field.name: values for field, values in zip(rows.type, rows.flatten(), strict=True)}
        columns = (
            held[name].to_pylist() if name in held else [None] * len(rows) for name in _OF_FILES
        )
        for path, values, size, modified, stats, tags, vector in zip(*columns, strict=True):
            yield Add(
                path,
                tuple((name, value or None) for name, value in values or ()),
                size,
                modified,
                stats,
                None if vector is None else DeletionVector.of(vector),
                () if tags is None else (("tags", tags),),
            )


class _Content:
    """Content of a version while its log is replayed."""

    def __init__(self) -> None:
        self.files: dict[Key, Add] = {}
        self.metadata: Metadata | None = None
        self.protocol: Protocol | None = None

    @classmethod
    def of(cls, state: LogState) -> _Content:
        content = cls()
        content.files = dict(state.by_key)
        content.metadata, content.protocol = state.metadata, state.protocol
        return content

    def commit(self, actions: Iterable[Json]) -> None:
        kept = list(actions)
        for action in kept:
            removed = action.get("remove")
            if removed is not None:
                self.files.pop(key_of(removed), None)
        for action in kept:
            self.take(action)

    def take_part(self, part: pa.Table | list[Json]) -> None:
        """Take the actions of a file of a checkpoint.

        Args:
            part: The rows of the file.
        """
        if isinstance(part, list):
            for action in part:
                self.take(action)
            return
        self.files.update((file.key, file) for file in _files(part))
        for kind in ("metaData", "protocol"):
            for content in _of_kind(part, kind):
                self.take({kind: content})

    def take(self, action: Json) -> None:
        if action.get("add") is not None:
            file = Add.of(action["add"])
            self.files[file.key] = file
        elif action.get("metaData") is not None:
            self.metadata = Metadata.of(action["metaData"])
        elif action.get("protocol") is not None:
            self.protocol = Protocol.of(action["protocol"])

    def state(self, number: int, uri: str) -> LogState:
        if self.metadata is None or self.protocol is None:
            raise DataFileCorrupt(
                f"the log of {uri} says nowhere what the table is",
                hint="restore the first files of its log",
                data={"path": uri},
            )
        if self.files and self.metadata.schema_text == NO_COLUMNS:
            raise DataFileCorrupt(
                f"version {number} of {uri} has data files, and its metadata has no columns",
                hint="read another version, or write the metadata again with the engine that "
                "made the table",
                data={"path": uri, "version": number},
            )
        return LogState(number, self.metadata, self.protocol, self.files)


def key_of(action: Mapping[str, Any]) -> Key:
    """The key of an action's file."""
    vector = DeletionVector.of(action.get("deletionVector"))
    return action["path"], None if vector is None else vector.unique_id
