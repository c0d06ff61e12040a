"""The load before, by the records of a history: what a table is checked by, and the next load."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.engine.state.records import SliceRecord
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.snapshot import Snapshot
from penstock.model.definition.model import Model


def last_load(records: Iterable[SliceRecord]) -> SliceRecord | None:
    """The record of what was loaded last into a table, of whatever interval."""
    return max(records, key=lambda each: each.snapshot_id, default=None)


def may_repeat(model: Model, last: SliceRecord, catalog: Catalog, base: Snapshot) -> bool:
    """Whether the next load may be the one before: to look costs reading it once more, and is in
    vain after a table of the same lake that it reads has changed."""
    if last.strategy != model.strategy.name or last.definition_hash != model.definition_hash:
        return False
    inputs = (
        catalog.known_table(table.schema, table.table, base)
        for table in model.reads
        if table.lake == model.target.lake
    )
    return not any(
        table is not None and catalog.changed_since(table, last.snapshot_id) for table in inputs
    )
