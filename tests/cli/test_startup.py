"""What needs no Spark never loads it, and answers at once."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from penstock.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark  # to make what the commands read; they themselves start none

WITHOUT_SPARK = (
    ("check",),
    ("plan",),
    ("status",),
    ("status", "clean/flights"),
    ("show", "clean/flights"),
    ("snapshots",),
)
# Arrow's functions take long to load: only what chooses or sorts rows does.
SMALL_READS = {
    ("sql", "SELECT * FROM airports WHERE faa LIKE 'J%' ORDER BY name LIMIT 3"): (),
    ("sql", "SELECT * FROM flights_raw LIMIT 3", "--format", "csv"): ("pyarrow.compute",),
    ("preview", "raw/flights", "--table", "--partition", "2013-01-01"): (),
}
NOT_NEEDED = (
    *("pyspark", "py4j", "rich", "pyarrow"),
    *("sqlalchemy.dialects.postgresql", "psycopg"),  # the lake is on SQLite
    *(
        "penstock.lake.catalog.commits.commit",
        "penstock.lake.catalog.commits.writes",
    ),  # nothing is written
)
WITHOUT_CATALOG = {("check",), ("plan",)}
SMALL_READ_BOUND = 1.0
BOUND = 0.7  # seconds for the whole process, the bar of the first issue
IMPORTS = "import click, sqlalchemy"
IMPORTED = 0.19  # seconds that these imports take on such a machine when it is not busy

PROBE = """
import sys
from penstock.cli.main import main
main({arguments!r}, standalone_mode=False)
print("\\nloaded:", *sorted(name for name in {names!r} if name in sys.modules), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def example(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with two of its steps made, so that there is a catalog with state to read."""
    directory = tmp_path_factory.mktemp("startup") / "flights"
    make = ("init", "--example", "flights", str(directory))
    load = ("run", "--project", str(directory), "--select", "raw/*", "--partition", "2013-01-01")
    assert [CliRunner().invoke(main, line).exit_code for line in (make, load)] == [0, 0]
    return directory


@pytest.mark.parametrize("arguments", WITHOUT_SPARK, ids=" ".join)
def test_loads_only_what_it_needs(arguments: tuple[str, ...], example: Path) -> None:
    names = (*NOT_NEEDED, *(("sqlalchemy",) if arguments in WITHOUT_CATALOG else ()))
    code = PROBE.format(arguments=list(arguments), names=names)
    done = run([sys.executable, "-c", code], example)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("arguments", WITHOUT_SPARK, ids=" ".join)
def test_answers_at_once(arguments: tuple[str, ...], example: Path) -> None:
    assert is_quick(arguments, example)


@pytest.mark.parametrize("arguments", SMALL_READS, ids=" ".join)
def test_small_reads_answer_at_once_without_spark(
    arguments: tuple[str, ...], example: Path
) -> None:
    names = ("pyspark", "py4j", *SMALL_READS[arguments])
    code = PROBE.format(arguments=list(arguments), names=names)
    done = run([sys.executable, "-c", code], example)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "loaded:"), done.stderr
    assert is_quick(arguments, example, SMALL_READ_BOUND)


def is_quick(arguments: tuple[str, ...], directory: Path, bound: float = BOUND) -> bool:
    """Whether it keeps to the bound, which grows with what imports take at the moment.

    Two busy threads of one core are slower than one: other tests run beside this one.
    """
    took = min(seconds(arguments, directory) for _ in range(3))
    imports = min(processor_time(IMPORTS, (), directory) for _ in range(3))
    return took < bound * max(1, imports / IMPORTED)


def seconds(arguments: tuple[str, ...], directory: Path) -> float:
    """Processor time of the whole process: what it takes on a machine that nobody else uses.

    It reads some small files and waits for nothing, so that is its time on the wall there.
    """
    return processor_time("from penstock.cli.main import main; main()", arguments, directory)


def processor_time(code: str, arguments: tuple[str, ...], directory: Path) -> float:
    before = children()
    done = run([sys.executable, "-c", code, *arguments], directory)
    assert done.returncode == 0, done.stderr
    return children() - before


def children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONWARNINGS": "error"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: pip compiles what it installs
    return subprocess.run(
        command, cwd=directory, env=environ, capture_output=True, text=True, check=False
    )
