"""Tell whether a load is the one before: then it changes nothing, whenever it is loaded again.

Loads are the same that have the same rows, as far as versions depend on them: keys, times and
tracked columns. They are compared by the lake's fingerprint of unchanged tables, so two loads that
differ are taken for the same with a probability of 2**-64. It is computed from the rows that are
loaded, in the job that reads them, as a query need not give the same rows twice. The load before
is known by the records of the history.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.history.load import Load, Rules
from penstock.engine.state.records import SliceRecord
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.format.schema import TableSchema
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.snapshot import Snapshot
from penstock.lake.writing import fingerprint
from penstock.model.definition.model import Model
from penstock.sql.identifiers import fold, quoted

if TYPE_CHECKING:
    from pyspark.sql import Observation


@dataclass(frozen=True, slots=True)
class Watch:
    """An observer of the rows of a load as they are read; nothing where Spark cannot hash them."""

    observation: Observation | None = None

    def text(self) -> str | None:
        """The fingerprint, to be asked for once rows of the load have been seen: of a load that
        Spark finds to be empty nothing ever arrives."""
        return None if self.observation is None else fingerprint.text(self.observation.get)


def fingerprint_of(load: Load, rules: Rules) -> str | None:
    """The fingerprint of a load on its own, which reads it once."""
    schema = _schema(load, rules)
    return None if schema is None else fingerprint.of(load.rows, schema)


def watched(load: Load, rules: Rules) -> tuple[Load, Watch]:
    """The load with something that sees its rows."""
    from pyspark.sql import Observation

    schema = _schema(load, rules)
    if schema is None:
        return load, Watch()
    observation = Observation()
    rows = load.rows.observe(observation, *fingerprint.aggregates(schema))
    return replace(load, rows=rows), Watch(observation)


def _schema(load: Load, rules: Rules) -> TableSchema | None:
    updated = rules.history.updated_at
    time = [name for name in load.columns if updated and fold(name) == fold(updated)]
    names = dict.fromkeys([*rules.key_columns, *time, *load.tracked])
    schema = schema_of(load.rows.select(*map(quoted, names)))
    return schema if fingerprint.can_tell(schema) else None


def last_load(records: Iterable[SliceRecord]) -> SliceRecord | None:
    """The record of what was loaded last into a table, of whatever interval."""
    return max(records, key=lambda each: each.snapshot_id, default=None)


def may_repeat(model: Model, last: SliceRecord, catalog: Catalog, base: Snapshot) -> bool:
    """Return whether the next load may be the one before: to look costs reading it once more, and
    is in vain after a table of the same lake that it reads has changed.
    """
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
