"""How memory is shared: budgets of machines, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError, Location
from penstock.settings.config import SparkSettings
from penstock.settings.quantities import GIB, MIB
from penstock.spark.machine import Machine
from penstock.spark.memory import MemoryBudget, budget_of, is_local, require_memory


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
