"""Two runs at once of each kind leave what one leaves: they plan before either has made anything.

Tests ``engine/running/concurrent_runs.py`` with ``engine/state/claims.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.results import RunResult
from penstock.events import Event, RunStarted
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.planning.test_intervals import at
from tests.engine.running.test_concurrent_runs import RAW
from tests.engine.toy import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RANGE = {"from_": "2026-01-01", "to": "2026-01-03"}
HEAD = "-- pipeline\n-- materialize ducklake://main/t"
OF_DAY = "SELECT n FROM raw WHERE day = '{partition}'"
OF_INTERVAL = "SELECT day, n FROM raw WHERE day >= @start_ds AND day <= @end_ds"
START = "start '2026-01-01'"
MANUAL = """
-- pipeline
-- partitioned daily
-- materialize manual ducklake://main/t
CREATE TABLE IF NOT EXISTS main.t (n INT);
DELETE FROM main.t WHERE n = CAST(right('{partition}', 1) AS INT);
INSERT INTO main.t SELECT n FROM main.raw WHERE day = '{partition}'
"""
PYTHON = """
# pipeline
# partitioned daily
# materialize ducklake://main/t append
def main(partition: str) -> list[dict]:
    return [{"n": int(partition[-1])}]
"""
ONCE = [(1,), (2,), (3,)]
KINDS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "replace": ("t", f"{HEAD}\n-- partitioned daily\n{OF_DAY}", RANGE),
    "merge": ("t", f"{HEAD} key=n\n-- partitioned daily\n{OF_DAY}", RANGE),
    "one by one": ("t", f"{HEAD} append\n-- partitioned daily\n{OF_DAY} LIMIT 9", RANGE),
    "FULL": ("t", "MODEL (name t, kind FULL); SELECT n FROM raw", {}),
    "view": ("t", "MODEL (name t, kind VIEW); SELECT n FROM raw", {}),
    "UNIQUE_KEY": (
        "t",
        f"MODEL (name t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key n), {START}); {OF_INTERVAL}",
        RANGE,
    ),
    "change feed": (
        "t",
        "MODEL (name t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key n, sequence day, "
        f"deletes (n < 0)), {START}); {OF_INTERVAL}",
        RANGE,
    ),
    "BY_PARTITION": (
        "t",
        "MODEL (name t, kind INCREMENTAL_BY_PARTITION, partitioned_by day); SELECT day, n FROM raw",
        {},
    ),
    "BY_TIME_RANGE": (
        "t",
        f"MODEL (name t, kind INCREMENTAL_BY_TIME_RANGE (time_column day), {START}); {OF_INTERVAL}",
        RANGE,
    ),
    "UNMANAGED": ("t", f"MODEL (name t, kind INCREMENTAL_UNMANAGED, {START}); {OF_INTERVAL}", {}),
    "history": (
        "t",
        "MODEL (name t, kind SCD_TYPE_2_BY_COLUMN (unique_key n, columns [day])); "
        "SELECT day, n FROM raw",
        {},
    ),
    "changes": ("t", f"{HEAD} append\n-- incremental changes\nSELECT n FROM raw", {}),
    "manual": ("t", MANUAL, {"partition": "2026-01-02"}),
    "Python": ("t.py", PYTHON, RANGE),
}


def both(toy: Project, spark: SparkSession, asked: Mapping[str, Any]) -> list[RunResult]:
    """The results of two runs that begin together."""
    results: list[RunResult] = []
    planned = Barrier(2, timeout=60)

    def wait(event: Event) -> None:
        if isinstance(event, RunStarted):
            planned.wait()

    def run() -> None:
        with Project.load(toy.settings.root, spark=spark) as project:
            results.append(project.run(on_event=wait, fire_time=at(9), **asked))

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return results


@pytest.mark.parametrize("kind", KINDS)
def test_two_runs_at_once_leave_what_one_leaves(make: Make, spark: SparkSession, kind: str) -> None:
    name, script, asked = KINDS[kind]
    toy = make({f"models/{name}": script})
    toy.lake("main").sql(RAW)
    results = both(toy, spark, asked)
    assert [result.state for result in results] == ["done", "done"]
    expected = [(2,)] if "partition" in asked else ONCE
    assert rows(toy, "SELECT n FROM t ORDER BY n") == expected


def test_what_means_once_a_run_is_made_by_each(make: Make, spark: SparkSession) -> None:
    toy = make({"models/t": f"{HEAD} append\nSELECT n FROM raw"})
    toy.lake("main").sql(RAW)
    assert [result.state for result in both(toy, spark, {})] == ["done", "done"]
    assert rows(toy, "SELECT n FROM t ORDER BY n") == sorted(ONCE * 2)
