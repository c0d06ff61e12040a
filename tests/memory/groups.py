"""Control groups with a limit of memory, as a container has one, of either version.

Making one needs root and a memory controller that this process may use.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

ROOT = Path("/sys/fs/cgroup")
# In a shell that joins first, so that nothing of the command is outside.
_JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


class NoGroups(Exception):
    """No group can be made here; the message says why."""


@dataclass(frozen=True, slots=True)
class Group:
    """``path`` is its directory; ``peak_file`` has the most that it had at once, cache included."""

    path: Path
    peak_file: str

    def run(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the group, with what it prints in one text."""
        joined = ["sh", "-c", _JOIN, str(self.path), *command]
        return subprocess.run(
            joined,
            cwd=cwd,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    @property
    def peak(self) -> int:
        """Return bytes: with the page cache, which the kernel lets grow up to the limit."""
        return int((self.path / self.peak_file).read_text())

    @property
    def anonymous(self) -> int:
        """Return the bytes of now that cannot be dropped, as those of files can."""
        stat = dict(line.split() for line in (self.path / "memory.stat").read_text().splitlines())
        return int(stat.get("total_rss", stat.get("anon", 0)))

    @property
    def kills(self) -> int:
        """Return how many processes the kernel has killed for memory."""
        for name in ("memory.events", "memory.oom_control"):
            if (self.path / name).exists():
                lines = (self.path / name).read_text().splitlines()
                return int(dict(line.split() for line in lines).get("oom_kill", 0))
        return 0


@contextmanager
def limited(limit: int) -> Iterator[Group]:
    """A group that has ``limit`` bytes, and no swap. Raises NoGroups."""
    group = _make(limit)
    try:
        yield group
    finally:
        for _ in range(100):  # processes that end leave it a moment later
            with suppress(OSError):
                group.path.rmdir()
                break
            time.sleep(0.1)


def _make(limit: int) -> Group:
    if sys.platform != "linux":
        raise NoGroups("control groups are Linux's")
    name = f"penstock-{uuid4().hex[:8]}"
    old = (ROOT / "memory").is_dir()
    path = (ROOT / "memory" if old else ROOT) / name
    try:
        path.mkdir()
    except OSError as error:
        raise NoGroups(f"{path} cannot be made: {error.strerror}") from None
    memory, swap = (
        ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        if old
        else ("memory.max", "memory.swap.max")
    )
    try:
        (path / memory).write_text(str(limit))
        if (path / swap).exists():  # the kernel counts no swap otherwise
            (path / swap).write_text(str(limit if old else 0))
    except OSError as error:
        path.rmdir()
        raise NoGroups(f"{path} cannot be limited: {error.strerror}") from None
    return Group(path, "memory.max_usage_in_bytes" if old else "memory.peak")
