"""The memory and the cores that this process may use: its container's, or the machine's.

A container is a control group of Linux, of version 1 or 2, in others that may have limits, too; the
smallest counts. Java knows these limits, Python does not.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NONE = 1 << 60  # version 1 writes no limit as the largest multiple of a page
_ROOT = Path("/")
# proc(5): ids, the root within the file system, the mount point, options - type, source, options
_MOUNT = re.compile(
    r"\S+ \S+ \S+ (?P<root>\S+) (?P<mount>\S+) .*- cgroup(?P<version>2?) \S+ (?P<options>\S+)$"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """``physical`` is all memory, ``container`` what a container may have of it, in bytes; None
    where that is unknown, and where there is no limit below all memory. ``cores`` are 1 or more.
    """

    physical: int | None
    container: int | None
    cores: int


@dataclass(frozen=True, slots=True)
class _Hierarchy:
    """A mounted tree of groups: where it is, of which group it shows the inside, its controllers;
    of version 2 it has all in one.
    """

    mount: Path
    root: str
    controllers: frozenset[str]

    @property
    def is_unified(self) -> bool:
        return not self.controllers


def this_machine(root: Path = _ROOT, cpus: int | None = None) -> Machine:
    """Return what this process may use. ``root`` has ``proc`` and the mounted groups; ``cpus`` are
    those that it may run on, by default as the system says.
    """
    groups = tuple(_groups(root))
    physical = _physical(root)
    limits = [limit for group in groups for limit in group.memory()]
    least = min(limits, default=None)
    if least is not None and physical is not None and least >= physical:
        least = None
    quotas = [quota for group in groups if (quota := group.cores()) is not None]
    return Machine(physical, least, max(1, min([cpus or _cpus(), *quotas])))


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # Linux has it alone
        return os.cpu_count() or 1


def _physical(root: Path) -> int | None:
    total = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    if total is not None:
        return int(total[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class _Group:
    """One directory of a hierarchy, which this process is in, or a group within which it is."""

    path: Path
    is_unified: bool

    def memory(self) -> Iterator[int]:
        """Yield the limits in bytes: above ``high`` the kernel slows a group down to a halt."""
        names = ("memory.max", "memory.high") if self.is_unified else ("memory.limit_in_bytes",)
        for name in names:
            limit = _number(_text(self.path / name))
            if limit is not None and 0 < limit < _NONE:
                yield limit

    def cores(self) -> int | None:
        """Return the quota of processor time in whole cores, as Java rounds it: up."""
        if self.is_unified:
            parts = _text(self.path / "cpu.max").split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            parts = [_text(self.path / name).strip() for name in names]
        quota, period = (_number(part) for part in (*parts, "", "")[:2])
        if not quota or not period or quota < 0:
            return None
        return math.ceil(quota / period)


def _groups(root: Path) -> Iterator[_Group]:
    """Yield the groups that this process is in, from the inner to the outer."""
    places = dict(_places(_text(root / "proc/self/cgroup")))
    for hierarchy in _hierarchies(root):
        names = hierarchy.controllers or {""}
        place = next((places[name] for name in sorted(names) if name in places), None)
        if place is None:
            continue
        directory = _directory(hierarchy, place)
        for path in (directory, *directory.parents):
            yield _Group(path, hierarchy.is_unified)
            if path == hierarchy.mount:
                break


def _places(text: str) -> Iterator[tuple[str, str]]:
    """Yield the path of the group for each controller; of version 2, for the name of none."""
    for line in text.splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        for name in names.split(","):
            yield name, path


def _directory(hierarchy: _Hierarchy, place: str) -> Path:
    """Return where a group is in the mounted tree. In a container that may be the tree of the
    container alone, while the path is the host's, or one that leads out of it.
    """
    inside = place
    if hierarchy.root != "/":
        if place != hierarchy.root and not place.startswith(f"{hierarchy.root}/"):
            return hierarchy.mount
        inside = place.removeprefix(hierarchy.root)
    path = hierarchy.mount / inside.lstrip("/")
    return path if ".." not in path.parts and path.is_dir() else hierarchy.mount


def _hierarchies(root: Path) -> Iterator[_Hierarchy]:
    for line in _text(root / "proc/self/mountinfo").splitlines():
        match = _MOUNT.match(line)
        if match is None:
            continue
        controllers = frozenset(match["options"].split(",")) & {"memory", "cpu"}
        if match["version"] == "2":
            controllers = frozenset()
        elif not controllers:
            continue
        mount = root / _unescaped(match["mount"]).lstrip("/")
        yield _Hierarchy(mount, _unescaped(match["root"]), controllers)


def _unescaped(text: str) -> str:
    """Return a path of mountinfo, which has spaces and others as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _number(text: str) -> int | None:
    """Return the number of a file; None where it says ``max``, or is missing."""
    try:
        return int(text)
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
