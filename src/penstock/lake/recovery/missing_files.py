"""Check that files exist, many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyarrow import fs

from penstock.lake.storage import is_remote, list_files, open_system

_THREADS = 16
_BATCH = 500
_REMOTE_BATCH = 8  # an object store is asked for one file at a time: more threads, then
_LISTED = 200  # files; to list a directory of more is cheaper, 1,000 names a request


@dataclass(frozen=True, slots=True)
class FileCheck:
    """How many files were looked for, and the paths of those that are not there, sorted."""

    files: int
    missing: tuple[str, ...] = ()


def look_for(paths: Iterable[str]) -> FileCheck:
    """Ask the file systems for each of these absolute paths or URIs."""
    listed = sorted(paths)
    if not listed:
        return FileCheck(0)
    with ThreadPoolExecutor(_THREADS, "penstock-files") as pool:
        missing = [path for found in pool.map(_missing, _batches(listed)) for path in found]
    return FileCheck(len(listed), tuple(missing))


def missing_below(
    directory: str, paths: Iterable[str], *, listed_above: int = _LISTED
) -> tuple[str, ...]:
    """Which of these paths, most of which are below ``directory``, are not there.

    In an object store the directory is listed where there are more than ``listed_above``.
    """
    wanted = set(paths)
    if is_remote(directory) and len(wanted) > listed_above:
        wanted -= set(list_files(directory))
    return look_for(wanted).missing


def _missing(paths: list[str]) -> list[str]:
    system, _ = open_system(paths[0])
    places = [path.partition("://")[2] if "://" in path else path for path in paths]
    infos = system.get_file_info(places)
    return [path for path, info in zip(paths, infos, strict=True) if info.type != fs.FileType.File]


def _batches(paths: list[str]) -> Iterator[list[str]]:
    """Sorted paths of one file system follow each other."""
    size = _REMOTE_BATCH if is_remote(paths[-1]) else _BATCH
    for start in range(0, len(paths), size):
        part = paths[start : start + size]
        while part:
            root = _root(part[0])
            same = [path for path in part if _root(path) == root]
            yield same
            part = [path for path in part if _root(path) != root]


def _root(path: str) -> str:
    scheme, mark, rest = path.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if mark else ""
