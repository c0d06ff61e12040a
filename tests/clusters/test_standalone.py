"""A run on a standalone cluster with two workers makes what a run on this machine makes.

By hand, ``make cluster-tests``: five Java processes take half a minute of a quiet machine.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.clusters.flights import make_project, penstock
from tests.clusters.processes import standalone

ASKED = "PENSTOCK_TEST_CLUSTERS"  # in the environment: `make cluster-tests` sets it
ENVIRONMENTS = """
[environments.cluster]
spark.master = "${CLUSTER}"
spark.conf."spark.executor.memory" = "512m"
spark.conf."spark.driver.memory" = "512m"
spark.conf."spark.driver.host" = "127.0.0.1"
spark.conf."spark.sql.shuffle.partitions" = 2
"""


@pytest.mark.skipif(ASKED not in os.environ, reason="half a minute: `make cluster-tests`")
def test_models_run_on_two_workers(tmp_path: Path) -> None:
    project = make_project(tmp_path / "shop", ENVIRONMENTS)
    with standalone(tmp_path) as address:
        run = ("run", "raw/flights", "--partition", "2013-01-01")
        penstock(project, "cluster", *run, environ={"CLUSTER": address})
    executors = sorted(tmp_path.glob("work*/app-*/*"))
    assert len(executors) == 2
    text = "SELECT count(*) AS rows FROM flights_raw"
    answer = json.loads(penstock(project, "default", "sql", text))
    assert answer["rows"] == [[842]]
