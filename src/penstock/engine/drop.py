"""Drop a model's table, or one slice of it, and what is recorded of it, in one commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.engine.pins import table_name
from penstock.engine.results import Dropped
from penstock.engine.state.records import WHOLE
from penstock.engine.state.store import State, forget, now
from penstock.engine.versions.current import drop_view
from penstock.errors import ArgumentError, TableNotFound
from penstock.lake.format.naming import fold
from penstock.model.asset import TableName
from penstock.model.history import History

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.lake import Lake
    from penstock.lake.staging import TransactionTable

_SHOWN = 10


def drop(
    lake: Lake,
    target: TableName,
    value: str | None,
    column: str,
    history: History | None = None,
) -> Dropped:
    """Drop the table, or its slice ``value``; ``column`` is the one that carries slices' values.
    The view of the current versions of a ``history`` goes with it.

    Earlier snapshots keep the rows. What is recorded of a table that somebody else has dropped is
    forgotten, and no snapshot made. Starts Spark only for a slice in files that hold others too.
    Raises TableNotFound where there is nothing to drop, ArgumentError for an unknown slice.
    """
    state = State(lake.catalog)
    state.prepare()
    recorded = [slice_.slice for slice_ in state.slices(target.qualified)]
    said = " ".join(part for part in ("drop", str(target), value) if part)
    note = json.dumps({"penstock_drop": {"table": str(target), "slice": value}})
    with lake.transaction(author="penstock", message=said, extra=note) as tx:
        if tx.kind_of(table_name(target)) == "view" and value is None:
            tx.drop_view(table_name(target))
            rows = 0
        else:
            rows = _drop(tx.table(table_name(target)), target, value, column, recorded)
            drop_view(tx, target, history)

        def record(connection: Connection, _: int) -> None:
            forget(connection, target.qualified, value, now())

        tx.also(record)
        snapshot = tx.commit()
    if snapshot is None:
        state.forget(target.qualified, value)
    made_in = snapshot.id if snapshot else None
    return Dropped(str(target), _dropped(value, recorded), rows, made_in)


def forget_files(lake: Lake, target: TableName, uris: Sequence[str], value: str | None) -> Dropped:
    """Forget the files that a step writes, or those of its slice ``value``; they stay where they
    are. Raises TableNotFound where nothing is recorded, ArgumentError for an unknown slice.
    """
    state = State(lake.catalog)
    state.prepare()
    recorded = [slice_.slice for slice_ in state.slices(target.qualified)]
    if not recorded:
        raise TableNotFound(
            f"no run has recorded files {target}", hint="penstock status lists what is there"
        )
    if value is not None and value not in recorded:
        raise _no_slice(target, value, recorded)
    for uri in dict.fromkeys((target.qualified, *uris)):
        state.forget(uri, value)
    return Dropped(str(target), _dropped(value, recorded), 0, None, files=True)


def _dropped(value: str | None, recorded: Sequence[str]) -> tuple[str, ...]:
    if value is not None:
        return (value,)
    return tuple(slice_ for slice_ in recorded if slice_ != WHOLE)


def _no_slice(target: TableName, value: str, recorded: Sequence[str]) -> ArgumentError:
    shown = ", ".join([slice_ for slice_ in recorded if slice_ != WHOLE][:_SHOWN])
    return ArgumentError(
        f"{target} has no slice {value!r}",
        hint=f"its slices are {shown}" if shown else "it has none: leave --slice out",
    )


def _drop(
    table: TransactionTable, target: TableName, value: str | None, column: str, recorded: list[str]
) -> int:
    """Stage the drop; returns the number of rows that go."""
    if not table.exists:
        if not recorded or (value is not None and value not in recorded):
            raise TableNotFound(
                f"table {target} does not exist, and nothing is recorded of it",
                hint="penstock status lists what is there",
            )
        return 0
    if value is None:
        rows = table.count_rows()
        table.drop()
        return rows
    in_slices = any(fold(name) == fold(column) for name in table.schema.names)
    rows = table.drop_slice(column, value) if in_slices else 0
    if not rows and value not in recorded:
        raise _no_slice(target, value, recorded)
    return rows
