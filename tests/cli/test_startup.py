"""What needs no Spark never loads it, and answers at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main

WITHOUT_SPARK = (
    ("check",),
    ("status",),
    ("status", "clean/flights"),
    ("show", "clean/flights"),
    ("snapshots",),
)
BOUND = 0.7  # seconds for the whole process, the bar of the first issue

PROBE = """
import sys
from penstock.cli.main import main
main({arguments!r}, standalone_mode=False)
print("\\nloaded:", *sorted(name for name in {names!r} if name in sys.modules), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as it is before its first run."""
    directory = tmp_path_factory.mktemp("startup") / "flights"
    assert CliRunner().invoke(main, ["init", str(directory), "--example", "flights"]).exit_code == 0
    return directory


@pytest.mark.parametrize("arguments", WITHOUT_SPARK, ids=" ".join)
def test_loads_neither_spark_nor_rich(arguments: tuple[str, ...], example: Path) -> None:
    code = PROBE.format(arguments=list(arguments), names=("pyspark", "py4j", "rich", "pyarrow"))
    done = run([sys.executable, "-c", code], example)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("arguments", WITHOUT_SPARK, ids=" ".join)
def test_answers_at_once(arguments: tuple[str, ...], example: Path) -> None:
    best = min(seconds(arguments, example) for _ in range(3))  # the best: others use the machine
    assert best < BOUND


def seconds(arguments: tuple[str, ...], directory: Path) -> float:
    start = time.perf_counter()
    code = "from penstock.cli.main import main; main()"
    done = run([sys.executable, "-c", code, *arguments], directory)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - start


def run(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(
        command, cwd=directory, env=environ, capture_output=True, text=True, check=False
    )
