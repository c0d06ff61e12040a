"""Kill what drops a slice or a table, or makes one anew, before every second change that it sends.

    python -m tests.engine.killed URI DATA_PATH

A table and the records of its slices must both be as before, or both as after. It forks, so it is a
process without threads of its own; nothing needs Spark.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping

import pyarrow as pa
from sqlalchemy import Connection

from penstock.engine.running.drop import drop
from penstock.engine.state.store import State, publish
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import PartitionField, all_rows
from penstock.lakes.lake import Lake
from penstock.model.values.asset import TableName
from tests.engine.state.builders import at, publication, run_record
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place
from tests.lakes.killed.acts import die_at, in_child, in_fork

COLUMN = "_wm_partition"
TARGET = TableName("main", "main", "a")
_MOST = 200  # statements of an act
_STRIDE = 2  # tests/lakes/killed tries each; these ask whether data and records go together


def made_of(
    catalog: Catalog, days: Mapping[str, int], *, drops: int | None = None, anew: bool = False
) -> None:
    """Commit a table with a file of so many rows for each day, and the records of these slices."""
    columns = staging.columns(id="int64", **{COLUMN: "varchar"})
    new = staging.new_table(catalog, "a", columns, (PartitionField(COLUMN),))
    files = [
        staging.stage(
            new.path,
            columns,
            pa.table({"id": pa.array(range(rows), pa.int64()), COLUMN: [value] * rows}),
            partition_values=(value,),
        )
        for value, rows in days.items()
    ]

    def record(connection: Connection, snapshot_id: int) -> None:
        for value in days:
            publish(connection, snapshot_id, publication(slice=value, at=at(9), anew=anew))

    change = staging.change_set("a", create=new, add=tuple(files), drops=drops)
    catalog.commit(catalog.latest(), change, on_commit=[record])


def begin(place: Place) -> None:
    def work() -> None:
        with place.open() as catalog:
            State(catalog).begin_run(run_record())
            made_of(catalog, {"2026-01-01": 2, "2026-01-02": 1})

    in_fork(work)


def drop_slice(place: Place) -> None:
    with Lake.attach(place.uri, data_path=place.data_path) as lake:
        die_at(lake.catalog, STEP[0])
        drop(lake, TARGET, "2026-01-01", COLUMN)


def drop_table(place: Place) -> None:
    with Lake.attach(place.uri, data_path=place.data_path) as lake:
        die_at(lake.catalog, STEP[0])
        drop(lake, TARGET, None, COLUMN)


def full_refresh(place: Place) -> None:
    """The commit that a step makes of it."""
    with place.open() as catalog:
        die_at(catalog, STEP[0])
        table = catalog.table("main", "a", catalog.latest().id)
        made_of(catalog, {"2026-01": 7}, drops=table.id, anew=True)


STEP = [0]  # at which statement the child is killed
Act = Callable[[Place], None]
# How many rows the table has afterwards, and which slices are recorded.
After = tuple[int | None, list[str]]
ACTS: Mapping[str, tuple[Act, After]] = {
    "drop a slice": (drop_slice, (1, ["2026-01-02"])),
    "full refresh": (full_refresh, (7, ["2026-01"])),
    "drop": (drop_table, (None, [])),
}


def state_of(place: Place) -> After:
    """SQLite, closed before the next fork, needs no child."""
    with place.open() as catalog:
        return rows(catalog), [slice_.slice for slice_ in State(catalog).slices("main.a")]


def rows(catalog: Catalog) -> int | None:
    snapshot = catalog.latest()
    table = catalog.find_table("main", "a", snapshot.id)
    return None if table is None else all_rows(catalog.files(table, snapshot.id))


def kill_each_step(place: Place, act: Act, after: After) -> tuple[int, list[str]]:
    """How many statements there were, and what was wrong."""
    problems: list[str] = []
    before = state_of(place)
    for step in range(0, _MOST, _STRIDE):
        STEP[0] = step
        code, _ = in_child(lambda: act(place))
        state = state_of(place)
        if code == 0:
            return step, problems if state == after else [*problems, f"not killed: {state}"]
        if code != -signal.SIGKILL or state not in (before, after):
            problems.append(f"step {step}: ended with {code}, {state}")
        if state == after:
            return step, problems
    return _MOST, [*problems, "it never ended"]


def main(uri: str, data_path: str) -> int:
    place, wrong = Place(uri, data_path), 0
    begin(place)
    for name, (act, after) in ACTS.items():
        steps, problems = kill_each_step(place, act, after)
        print(f"{name}: killed at {steps} statements", *problems, sep="\n  ", flush=True)
        wrong += len(problems)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
