"""One budget of memory for a run: Spark's JVM, Python with Arrow, and the cache of files.

In a container the budget is its limit, beyond which the kernel kills the run; on a machine without
one it is half of the memory, as other programs need theirs. ``memory`` in ``[spark]`` overrides
both. Spark spills to disk when its heap is full, so what counts is that the shares fit together:

- the file cache keeps a tenth, which the kernel would take back anyway, at the price of reading
  files twice;
- Python has a fifth, at least `_LEAST_PYTHON`: the driver, whose own changes of rows stay below the
  lake's `Limits`, and the processes of Python steps;
- the JVM has the rest: `_OUTSIDE` and a tenth of the heap for what is outside of it (classes,
  compiled code, threads, buffers, the collector's tables), and the heap.

With a master other than this process nothing here counts: executors and servers have settings of
their own.

The memory and the cores that this process may use: its container's, or the machine's.

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

from penstock.errors import ConfigError
from penstock.settings.config import SparkSettings
from penstock.settings.quantities import GIB, MIB, bytes_of

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


DRIVER_MEMORY = "spark.driver.memory"
_OUTSIDE = 320 * MIB
_LEAST_PYTHON = 384 * MIB
_LEAST_HEAP = 512 * MIB  # Spark itself refuses less than 450 MiB
_MOST_HEAP = 31 * GIB  # above it each reference takes eight bytes, so that 40 GiB hold less
_TASK = 256 * MIB  # of the heap, for each task that runs at once
_STEP = 96 * MIB  # of Python's share, for each step that runs at once
_SMALL = 5 * GIB // 2  # a machine without limits that has little gives up to so much
_SYSTEM = 512 * MIB  # and keeps this
_PAGE = 16 * MIB


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Shares in bytes. ``source`` is where ``total`` comes from: ``container``, ``machine`` or
    ``setting``. ``fixed``: Spark's own settings say what the heap is, and nothing overrides them.
    """

    total: int
    source: str
    heap: int
    python: int
    cores: int
    fixed: bool = False

    def conf(self) -> dict[str, str]:
        """Return Spark's settings for a session in this process."""
        if self.fixed:
            return {}
        return {DRIVER_MEMORY: f"{self.heap // MIB}m", **self._pages()}

    def _pages(self) -> dict[str, str]:
        """Spark has larger pages in a larger heap, up to 64 MiB, and clears one for each hash table
        and sort of each task, however few rows there are.
        """
        own = 0.6 * (self.heap - 300 * MIB) / self.tasks / 16
        return {"spark.buffer.pageSize": f"{_PAGE // MIB}m"} if own > _PAGE else {}

    @property
    def tasks(self) -> int:
        """Number of tasks that run at once: each needs memory, or none of them ends."""
        return self.cores if self.fixed else max(1, min(self.cores, self.heap // _TASK))

    @property
    def steps(self) -> int:
        """Number of steps that run at once, where no setting says it."""
        return max(1, min(self.cores, self.python // _STEP))


def is_local(settings: SparkSettings) -> bool:
    """Return whether Spark runs in a process of this machine that the run starts, or joins."""
    return settings.master is None or re.match(r"local(\[|$)", settings.master) is not None


def budget_of(settings: SparkSettings, machine: Machine) -> MemoryBudget | None:
    """Return the shares of a run on this machine; None where Spark runs elsewhere, or nothing is
    known of the machine.
    """
    if not is_local(settings):
        return None
    given = _heap_of(settings)
    total, source = _total(settings, machine)
    if total is None:
        return None
    left = total - total // 10
    if given is not None:
        python = max(_LEAST_PYTHON, left - _jvm(given))
        return MemoryBudget(total, source, given, python, machine.cores, fixed=True)
    python = max(_LEAST_PYTHON, total // 5)
    off_heap = _off_heap(settings)
    heap = min(_MOST_HEAP, (left - python - off_heap - _OUTSIDE) * 10 // 11)
    return MemoryBudget(total, source, max(0, heap // MIB * MIB), python, machine.cores)


def require_memory(settings: SparkSettings, machine: Machine) -> None:
    """Raise ConfigError where the heap of a run would be too small for Spark."""
    budget = budget_of(settings, machine)
    if budget is not None and not budget.fixed and budget.heap < _LEAST_HEAP:
        raise _too_small(settings, budget)


def _jvm(heap: int) -> int:
    return heap + heap // 10 + _OUTSIDE


def _total(settings: SparkSettings, machine: Machine) -> tuple[int | None, str]:
    if settings.memory is not None:
        return settings.memory, "setting"
    if machine.container is not None:
        return machine.container, "container"
    if machine.physical is None:
        return None, "machine"
    return max(machine.physical // 2, min(machine.physical - _SYSTEM, _SMALL)), "machine"


def _too_small(settings: SparkSettings, budget: MemoryBudget) -> ConfigError:
    least = (_jvm(_LEAST_HEAP) + _LEAST_PYTHON + _off_heap(settings)) * 10 // 9
    whose = {
        "container": "the container has {}",
        "machine": "a run may take {} of this machine's",
        "setting": "spark.memory is {}",
    }[budget.source]
    way = {
        "container": "give the container more",
        "machine": "use a machine that has more",
        "setting": 'write more there, as in "3g", or leave it out',
    }[budget.source]
    return ConfigError(
        f"Spark and Python need {_exact(least)} of memory, and "
        f"{whose.format(_exact(budget.total))}",
        location=settings.memory_origin if budget.source == "setting" else None,
        hint=f"{way}, let Spark run elsewhere (master in [spark]), or set the size of its heap "
        f'yourself: "{DRIVER_MEMORY}" = "512m" in [spark.conf]',
    )


def _exact(size: int) -> str:
    """Return MiB, rounded up: two amounts that differ should not read the same."""
    return f"{-(-size // MIB):,} MiB"


def _heap_of(settings: SparkSettings) -> int | None:
    """Return what Spark's own settings say of the heap, wherever they are read."""
    texts = (
        settings.conf.get(DRIVER_MEMORY),
        settings.environ.get("SPARK_DRIVER_MEMORY"),
        _default(settings),
    )
    text = next((each for each in texts if each), None)
    if text is None:
        return None
    return int(text) * MIB if text.isdigit() else bytes_of(text) or GIB


def _default(settings: SparkSettings) -> str | None:
    """Return what Spark's file of defaults says, where the environment names its directory."""
    environ = settings.environ
    home = environ.get("SPARK_HOME")
    directory = environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    if directory is None:
        return None
    try:
        text = (Path(directory) / "spark-defaults.conf").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    line = re.search(rf"^\s*{re.escape(DRIVER_MEMORY)}[\s=:]+(\S+)", text, re.MULTILINE)
    return line and line[1]


def _off_heap(settings: SparkSettings) -> int:
    conf = settings.conf
    if conf.get("spark.memory.offHeap.enabled", "false").lower() != "true":
        return 0
    size = conf.get("spark.memory.offHeap.size", "0")
    return int(size) if size.isdigit() else bytes_of(size) or 0
