"""expire_snapshots removes snapshots and what only they could see; rollback_to_snapshot restores an
earlier state of a table as a new snapshot (DuckDB has no such function).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import ArgumentError
from penstock.lakes.catalog.snapshots import expiry
from penstock.lakes.format.naming import TableRef
from penstock.lakes.maintenance.removal import by_option, moment
from penstock.lakes.maintenance.scope import Expired, HasCatalog
from penstock.lakes.recovery.rollback import rollback
from penstock.lakes.snapshot import Moment, Snapshot


def expire_snapshots(
    lake: HasCatalog,
    *,
    older_than: dt.datetime | None = None,
    versions: Sequence[int] | None = None,
    dry_run: bool = False,
) -> list[Expired]:
    """Expire snapshots: ``lake.expire_snapshots(versions=[1, 2], dry_run=True)``.

    Those older than a moment, or those with these ids; never the latest.
    Without either, the option ``expire_older_than`` decides; without that, none expires. Rows that
    no remaining snapshot sees are removed from the catalog; their files are scheduled for
    `cleanup_old_files`, which frees the space. Unknown ids are ignored, as in DuckDB 1.5.5.
    """
    if older_than is not None and versions is not None:
        raise ArgumentError(
            "expire_snapshots takes versions or older_than, not both", hint="give one of the two"
        )
    catalog = lake.catalog
    before = moment("older_than", older_than)
    if before is None and versions is None:
        before = by_option(catalog, "expire_older_than")
    if before is None and versions is None:
        return []
    catalog.latest()  # raises CatalogCorrupt where there is none
    wanted = frozenset(versions) if versions is not None else None

    def expires(snapshot: Snapshot) -> bool:
        if wanted is not None:
            return snapshot.id in wanted
        return before is not None and snapshot.time < before

    if dry_run:
        return [_row(snapshot) for snapshot in catalog.snapshots()[:-1] if expires(snapshot)]
    gone = catalog.write_alone(
        lambda connection: expiry.expire(connection, catalog.data_path, expires)
    )
    return [_row(snapshot) for snapshot in gone]


def _row(snapshot: Snapshot) -> Expired:
    return Expired(
        snapshot.id,
        snapshot.time,
        snapshot.schema_version,
        snapshot.changes,
        snapshot.author,
        snapshot.message,
        snapshot.extra,
    )


@dataclass(frozen=True, slots=True)
class RolledBackTable:
    """``new_snapshot`` is ``None`` when the table had not changed since ``to_snapshot``."""

    table: str
    to_snapshot: int
    new_snapshot: int | None
    files_ended: int
    files_restored: int
    rows_ended: int  # inlined rows
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
