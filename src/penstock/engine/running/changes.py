"""Choose what a step reads of its input: all rows, or those that changed since the slice was made.

Where a model says ``incremental changes``, the slice's record has the snapshot up to which changes
of the input are in it, recorded in the transaction of the data. The rows that changed since are
read by the table's change feed, each once, as it is now. Rows that were removed stay in the model's
table, as they do when a merge or an append reads everything.

A merge whose input has a key twice is refused, in a run over everything and in one over changes: of
the keys that changed, the second looks up whether rows that did not change have them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.destinations.values import Table
from penstock.engine.inputs.pinned_tables import Pins, table_name
from penstock.engine.state.records import SliceRecord
from penstock.engine.strategies.upsert import keys_of
from penstock.errors import DefinitionChanged, NotFound
from penstock.lake.limits import Limits
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.rows.merge_source import Source, check_keys, count
from penstock.model.definition.changes import changing_source, why_whole
from penstock.model.definition.model import Model
from penstock.model.script.sources import QuerySource, TableSource
from penstock.spark.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Reading:
    """``given`` are the rows to read in place of the input's; none where all are read.

    ``inputs`` is what to record with the slice; ``said`` is worth a notice.
    """

    given: Mapping[QuerySource, DataFrame] = field(default_factory=dict)
    inputs: Mapping[str, int] | None = None
    said: str | None = None


def reading_of(model: Model, known: SliceRecord | None, pins: Pins) -> Reading:
    """Of a model that reads changes; ``known`` is the record of the slice that is there.
    Raises DefinitionChanged.

    An append that has run before cannot read everything: its rows would be there twice.
    """
    why = why_whole(model.query, model)
    source = changing_source(model.query)
    if why is not None or source is None:
        return Reading(said=f"reads its input whole: {why}")
    table = pins.require(source.table, {})
    if table is None:
        return Reading(said=f"reads its input whole: {source.table} is a view")
    now, name = pins.versions[source.table.lake], str(source.table)
    inputs = {name: now}
    if known is None:
        return Reading(inputs=inputs)
    catalog = pins.lakes[source.table.lake].catalog
    since = (known.inputs or {}).get(name)
    why = _why_not(model, known, catalog, table, since)
    if known.rolled_back is not None:
        why = f"{model.target} was rolled back since it was read"
    if why is None and since is not None:
        try:
            return _changes(model, source, pins, (since, now), inputs)
        except NotFound:
            why = f"snapshot {since + 1} of {name} has expired"
    if model.strategy.only_adds:
        raise DefinitionChanged(
            f"{model.target} cannot tell which rows of {name} are new: {why}",
            hint=f"rebuild it from all of them: `penstock run {model.name} --full-refresh`; or "
            "take `incremental changes` away",
            location=model.place("incremental"),
            data={"table": model.target.qualified},
        )
    return Reading(inputs=inputs, said=f"reads {name} whole: {why}")


def _changes(
    model: Model,
    source: TableSource,
    pins: Pins,
    between: tuple[int, int],
    inputs: Mapping[str, int],
) -> Reading:
    """The rows that changed after the first snapshot, up to the second."""
    since, now = between
    table = pins.lakes[source.table.lake].table(table_name(source.table))
    only_new, said = model.strategy.only_adds, None
    rows = table.changed_rows(since, now, only_new=only_new)
    if rows.lost and only_new:
        said = f"rows of {source.table} were updated or removed: what was appended of them stays"
    return Reading({source: rows.df}, inputs, said)


def _why_not(
    model: Model, known: SliceRecord, catalog: Catalog, table: Table, since: int | None
) -> str | None:
    """Why the rows that changed since then do not make the table that all rows make."""
    if since is None:
        return "no run has recorded how far it read"
    before = catalog.find_table(table.schema_name, table.name, since)
    if before is None or before.id != table.id:
        return "the input is another table than the one that was read"
    reasons = {
        "the model has changed": known.definition_hash != model.definition_hash,
        f"its rows were made by {known.strategy}": known.strategy != model.strategy.name,
        "the columns of the input have changed": before.schema != table.schema,
    }
    if model.strategy.only_adds:  # what was appended before stays as it is
        return None
    return next((reason for reason, holds in reasons.items() if holds), None)


def refuse_doubled(model: Model, changed: DataFrame, whole: DataFrame, limits: Limits) -> None:
    """``changed`` are rows that the query makes of what changed, which are kept, as this reads them
    several times; ``whole`` are those of all its input.

    Raises MergeKeyError for keys of the first that the second has more than once, or that are NULL.
    """
    from pyspark.sql import functions as fn

    table = model.target.qualified
    keys = keys_of(changed, model)
    with explained(table=table):
        source = count(Source(keys, schema_of(keys), model.keys), table=table)
        if source.rows:
            few = limits.broadcasts(source.rows, source.key_width)
            wanted = fn.broadcast(keys) if few else keys
            found = keys_of(whole, model).join(wanted, list(model.keys), "left_semi")
            check_keys(replace(source, frame=found), table=table)
