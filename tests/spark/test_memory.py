"""How memory is shared: budgets of machines, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError, Location
from penstock.settings.config import SparkSettings
from penstock.settings.quantities import GIB, MIB
from penstock.spark.memory import (
    Machine,
    MemoryBudget,
    budget_of,
    is_local,
    require_memory,
    this_machine,
)


def machine(*, container: float | None = None, physical: float = 64, cores: int = 2) -> Machine:
    """A machine by GiB."""
    limit = None if container is None else int(container * GIB)
    return Machine(int(physical * GIB), limit, cores)


def budget(settings: SparkSettings | None = None, /, **of: float) -> MemoryBudget:
    shares = budget_of(settings or SparkSettings(), machine(**of))  # type: ignore[arg-type]  # cores is whole
    assert shares is not None
    return shares


@pytest.mark.parametrize(
    ("container", "heap"), [(1.5, 616), (2, 1012), (3, 1664), (4, 2315), (8, 4922), (16, 10_135)]
)
def test_the_heap_in_a_container(container: float, heap: int) -> None:
    assert budget(container=container).heap == heap * MIB


@pytest.mark.parametrize("container", [1.5, 2, 3, 4, 6, 8, 12, 24, 48, 63])
def test_the_shares_fit_into_a_container(container: float) -> None:
    shares = budget(container=container)
    outside = shares.heap // 10 + 320 * MIB
    assert shares.heap + outside + shares.python <= 0.9 * shares.total
    assert shares.total == int(container * GIB)
    assert shares.source == "container"


@pytest.mark.parametrize(
    ("physical", "total"), [(2, 1.5), (3, 2.5), (4, 2.5), (5, 2.5), (8, 4), (24, 12), (256, 128)]
)
def test_a_machine_keeps_half(physical: float, total: float) -> None:
    shares = budget(physical=physical)
    assert shares.total == int(total * GIB)
    assert shares.source == "machine"


def test_a_heap_has_an_end() -> None:
    assert budget(physical=1024).heap == 31 * GIB


def test_a_setting_counts_before_all() -> None:
    shares = budget(SparkSettings(memory=4 * GIB), container=2)
    assert (shares.total, shares.source) == (4 * GIB, "setting")
    assert shares.heap == budget(container=4).heap


@pytest.mark.parametrize(
    ("text", "heap"), [("2g", 2 * GIB), ("768m", 768 * MIB), ("900", 900 * MIB), ("?", GIB)]
)
def test_a_heap_that_spark_is_given_stays(text: str, heap: int) -> None:
    shares = budget(SparkSettings(conf={"spark.driver.memory": text}), container=4)
    assert shares.heap == heap
    assert shares.conf() == {}
    assert shares.tasks == 2


def test_a_heap_of_the_environment_stays() -> None:
    shares = budget(SparkSettings(environ={"SPARK_DRIVER_MEMORY": "2g"}), container=4)
    assert (shares.heap, shares.conf()) == (2 * GIB, {})


@pytest.mark.parametrize("line", ["spark.driver.memory 2g", "  spark.driver.memory=2g # half"])
def test_a_heap_of_sparks_defaults_stays(tmp_path: Path, line: str) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"spark.x 1\n{line}\n")
    settings = SparkSettings(environ={"SPARK_CONF_DIR": str(tmp_path)})
    assert budget(settings, container=4).conf() == {}


def test_defaults_below_sparks_home(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text("spark.driver.memory\t3g")
    settings = SparkSettings(environ={"SPARK_HOME": str(tmp_path)})
    assert budget(settings, container=8).heap == 3 * GIB


@pytest.mark.parametrize("text", ["spark.driver.memoryOverhead 2g", "# spark.driver.memory 2g", ""])
def test_defaults_that_say_nothing_of_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "spark-defaults.conf").write_text(text)
    settings = SparkSettings(environ={"SPARK_CONF_DIR": str(tmp_path)})
    assert "spark.driver.memory" in budget(settings, container=4).conf()


def test_what_is_off_heap_is_taken_from_it() -> None:
    conf = {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"}
    plain, less = budget(container=4), budget(SparkSettings(conf=conf), container=4)
    assert plain.heap - less.heap == pytest.approx(GIB / 1.1, abs=MIB)


def test_a_size_off_the_heap_that_is_not_used() -> None:
    settings = SparkSettings(conf={"spark.memory.offHeap.size": "1g"})
    assert budget(settings, container=4) == budget(container=4)


@pytest.mark.parametrize(
    "master", ["yarn", "spark://h:1", "sc://h", "k8s://h", "local-cluster[2,1,1]"]
)
def test_elsewhere_nothing_counts(master: str) -> None:
    settings = SparkSettings(master=master)
    assert budget_of(settings, machine(container=0.5)) is None
    require_memory(settings, machine(container=0.5))


@pytest.mark.parametrize("master", [None, "local", "local[4]", "local[*]", "local[2, 3]"])
def test_this_machine(master: str | None) -> None:
    assert is_local(SparkSettings(master=master))


def test_a_machine_of_which_nothing_is_known() -> None:
    assert budget_of(SparkSettings(), Machine(None, None, 4)) is None


def test_a_container_of_a_machine_of_which_nothing_is_known() -> None:
    shares = budget_of(SparkSettings(), Machine(None, 3 * GIB, 4))
    assert shares is not None
    assert shares.total == 3 * GIB


@pytest.mark.parametrize(
    ("container", "cores", "tasks"), [(3, 2, 2), (3, 64, 6), (1.5, 8, 2), (8, 16, 16), (8, 64, 19)]
)
def test_tasks_at_once_have_memory(container: float, cores: int, tasks: int) -> None:
    assert budget(container=container, cores=cores).tasks == tasks


@pytest.mark.parametrize(
    ("container", "cores", "steps"), [(3, 2, 2), (3, 64, 6), (1.5, 8, 4), (16, 16, 16)]
)
def test_steps_at_once_have_memory(container: float, cores: int, steps: int) -> None:
    assert budget(container=container, cores=cores).steps == steps


@pytest.mark.parametrize(("container", "cores"), [(2, 2), (8, 32)])
def test_pages_of_a_small_heap_are_sparks(container: float, cores: int) -> None:
    assert "spark.buffer.pageSize" not in budget(container=container, cores=cores).conf()


def test_pages_of_a_large_heap_are_not_larger() -> None:
    assert budget(container=8).conf()["spark.buffer.pageSize"] == "16m"


@pytest.mark.parametrize("container", [0.1, 0.5, 1, 1.2])
def test_too_little_is_an_error_with_the_next_step(container: float) -> None:
    with pytest.raises(ConfigError, match="Spark and Python need") as caught:
        require_memory(SparkSettings(), machine(container=container))
    assert f"the container has {-(-int(container * GIB) // MIB):,} MiB" in str(caught.value)
    assert "give the container more" in str(caught.value)
    assert caught.value.exit_code == 2


def test_too_little_by_a_setting_is_told_at_its_place() -> None:
    place = Location("penstock.toml", 7)
    settings = SparkSettings(memory=GIB, memory_origin=place)
    with pytest.raises(ConfigError, match=r"spark\.memory is 1,024 MiB") as caught:
        require_memory(settings, machine(container=8))
    assert caught.value.location == place


def test_too_little_of_a_machine() -> None:
    with pytest.raises(ConfigError, match="a run may take 512 MiB of this machine's"):
        require_memory(SparkSettings(), machine(physical=1))


def test_what_is_said_to_be_enough_is_enough() -> None:
    settings = SparkSettings()
    with pytest.raises(ConfigError, match="need 1,408 MiB of memory"):
        require_memory(settings, machine(container=1.3))
    require_memory(settings, machine(container=1408 / 1024))


def test_a_heap_that_is_given_is_enough() -> None:
    settings = SparkSettings(conf={"spark.driver.memory": "512m"})
    require_memory(settings, machine(container=1))
    assert budget(settings, container=1).python == 384 * MIB


ONE_GIB = 1 << 30
UNIFIED = "30 25 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
MEMORY = "35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
CPU = "32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
NOT_OURS = "24 1 0:22 / /sys rw,relatime shared:2 - sysfs sysfs rw"


class Tree:
    """A root directory with ``/proc`` and groups, for a process in them."""

    def __init__(self, root: Path, physical: int = 16 * ONE_GIB) -> None:
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
    assert tree.machine() == Machine(16 * ONE_GIB, None, 8)


def test_version_2_without_a_limit(unified: Tree) -> None:
    assert unified.machine() == Machine(16 * ONE_GIB, None, 8)


def test_version_2(unified: Tree) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/memory.max", f"{3 * ONE_GIB}\n")
    assert unified.machine().container == 3 * ONE_GIB


def test_above_high_the_kernel_slows_a_group_down(unified: Tree) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/memory.max", f"{3 * ONE_GIB}\n")
    unified.write("sys/fs/cgroup/kube/pod/box/memory.high", f"{2 * ONE_GIB}\n")
    assert unified.machine().container == 2 * ONE_GIB


@pytest.mark.parametrize("group", ["kube/pod", "kube"])
def test_an_outer_group_may_have_less(unified: Tree, group: str) -> None:
    unified.write("sys/fs/cgroup/kube/pod/box/memory.max", f"{3 * ONE_GIB}\n")
    unified.write(f"sys/fs/cgroup/{group}/memory.max", f"{ONE_GIB}\n")
    assert unified.machine().container == ONE_GIB


def test_another_group_beside_does_not_count(unified: Tree) -> None:
    unified.write("sys/fs/cgroup/kube/other/memory.max", f"{ONE_GIB}\n")
    assert unified.machine().container is None


def test_a_container_sees_its_own_group_as_the_root(tree: Tree) -> None:
    tree.mounts(UNIFIED)
    tree.inside("0::/")
    tree.write("sys/fs/cgroup/memory.max", f"{3 * ONE_GIB}\n")
    assert tree.machine().container == 3 * ONE_GIB


def test_a_path_that_leads_out_of_the_tree_is_its_root(tree: Tree) -> None:
    tree.mounts(UNIFIED)
    tree.inside("0::/../../other")
    tree.write("sys/fs/cgroup/memory.max", f"{3 * ONE_GIB}\n")
    assert tree.machine().container == 3 * ONE_GIB


def test_a_container_with_the_path_of_the_host(tree: Tree) -> None:
    tree.mounts(MEMORY, root="/docker/a1")
    tree.inside("4:memory:/docker/a1")
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{3 * ONE_GIB}\n")
    assert tree.machine().container == 3 * ONE_GIB


def test_a_tree_of_a_group_has_the_groups_in_it(tree: Tree) -> None:
    tree.mounts(MEMORY, root="/docker/a1")
    tree.inside("4:memory:/docker/a1/job")
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{3 * ONE_GIB}\n")
    tree.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", f"{2 * ONE_GIB}\n")
    assert tree.machine().container == 2 * ONE_GIB


def test_a_group_that_is_not_shown_is_the_root(tree: Tree) -> None:
    tree.mounts(MEMORY)
    tree.inside("4:memory:/docker/a1")
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{3 * ONE_GIB}\n")
    assert tree.machine().container == 3 * ONE_GIB


def test_version_1_without_a_limit(first: Tree) -> None:
    assert first.machine() == Machine(16 * ONE_GIB, None, 8)


def test_version_1(first: Tree) -> None:
    first.write("sys/fs/cgroup/memory/docker/a1/memory.limit_in_bytes", f"{3 * ONE_GIB}\n")
    assert first.machine().container == 3 * ONE_GIB


def test_version_1_nested(first: Tree) -> None:
    first.write("sys/fs/cgroup/memory/docker/a1/memory.limit_in_bytes", f"{3 * ONE_GIB}\n")
    first.write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", f"{2 * ONE_GIB}\n")
    assert first.machine().container == 2 * ONE_GIB


def test_both_versions_at_once(first: Tree) -> None:
    first.mounts(MEMORY, CPU, UNIFIED.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"))
    first.write("sys/fs/cgroup/memory/docker/a1/memory.limit_in_bytes", f"{3 * ONE_GIB}\n")
    first.write("sys/fs/cgroup/unified/cgroup.controllers", "")
    assert first.machine().container == 3 * ONE_GIB


@pytest.mark.parametrize("limit", [16 * ONE_GIB, 64 * ONE_GIB])
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
    tree.write("sys/my groups/a b:c/memory.max", f"{3 * ONE_GIB}\n")
    assert tree.machine().container == 3 * ONE_GIB


def test_files_that_make_no_sense(tree: Tree) -> None:
    tree.write("proc/self/mountinfo", "no\nsuch - \nx - cgroup2\n")
    tree.inside("nothing", "", "4:memory")
    assert tree.machine() == Machine(16 * ONE_GIB, None, 8)


def test_without_files_the_system_is_asked(tmp_path: Path) -> None:
    machine = this_machine(tmp_path)
    assert machine.container is None
    assert machine.physical is None or machine.physical > ONE_GIB // 4
    assert machine.cores >= 1


def test_this_machine_is_known() -> None:
    machine = this_machine()
    assert machine.physical is not None
    assert machine.cores >= 1
