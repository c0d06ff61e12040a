"""What needs no Spark never loads it, and answers at once."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
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
        "penstock.lakes.catalog.commits.commit",
        "penstock.lakes.catalog.commits.writes",
    ),  # nothing is written
)
WITHOUT_CATALOG = {("check",)}
# What a command does before it answers, counted: processor time says how busy the machine is, too.
# About a million calls and 600 modules are the 0.7 seconds that a start may take.
CALLS, MODULES = 1_000_000, 700
CALLS_OF_READS, MODULES_OF_READS = 1_500_000, 800

PROBE = """
import sys
calls = 0

def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")

sys.setprofile(count)
from penstock.cli.main import main
main(sys.argv[1:], standalone_mode=False)
sys.setprofile(None)
print("\\nwork:", calls, *sys.modules, file=sys.stderr)
"""


@dataclass(frozen=True)
class Work:
    """Calls of functions, Python's own included, and the modules that are loaded."""

    calls: int
    modules: frozenset[str]

    def is_quick(self, calls: int = CALLS, modules: int = MODULES) -> bool:
        return self.calls <= calls and len(self.modules) <= modules


def work(arguments: tuple[str, ...], directory: Path) -> Work:
    done = run([sys.executable, "-c", PROBE, *arguments], directory)
    assert done.returncode == 0, done.stderr
    label, calls, *modules = done.stderr.splitlines()[-1].split()
    assert label == "work:", done.stderr
    return Work(int(calls), frozenset(modules))


@pytest.fixture(scope="module")
def example(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with two of its steps made, so that there is a catalog with state to read."""
    directory = tmp_path_factory.mktemp("startup") / "flights"
    make = ("init", "--example", "flights", str(directory))
    load = ("run", "--project", str(directory), "--select", "raw/*", "--partition", "2013-01-01")
    assert [CliRunner().invoke(main, line).exit_code for line in (make, load)] == [0, 0]
    return directory


@pytest.mark.parametrize("arguments", WITHOUT_SPARK, ids=" ".join)
def test_answers_at_once_and_loads_only_what_it_needs(
    arguments: tuple[str, ...], example: Path
) -> None:
    names = {*NOT_NEEDED, *(("sqlalchemy",) if arguments in WITHOUT_CATALOG else ())}
    done = work(arguments, example)
    assert done.modules & names == set()
    assert done.is_quick(), done


@pytest.mark.parametrize("arguments", SMALL_READS, ids=" ".join)
def test_small_reads_answer_at_once_without_spark(
    arguments: tuple[str, ...], example: Path
) -> None:
    done = work(arguments, example)
    assert done.modules & {"pyspark", "py4j", *SMALL_READS[arguments]} == set()
    assert done.is_quick(CALLS_OF_READS, MODULES_OF_READS), done


def run(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONWARNINGS": "error"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: pip compiles what it installs
    return subprocess.run(
        command, cwd=directory, env=environ, capture_output=True, text=True, check=False
    )
