"""The same work over Spark Connect as over a session of the process itself."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import duck
from tests.lakes.connect_process import work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULES = ("grpc", "grpc_status", "pandas", "google.rpc", "zstandard")
_ROOT = Path(__file__).resolve().parents[2]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its package
        return False


@pytest.mark.skipif(
    not all(map(_is_there, _MODULES)),
    reason="Spark Connect needs its client's packages: pip install 'penstock-spark[connect]'",
)
def test_work_over_spark_connect_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    near.mkdir()
    command = [sys.executable, "-m", "tests.lakes.connect_process", str(far)]
    # The process has a Java of its own, which would take a quarter of the machine's memory.
    options = {**os.environ, "PYSPARK_SUBMIT_ARGS": "--driver-memory 1g pyspark-shell"}
    ran = subprocess.run(
        command, cwd=_ROOT, env=options, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4000:]

    expected = json.loads(json.dumps(work(spark, near)))

    assert json.loads((far / "answers.json").read_text()) == expected
    assert expected[0] == [[60, 0, 59]]
    assert expected[-1][0] == "QueryFailed"
    with duck.attach(f"ducklake:sqlite:{far / 'meta.sqlite'}") as connection:
        rows = connection.execute("SELECT rowid, id, name FROM t ORDER BY id").fetchall()
    assert rows == [tuple(row[:3]) for row in expected[1]]
