"""Ask the logs below a root: for tables, for new versions; and make the next one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from penstock.delta.actions import DeletionVector, Json
from penstock.delta.log import checkpoint_rows, is_made_anew, load, read_commit
from penstock.delta.log_files import Checkpoint, Listing, commit_path, list_log, put_if_absent
from penstock.delta.scan import absolute, marked
from penstock.errors import UnsupportedFeature
from penstock.lake.storage import is_remote, make_parent

Action = Mapping[str, Any]  # ``{"add": {...}}``


class MadeAnew(Exception):
    """The log is that of another table than before."""


def new_versions(
    table: str, version: int, id_: str | None = None
) -> Iterator[tuple[int, Sequence[Action]]]:
    """The versions of the table in a directory after one, -1 for all, with their actions. Where the
    first of them were cleaned up it begins with a checkpoint, which has all that was in force.

    Raises UnsupportedFeature where there is none, DataFileCorrupt, MadeAnew unless the id of the
    table in version 0 is ``id_``. In a store that is looked up only where there is another version.
    """
    listing = list_log(table.rstrip("/"))
    left = [at for at in listing.commits if at > version]
    is_looked_up = version >= 0 and (listing.latest != version or not is_remote(table))
    if is_looked_up and is_made_anew(table.rstrip("/"), listing, version, id_):
        raise MadeAnew
    if not left:
        return
    if left[0] > version + 1 and version < 0:
        start = _first(table, listing)
        version = start.version
        yield version, list(map(_action, checkpoint_rows(table.rstrip("/"), start)))
        left = [at for at in left if at > version]
    if left and left != list(range(version + 1, version + 1 + len(left))):
        raise UnsupportedFeature(
            f"the log of {table} has version {left[-1]}, and not {version + 1}, which was cleaned "
            "up before it was read",
            hint="restore the files of its log, or write the table again",
        )
    for at in left:
        yield at, read(table, at)


def _first(table: str, listing: Listing) -> Checkpoint:
    """The first checkpoint that versions follow without a gap."""
    for checkpoint in listing.checkpoints:
        if {checkpoint.version, checkpoint.version + 1} & set(listing.commits):
            return checkpoint
    raise UnsupportedFeature(
        f"the log of {table} has neither its first version nor a checkpoint",
        hint="restore the files of its log, or write the table again",
    )


def _action(row: Action) -> Action:
    """A row of a checkpoint as the action of a commit."""
    return {
        kind: {key: _plain(value) for key, value in content.items()}
        for kind, content in row.items()
        if content is not None
    }


def _plain(value: Any) -> Any:
    """A map of Parquet, which Arrow has as pairs, as a dict."""
    is_map = isinstance(value, list) and value and all(isinstance(each, tuple) for each in value)
    return dict(value) if is_map else value


def read(table: str, version: int) -> Sequence[Action]:
    """The actions of a version; none where it is not there. Raises DataFileCorrupt."""
    commit = read_commit(table.rstrip("/"), version)
    return () if commit is None else commit.actions


def only(actions: Iterable[Action], kind: str) -> list[Mapping[str, Any]]:
    """The contents of the actions of one kind."""
    return [action[kind] for action in actions if action.get(kind) is not None]


def replaced(
    table: str, version: int, gone: Collection[str], marks: Mapping[str, DeletionVector], now: int
) -> list[Json]:
    """The actions that remove files of a version, with the vectors that they have there, and that
    add those of ``marks`` again with others. ``now`` is in milliseconds since 1970.
    """
    state = load(table.rstrip("/"), version) if gone or marks else None
    files = () if state is None else state.by_key.values()
    found = {absolute(table, file.path): file for file in files}
    lines = [file.removal(now) for path, file in found.items() if path in gone or path in marks]
    for path, vector in marks.items():
        lines.append(marked(table, found[path], vector).json())
    return lines


def add_version(table: str, version: int, actions: Sequence[Action]) -> bool:
    """Make the next version, unless it is there: then nothing changes, and False is returned."""
    path = commit_path(table.rstrip("/"), version)
    make_parent(path)
    text = "".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in actions)
    return put_if_absent(path, text.encode())
