"""Refuse a table that does not hold a valid history, before a load is put on top of it.

Others may have changed its rows since the last run: then two versions of a key may be open, or none
where there was one, and a run would make that worse. A rollback undoes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

from penstock.engine.planning.stages import no_history, other_keys
from penstock.engine.state.other_writers import OWN
from penstock.engine.state.records import SliceRecord
from penstock.engine.strategies.upsert import keys_in_spark
from penstock.errors import DefinitionChanged
from penstock.model.definition.model import Model
from penstock.model.values.history import History
from penstock.spark.functions import expr
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable
    from penstock.destinations.values import Snapshot


def refuse_no_history(model: Model, known: SliceRecord | None, table: StagedTable) -> None:
    """Raise DefinitionChanged where the table does not hold what the runs of this model made.

    ``known`` is its record; a table without one, or of another strategy or other keys, is looked
    into.
    """
    history = model.history
    assert history is not None, "asked of others"
    if known is not None and not other_keys(model, known):
        change = table.changed_by_others(known.snapshot_id, OWN)
        if change is not None:
            raise _edited(model, known, change)
        return
    faults = list(_faults(table.to_df(), model, history))
    if faults:
        problem = f"is not a history by this key: {' and '.join(faults)}"
        raise no_history(model, problem).error(model)


def _faults(rows: DataFrame, model: Model, history: History) -> Iterator[str]:
    """What keeps rows from being versions: one line for each kind of fault."""
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    keys = {f"_penstock_{n}": expr(text) for n, (_, text) in enumerate(keys_in_spark(model))}
    since, until = fn.col(quoted(history.valid_from)), fn.col(quoted(history.valid_to))
    window = Window.partitionBy(*keys).orderBy(since, until.asc_nulls_last())
    next_since = fn.lead(since).over(window)
    no_key = reduce(lambda a, b: a | b, (fn.col(key).isNull() for key in keys))
    is_wrong = since.isNull() | (until < since)
    if history.is_current is not None:
        current = fn.col(quoted(history.is_current))
        is_wrong = is_wrong | ~current.eqNullSafe(until.isNull())
    marked = rows.withColumns(keys).select(
        no_key.alias("no_key"),
        is_wrong.alias("wrong"),
        (next_since.isNotNull() & until.isNull()).alias("open"),
        (next_since < until).alias("overlap"),
    )
    (found,) = marked.agg(
        *(fn.count_if(fn.col(name)).alias(name) for name in marked.columns)
    ).collect()
    said = {
        "no_key": "rows with a NULL in the key",
        "wrong": "rows with a validity that cannot be",
        "open": "open versions with a later one of the same key",
        "overlap": "versions that overlap the next one of the same key",
    }
    yield from (f"{found[name]:,} {text}" for name, text in said.items() if found[name])


def _edited(model: Model, known: SliceRecord, change: Snapshot) -> DefinitionChanged:
    who = f" by {change.author}" if change.author else ""
    target = model.target
    back = f"CALL {target.lake}.rollback_to_snapshot('{target.qualified}', {change.id - 1})"
    problem = f"was changed outside of its runs, in snapshot {change.id}{who}"
    error = no_history(model, problem).error(model)
    error.hint = f"roll it back: {back}; or, which leaves one version of each row: {error.hint}"
    error.data["snapshot"] = change.id
    error.data["recorded"] = known.snapshot_id
    return error
