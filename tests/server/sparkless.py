"""Runs of the models of `killed_project` without Spark: only their rows are made by other means.

What is planned, claimed, recorded and retried is what a run does: the commit of the rows has their
records. A process calls `install` before it serves, and runs no other models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

from penstock.destinations.destination import StagedTable
from penstock.engine.inputs.pinned_tables import pin
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.running import step
from penstock.engine.running.attempt import known_of, read_records
from penstock.engine.running.publish import MadeSlice, commit
from penstock.engine.session.connections import Connections
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.records import Publication
from penstock.engine.state.store import StepRecords
from penstock.lakes.arrow_expressions import compiled
from penstock.project.context import ProjectContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]
Read = Callable[[str, str], list[Row]]  # the rows of a slice of a table
Arguments = Mapping[str, Any]

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "events": ("id", "v"),
    "rates": ("v",),
    "old": ("v",),
    "days": ("id", "v"),
    "costs": ("v",),
    "sums": ("n", "v"),
    "both": ("v",),
    "hist": ("v",),
    "notes": ("id",),
    "tenants": ("n",),
}
"""The columns of the tables, which all are integers, without the one of the partition."""

PARTITION = "_wm_partition"


def _sum(rows: Sequence[Row], place: int = -1) -> int:
    return sum(row[place] for row in rows)


MAKERS: Mapping[str, Callable[[Read, str, Arguments], list[Row]]] = {
    "days": lambda read, key, _: read("events", key),
    "costs": lambda read, key, _: read("rates", key),
    "sums": lambda read, key, _: [(len(rows := read("days", key)), _sum(rows))],
    "both": lambda read, key, _: [(_sum(read("days", key)) + _sum(read("costs", key)),)],
    "hist": lambda read, key, _: read("old", key),
    "notes": lambda _, __, given: [(int(given["id"]),)],
    "tenants": lambda _, __, given: [(int(given["n"]),)],
}
"""The rows of a slice of each model."""


# Of these Arrow computes what Spark would.
_CONF = {key: next(iter(values)) for key, values in vars(compiled)["_WANTED"].items()} | {
    "spark.sql.session.timeZone": "UTC"
}


class _Session:
    """A session that has settings, and nothing else. ``conf`` is itself."""

    def __init__(self) -> None:
        self.conf = self

    def get(self, key: str, default: str | None = None) -> str | None:
        return _CONF.get(key, default)

    def set(self, key: str, value: object) -> None:
        """Nobody reads it."""


def _do_nothing(self: Connections) -> None:
    """Take Spark to be there."""


def install(slow: float = 0.0) -> None:
    """Replace what needs Spark in this process. Each batch takes ``slow`` seconds more."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("something starts Spark")

    vars(step)["execute"] = partial(execute, slow=slow)
    Connections.require_spark = _do_nothing  # type: ignore[method-assign] # of this process
    Connections.session = refuse  # type: ignore[method-assign] # of this process
    session = cast("SparkSession", _Session())
    ProjectContext.session = lambda *_: session  # type: ignore[method-assign] # of this process


def execute(context: RunContext, planned: PlannedStep, slow: float = 0.0) -> list[MadeSlice]:
    """Make the slices of a batch as `running.publish.execute` does."""
    model, run_id = planned.model, context.run_id
    known, required = known_of(context, planned)
    note = f'{{"run": "{run_id}", "step": "{model.name}", "slice": "{planned.slice}"}}'
    with context.lake_of(model).transaction(author="penstock", extra=note) as tx:
        reads = read_records(
            context, planned, pin(context.lakes, model, tx.base, context.plan.makers)
        )
        published: list[Publication] = []
        for slice_ in planned.slices:
            key = "" if slice_.text == "" else str(slice_)
            made = MAKERS[model.name](
                lambda name, part: read_rows(tx.table(name), name, part), key, context.plan.args
            )
            same = not _write(tx, model.name, key, made, adds=model.strategy.only_adds)
            before = known.get(slice_.text)
            publication = replace(
                Publication.of(model, run_id, slice_.text),
                rows=len(made),
                requires=None if published else required,
                same=len(planned.slices) > 1 and same,
                kept_as="unchanged" if before is not None or made else "done",
                made_before=None if before is None else before.last_made_in,
                read_id=reads[slice_.text].read_id,
            )
            published.append(publication)
        records = StepRecords(
            published=tuple(published),
            base=tx.base.id,
            reads=tuple({read.read_id: read for read in reads.values()}.values()),
            claim=context.claim,
        )
        time.sleep(slow)
        context.check_cancelled()
        if not tx.has_changes:
            tx.rollback()
            context.states[model.target.lake].write(records.write)
            snapshot_id = None
        else:
            snapshot_id = commit(tx, context.states[model.target.lake], records)
    return [MadeSlice(*what.made_by(snapshot_id)) for what in published]


def read_rows(table: StagedTable, name: str, key: str = "") -> list[Row]:
    """The rows of a slice, or all rows, of a table."""
    names = COLUMNS[name]
    found = table.few_rows((*names, PARTITION), (PARTITION, key) if key else None)
    assert found is not None, f"{name} is not simple to read"
    rows = found.to_pylist()
    if key:
        rows = [row for row in rows if row[PARTITION] == key]
    return sorted(tuple(row[column] for column in names) for row in rows)


def _write(tx: Any, name: str, key: str, rows: list[Row], *, adds: bool) -> bool:
    """Write the rows of a slice where they are not there."""
    there = [] if adds else read_rows(tx.table(name), name, key)
    if not adds and there == sorted(rows):
        return False
    where = f" WHERE {PARTITION} = '{key}'" if key else ""
    if there:
        tx.sql(f"DELETE FROM {name}{where}")
    part = f"'{key}'" if key else "NULL"
    values = ", ".join(f"({', '.join(map(str, row))}, {part})" for row in rows)
    if rows:
        tx.sql(f"INSERT INTO {name} VALUES {values}")
    return True
