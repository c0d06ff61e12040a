"""Find the tables of others that are older than external_models.yaml allows (``fresh: 36h``). Pure.

A table is as old as the last change of its rows by any writer: compactions, flushes and comments
are none. Its readers wait (`waiting`), but for slices that were over when it last changed: what a
source brings later is not missing from those. A table that does not exist, a view, and one that has
not changed in any snapshot that its lake still has, cannot be dated, and its readers wait, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.model.definition.external import External
from penstock.model.definition.graph import table_key
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.slice import Slice, span_of
from penstock.model.values.asset import TableName
from penstock.settings.quantities import seconds_of


@dataclass(frozen=True, slots=True)
class OldTable:
    """A table that readers wait for, and why; ``changed`` is when it last did, where known."""

    table: TableName
    why: str
    changed: datetime | None = None

    def holds(self, slice_: Slice, spec: PartitionSpec | None) -> bool:
        """Return whether a slice waits for it: not one that was over when it last changed."""
        span = span_of(slice_, spec)
        return self.changed is None or span is None or span.end > self.changed


def old_tables(
    externals: Iterable[External],
    reads: Mapping[str, Sequence[TableName]],
    changed: Callable[[TableName], datetime | str],
    now: datetime,
) -> Mapping[str, tuple[OldTable, ...]]:
    """Return those that models read, by the names of the models. ``reads`` are the tables that each
    model reads and none makes; ``changed`` when a table last did, or why nobody knows.
    """
    wanted = {table_key(table) for of in reads.values() for table in of}
    old: dict[str, OldTable] = {}
    for external in externals:
        key = table_key(external.table)
        if external.fresh is not None and key in wanted:
            found = _old(external.table, external.fresh, changed(external.table), now)
            if found is not None:
                old[key] = found
    held = {
        name: tuple(old[table_key(table)] for table in of if table_key(table) in old)
        for name, of in reads.items()
    }
    return {name: of for name, of in held.items() if of}


def _old(table: TableName, fresh: str, changed: datetime | str, now: datetime) -> OldTable | None:
    if isinstance(changed, str):
        return OldTable(table, f"{changed} (fresh: {fresh})")
    if now - changed <= timedelta(seconds=seconds_of(fresh)):
        return None
    return OldTable(table, f"last changed {changed:%Y-%m-%d %H:%M} UTC (fresh: {fresh})", changed)
