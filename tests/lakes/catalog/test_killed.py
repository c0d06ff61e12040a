"""A process that is killed inside the transaction of its commit leaves no trace of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from penstock.lakes.catalog.catalog import Catalog
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

# The process ends just before COMMIT, after the whole snapshot was written.
CHILD = """
import os, signal, sys
import pyarrow as pa
from penstock.lakes.catalog.catalog import Catalog
from tests.lakes.catalog import staging

with Catalog.open(sys.argv[1]) as lake:
    base = lake.latest()
    table = lake.table("main", "t", base.id)
    file = staging.stage(table.path, table.schema, pa.table({"id": [2]}))
    change = staging.change_set("t", table_id=table.id, add=(file,))
    lake.commit(base, change, on_commit=[lambda *_: os.kill(os.getpid(), signal.SIGKILL)])
"""


def test_nothing_of_a_killed_commit_is_there(lake: Catalog, place: Place) -> None:
    first = staging.create(lake, "t", staging.columns(id="int64"), pa.table({"id": [1]}))
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", CHILD, place.uri]
    killed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert lake.latest() == first
    after = staging.append(lake, "t", {"id": [3]})
    assert after.id == first.id + 1
    files = lake.files(lake.table("main", "t", after.id), after.id).files
    assert [file.row_id_start for file in files] == [0, 1]  # no ids were lost either
