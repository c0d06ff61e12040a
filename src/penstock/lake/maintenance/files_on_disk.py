"""The files below the lake's data path, and their removal; on a local disk or elsewhere."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from pyarrow import fs

from penstock.lake.storage import is_remote, open_system, remove_file

_THREADS = 16
_UUID_LENGTH = 36


@dataclass(frozen=True, slots=True)
class Found:
    """One file. ``path`` is written as the catalog's paths are; ``changed`` is aware, UTC."""

    path: str
    changed: dt.datetime


def found_below(directory: str) -> Iterator[Found]:
    """All files below ``directory``, which may be missing."""
    system, root = open_system(directory)
    root = root.rstrip("/")
    selector = fs.FileSelector(root, recursive=True, allow_not_found=True)
    for info in system.get_file_info(selector):
        if info.is_file:
            below = info.path[len(root) :].lstrip("/")
            changed = info.mtime or dt.datetime.now(dt.UTC)
            yield Found(f"{directory.rstrip('/')}/{below}", changed.astimezone(dt.UTC))


def remove(paths: Sequence[str]) -> None:
    """Remove these files, and on a local disk the directories of writes that become empty.

    What is not there is no error: an earlier removal may have been cut short.
    """
    with ThreadPoolExecutor(_THREADS, "penstock-cleanup") as pool:
        for _ in pool.map(remove_file, paths):
            pass
    for folder in sorted({Path(path).parent for path in paths if not is_remote(path)}):
        if is_write(folder.name):
            with suppress(OSError):  # not empty
                folder.rmdir()


def is_write(name: str) -> bool:
    """Whether a directory is that of one write: those are named by a UUID."""
    try:
        UUID(name)
    except ValueError:
        return False
    return len(name) == _UUID_LENGTH
