"""rollback_to_snapshot: a table as it was, as a new snapshot. DuckDB has no such function."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.lake.format.naming import TableRef
from penstock.lake.maintenance.scope import HasCatalog
from penstock.lake.recovery.rollback import rollback
from penstock.lake.snapshot import Moment


@dataclass(frozen=True, slots=True)
class RolledBackTable:
    """``new_snapshot`` is ``None`` when the table was as it had been at ``to_snapshot``."""

    table: str
    to_snapshot: int
    new_snapshot: int | None
    files_ended: int
    files_restored: int
    rows_ended: int  # of those that the catalog itself holds
    rows_restored: int
    columns_changed: bool


def rollback_to_snapshot(
    lake: HasCatalog,
    table: str,
    snapshot: int | None = None,
    *,
    schema: str | None = None,
    timestamp: Moment | None = None,
) -> list[RolledBackTable]:
    """Roll a table back to a snapshot, or to the one in force at a time; see `rollback`."""
    ref = TableRef.parse(table) if schema is None else TableRef(schema, table)
    done = rollback(lake.catalog, ref, snapshot, timestamp)
    made = None if done.snapshot is None else done.snapshot.id
    return [
        RolledBackTable(
            str(ref),
            done.to,
            made,
            done.files_ended,
            done.files_restored,
            done.rows_ended,
            done.rows_restored,
            done.columns_changed,
        )
    ]
