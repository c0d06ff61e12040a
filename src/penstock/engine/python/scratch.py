"""Temporary directories of steps: each names the process that owns it, so that the next run can
remove what a killed run has left."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from penstock.engine.state.records import ProcessId, is_gone, this_process

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
