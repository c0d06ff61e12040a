"""Publish the files that a step wrote: moved to their places, and recorded as slices.

A file is in its place before its record is in the catalog: a run that is killed between the two
writes it again. Each temporary directory of a step names the process that owns it, so that the next
run can remove what a killed run has left.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from uuid import uuid4

from penstock.engine.planning.plan import PlannedStep
from penstock.engine.state.records import (
    WHOLE,
    ProcessId,
    Publication,
    SliceRecord,
    is_gone,
    this_process,
)
from penstock.lake import storage
from penstock.model.values.strategy import FILES


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """``uri`` is as the code has it, ``{partition}`` in it; ``place`` is of this slice. ``path`` is
    where the file waits."""

    uri: str
    place: str
    path: str


def move(files: Iterable[WrittenFile]) -> None:
    """Put each file in its place, whole. Raises DataPathError."""
    for file in files:
        if storage.is_remote(file.place):
            with storage.output(file.place) as out:
                out.write(Path(file.path).read_bytes())
            continue
        place = Path(file.place)
        storage.make_directory(str(place.parent))
        near = place.with_name(f".{place.name}.{uuid4().hex[:8]}")
        with storage.writing_to(file.place):
            shutil.copyfile(file.path, near)
            near.replace(place)


def fingerprint(files: Iterable[WrittenFile]) -> str:
    """Of the places and the bytes of the files."""
    whole = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.place):
        content = hashlib.sha256(Path(file.path).read_bytes()).hexdigest()
        whole.update(f"{file.place}\0{content}\0".encode())
    return whole.hexdigest()


def are_there(files: Iterable[WrittenFile]) -> bool:
    return all(storage.exists(file.place) for file in files)


def record(
    run_id: str, planned: PlannedStep, uri: str, files: tuple[WrittenFile, ...], state: str = "done"
) -> Publication:
    """The slice of an asset, which these files are."""
    return replace(
        Publication.of(planned.model, run_id, WHOLE if planned.slice is None else planned.slice),
        state=state,
        target=uri,
        strategy=FILES.name,
        rows=len(files),
        fingerprint=fingerprint(files),
        keys=None,
    )


def records(
    run_id: str, planned: PlannedStep, files: tuple[WrittenFile, ...]
) -> tuple[Publication, ...]:
    """The slices of the assets that a step wrote besides its own target."""
    uris = dict.fromkeys(file.uri for file in files if file.uri != planned.model.target.qualified)
    return tuple(
        record(run_id, planned, uri, tuple(file for file in files if file.uri == uri))
        for uri in uris
    )


def is_unchanged(known: SliceRecord | None, files: tuple[WrittenFile, ...]) -> bool:
    """Return whether the files of a slice are those that its record is of, each in its place."""
    return known is not None and known.fingerprint == fingerprint(files) and are_there(files)


_PREFIX, _OWNER = "penstock-step-", "owner.json"


@contextmanager
def scratch() -> Iterator[str]:
    """A directory for the rows and files of one step, which goes with it."""
    with TemporaryDirectory(prefix=_PREFIX) as around:
        Path(around, _OWNER).write_text(json.dumps(asdict(this_process())), encoding="utf-8")
        folder = Path(around, "step")
        folder.mkdir(mode=0o700)
        yield str(folder)


def remove_abandoned() -> tuple[Path, ...]:
    """Remove this user's directories whose process is gone for certain; returns them.

    Those of other users, and those that cannot be read or removed, are left alone.
    """
    removed: list[Path] = []
    for path in sorted(Path(gettempdir()).glob(f"{_PREFIX}*")):
        try:
            mine = path.lstat().st_uid == os.getuid() and not path.is_symlink()
            if mine and is_gone(_owner_of(path)):
                shutil.rmtree(path)
                removed.append(path)
        except (OSError, ValueError, TypeError):
            continue  # another run removes it, or it is not ours to judge
    return tuple(removed)


def _owner_of(path: Path) -> ProcessId:
    """Raises OSError, ValueError or TypeError where nothing says it."""
    return ProcessId(**json.loads((path / _OWNER).read_text(encoding="utf-8")))
