"""The limits of groups as trees of files: what this process may use of its machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.machine import Machine, this_machine

GIB = 1 << 30
UNIFIED = "30 25 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
MEMORY = "35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
CPU = "32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
NOT_OURS = "24 1 0:22 / /sys rw,relatime shared:2 - sysfs sysfs rw"


class Tree:
    """A root directory with ``/proc`` and groups, for a process in them."""

    def __init__(self, root: Path, physical: int = 16 * GIB) -> None:
        self.root = root
        self.write("proc/meminfo", f"MemTotal:  {physical // 1024} kB\nMemFree: 1 kB\n")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def mounts(self, *lines: str, root: str = "/") -> None:
        texts = [line.format(root=root) for line in (NOT_OURS, *lines)]
        self.write("proc/self/mountinfo", "\n".join(texts))

    def inside(self, *lines: str) -> None:
        self.write("proc/self/cgroup", "\n".join(lines) + "\n")

    def machine(self, cpus: int = 8) -> Machine:
        return this_machine(self.root, cpus)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def unified(tree: Tree) -> Tree:
    """Of version 2, with the process in ``/kube/pod/box``."""
    tree.mounts(UNIFIED)
    tree.inside("0::/kube/pod/box")
    tree.write("sys/fs/cgroup/kube/pod/box/memory.max", "max\n")
    return tree


@pytest.fixture
def first(tree: Tree) -> Tree:
    """Of version 1, with the process in ``/docker/a1``."""
    tree.mounts(MEMORY, CPU)
    tree.inside("4:memory:/docker/a1", "2:cpu,cpuacct:/docker/a1", "1:name=systemd:/", "0::/")
    tree.write("sys/fs/cgroup/memory/docker/a1/memory.limit_in_bytes", "9223372036854771712\n")
    (tree.root / "sys/fs/cgroup/cpu,cpuacct/docker/a1").mkdir(parents=True)
    return tree


def test_no_groups_at_all(tree: Tree) -> None:
    assert tree.machine() == Machine(16 * GIB, None, 8)


def test_version_2_without_a_limit(unified: Tree) -> None:
    assert unified.machine() == Machine(16 * GIB, None, 8)


def test_version_2(unified: Tree) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/memory.max", f"{3 * GIB}\n")
    assert unified.machine().container == 3 * GIB


def test_above_high_the_kernel_slows_a_group_down(unified: Tree) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/memory.max", f"{3 * GIB}\n")
    unified.write("sys/fs/cgroup/kube/pod/box/memory.high", f"{2 * GIB}\n")
    assert unified.machine().container == 2 * GIB


@pytest.mark.parametrize("group", ["kube/pod", "kube"])
def test_an_outer_group_may_have_less(unified: Tree, group: str) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/memory.max", f"{3 * GIB}\n")
    unified.write(f"sys/fs/cgroup/{group}/memory.max", f"{GIB}\n")
    assert unified.machine().container == GIB


def test_another_group_beside_does_not_count(unified: Tree) -> None:
    unified.write("sys/fs/cgroup/kube/other/memory.max", f"{GIB}\n")
    assert unified.machine().container is None


def test_a_container_sees_its_own_group_as_the_root(tree: Tree) -> None:
    tree.mounts(UNIFIED)
    tree.inside("0::/")
    tree.write("sys/fs/cgroup/memory.max", f"{3 * GIB}\n")
    assert tree.machine().container == 3 * GIB


def test_a_path_that_leads_out_of_the_tree_is_its_root(tree: Tree) -> None:
    tree.mounts(UNIFIED)
    tree.inside("0::/../../other")
    tree.write("sys/fs/cgroup/memory.max", f"{3 * GIB}\n")
    assert tree.machine().container == 3 * GIB


def test_a_container_with_the_path_of_the_host(tree: Tree) -> None:
    tree.mounts(MEMORY, root="/docker/a1")
    tree.inside("4:memory:/docker/a1")
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{3 * GIB}\n")
    assert tree.machine().container == 3 * GIB


def test_a_tree_of_a_group_has_the_groups_in_it(tree: Tree) -> None:
    tree.mounts(MEMORY, root="/docker/a1")
    tree.inside("4:memory:/docker/a1/job")
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{3 * GIB}\n")
    tree.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", f"{2 * GIB}\n")
    assert tree.machine().container == 2 * GIB


def test_a_group_that_is_not_shown_is_the_root(tree: Tree) -> None:
    tree.mounts(MEMORY)
    tree.inside("4:memory:/docker/a1")
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{3 * GIB}\n")
    assert tree.machine().container == 3 * GIB


def test_version_1_without_a_limit(first: Tree) -> None:
    assert first.machine() == Machine(16 * GIB, None, 8)


def test_version_1(first: Tree) -> None:
    first.write("sys/fs/cgroup/memory/docker/a1/memory.limit_in_bytes", f"{3 * GIB}\n")
    assert first.machine().container == 3 * GIB


def test_version_1_nested(first: Tree) -> None:
    first.write("sys/fs/cgroup/memory/docker/a1/memory.limit_in_bytes", f"{3 * GIB}\n")
    first.write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", f"{2 * GIB}\n")
    assert first.machine().container == 2 * GIB


def test_both_versions_at_once(first: Tree) -> None:
    first.mounts(MEMORY, CPU, UNIFIED.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"))
    first.write("sys/fs/cgroup/memory/docker/a1/memory.limit_in_bytes", f"{3 * GIB}\n")
    first.write("sys/fs/cgroup/unified/cgroup.controllers", "")
    assert first.machine().container == 3 * GIB


@pytest.mark.parametrize("limit", [16 * GIB, 64 * GIB])
def test_a_limit_of_all_memory_is_none(unified: Tree, limit: int) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/memory.max", f"{limit}\n")
    assert unified.machine().container is None


@pytest.mark.parametrize("text", ["", "0", "-1", "much", "max"])
def test_a_limit_that_is_none(unified: Tree, text: str) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/memory.max", text)
    assert unified.machine().container is None


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("10000 100000", 1),
        ("max 100000", 8),
        ("9900000 100000", 8),
        ("100000", 8),
        ("", 8),
        ("100000 0", 8),
    ],
)
def test_a_quota_of_version_2_is_rounded_up(unified: Tree, text: str, cores: int) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/cpu.max", text)
    assert unified.machine().cores == cores


@pytest.mark.parametrize(("quota", "cores"), [("300000", 3), ("250000", 3), ("-1", 8), ("", 8)])
def test_a_quota_of_version_1(first: Tree, quota: str, cores: int) -> None:
    group = "sys/fs/cgroup/cpu,cpuacct/docker/a1"
    first.write(f"{group}/cpu.cfs_quota_us", quota)
    first.write(f"{group}/cpu.cfs_period_us", "100000")
    assert first.machine().cores == cores


def test_a_quota_of_an_outer_group(unified: Tree) -> None:
    unified.write("sys/fs/cgroup/kube/cpu.max", "100000 100000")
    assert unified.machine().cores == 1


def test_directories_with_spaces(tree: Tree) -> None:
    tree.mounts(UNIFIED.replace("/sys/fs/cgroup", "/sys/my\\040groups"))
    tree.inside("0::/a b:c")
    tree.write("sys/my groups/a b:c/memory.max", f"{3 * GIB}\n")
    assert tree.machine().container == 3 * GIB


def test_files_that_make_no_sense(tree: Tree) -> None:
    tree.write("proc/self/mountinfo", "no\nsuch - \nx - cgroup2\n")
    tree.inside("nothing", "", "4:memory")
    assert tree.machine() == Machine(16 * GIB, None, 8)


def test_without_files_the_system_is_asked(tmp_path: Path) -> None:
    machine = this_machine(tmp_path)
    assert machine.container is None
    assert machine.physical is None or machine.physical > GIB // 4
    assert machine.cores >= 1


def test_this_machine_is_known() -> None:
    machine = this_machine()
    assert machine.physical is not None
    assert machine.cores >= 1
