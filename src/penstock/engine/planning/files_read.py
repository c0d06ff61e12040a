"""The files that a slice reads, as they are recorded, and whether they are still those.

They are looked at before anything reads them: one that changes meanwhile then differs from what is
recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from penstock.engine.inputs.input_files import matching
from penstock.engine.state.records import InputRead
from penstock.errors import PenstockError
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import path_of

_HASHED = 4 * 1024 * 1024  # bytes of the files of a slice, the first ones, that are hashed
MOST = 10_000  # files of one slice that are recorded


def files_of(model: Model, bindings: Bindings, root: Path) -> Iterator[InputRead]:
    """Yield the files of this machine that a slice reads, and the paths of others."""
    return _reads_of(islice(paths_of(model, bindings, root), MOST), root)


def _reads_of(paths: Iterable[Path | str], root: Path) -> Iterator[InputRead]:
    left = _HASHED
    for path in paths:
        if isinstance(path, str):
            yield InputRead("file", path)
            continue
        found = file_read(path, root)
        if found.size is not None and found.size <= left:
            left -= found.size
            found = replace(found, hash=hash_of(path))
        yield found


def files_of_slices(
    model: Model, bindings: Iterable[Bindings], root: Path
) -> tuple[InputRead, ...]:
    """Return the files of this machine that slices read, each once; the first of very many. None
    where they cannot be looked at, which is left to the run.
    """
    with suppress(PenstockError, OSError):
        paths = dict.fromkeys(path for each in bindings for path in paths_of(model, each, root))
        own = (path for path in paths if isinstance(path, Path))
        return tuple(_reads_of(islice(own, MOST), root))
    return ()


def file_read(path: Path, root: Path) -> InputRead:
    """Return a file as it is now, without its content."""
    stat = path.stat()
    return InputRead("file", name_of(path, root), size=stat.st_size, time=stat.st_mtime_ns)


def hash_of(path: Path) -> str:
    """Return the hash of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def are_same(model: Model, bindings: Bindings, root: Path, recorded: Sequence[InputRead]) -> bool:
    """Return whether the files that a slice reads are those recorded. Not known to be where one is
    of another machine, or there are more than are recorded of a slice.
    """
    before = {each.name: each for each in recorded if each.kind == "file"}
    now = list(islice(paths_of(model, bindings, root), len(before) + 1))
    if len(now) != len(before) or len(before) >= MOST:
        return False
    return all(
        not isinstance(path, str)
        and (known := before.get(name_of(path, root))) is not None
        and _is_same(path, known)
        for path in now
    )


def is_as_it_was(now: InputRead, before: InputRead) -> bool:
    """Return whether two looks at a file saw the same: by size, and time or content."""
    if now.size != before.size:
        return False
    return now.time == before.time or (now.hash is not None and now.hash == before.hash)


def _is_same(path: Path, recorded: InputRead) -> bool:
    """By size and time; where only the time is another, by the content."""
    stat = path.stat()
    if stat.st_size != recorded.size:
        return False
    if stat.st_mtime_ns == recorded.time:
        return True
    return recorded.hash is not None and hash_of(path) == recorded.hash


def paths_of(model: Model, bindings: Bindings, root: Path) -> Iterator[Path | str]:
    """Yield files of this machine, those of directories too, and URIs as they are."""
    for source in model.query.files:
        paths = path_of(source, bindings, model.query.arguments)
        for text in paths if isinstance(paths, list) else [paths]:
            if "://" in str(text):
                yield str(text)
                continue
            yield from files_named(str(text), root)


def files_named(text: str, root: Path) -> Iterator[Path]:
    """Yield the files of this machine that a path or pattern names, those in directories too."""
    for match in map(Path, matching(text, root)):
        inside = sorted(match.rglob("*")) if match.is_dir() else [match]
        yield from (path for path in inside if path.is_file() and path.name[0] not in "._")


def name_of(path: Path, root: Path) -> str:
    """Return the name of a file as it is recorded: from the project's directory, if it is there."""
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
