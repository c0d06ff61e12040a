"""Prepare the table of a batch: carry out what `planning.stages` decides of it, in the transaction
that writes its rows.

What only Spark can tell of the rows that are there, whether a key or a history can continue them,
is decided here.

Refuse a table that does not hold a valid history, before a load is put on top of it.

Others may have changed its rows since the last run: then two versions of a key may be open, or none
where there was one, and a run would make that worse. A rollback undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from penstock.engine.history.load import last_load
from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.planning.stages import (
    FULL_REFRESH,
    RESTATEMENT,
    DropTable,
    DropView,
    KeepRows,
    Place,
    Refuse,
    Stage,
    TableFacts,
    bad_keys,
    no_history,
    other_keys,
    table_stages,
)
from penstock.engine.running.attempt import Attempt, Known
from penstock.engine.state.other_writers import OWN
from penstock.engine.state.records import SliceRecord
from penstock.engine.strategies.upsert import key_in_spark, keys_in_spark
from penstock.errors import DefinitionChanged, StepError
from penstock.model.definition.model import Model
from penstock.model.slicing.slice_condition import NotJoint
from penstock.model.time.slice import shown
from penstock.model.values.history import History
from penstock.spark.functions import expr
from penstock.sql.identifiers import quoted
from penstock.sql.tokens import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable
    from penstock.destinations.values import Snapshot
    from penstock.engine.state.store import State


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
    """Yield what keeps rows from being versions, a line for each kind of fault."""
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


@dataclass(frozen=True, slots=True)
class Start:
    """``known`` are the records that count of the slices of a batch, by their texts; ``first``:
    there is no table; ``anew``: it is dropped and made from nothing.
    """

    known: Known = field(default_factory=dict)
    first: bool = False
    anew: bool = False

    @classmethod
    def of(cls, known: SliceRecord | None, *, first: bool = False, anew: bool = False) -> Start:
        return cls({} if known is None else {known.slice: known}, first, anew)


def facts_of(
    table: StagedTable, kind: str | None, column: str, state: State, target: str
) -> TableFacts:
    """Tell the facts about a table in a transaction, with the records of its target."""
    if kind != "table":
        return TableFacts(kind, records=lambda unless: state.slices(target, unless=unless))
    return TableFacts(
        kind,
        columns=tuple(table.schema.names),
        managed=column,
        made_in=table.made_in,
        count=table.count_rows,
        records=lambda unless: state.slices(target, unless=unless),
        is_recorded=partial(state.is_recorded, target),
    )


def prepare(attempt: Attempt, known: SliceRecord | None) -> tuple[Stage, ...]:
    """Drop or refuse what has the name of the model's table, as its stages say. Raises
    DefinitionChanged.
    """
    kind = attempt.tx.kind_of(table_name(attempt.model.target))
    facts = facts_of(attempt.table, kind, attempt.column, attempt.state, attempt.target)
    rebuild = None
    if attempt.planned.rebuilds:
        rebuild = RESTATEMENT if attempt.planned.again else FULL_REFRESH
    stages = table_stages(attempt.model, facts, known, place=attempt.place, rebuild=rebuild)
    for stage in stages:
        _PREPARE.get(type(stage), _leave)(attempt, stage)
    return stages


def _leave(_: Attempt, __: Stage) -> None:
    """Do nothing: what is written takes the place of what is there."""


def _drop_table(attempt: Attempt, stage: DropTable) -> None:
    _refuse_newer(attempt)
    if stage.holds:
        attempt.notice(f"{stage.why} drops {stage.holds}, which earlier snapshots keep")
    attempt.table.drop()


def _refuse(attempt: Attempt, stage: Refuse) -> None:
    raise stage.error(attempt.model)


# Any: each is given stages of its type.
_PREPARE: Mapping[type[Stage], Callable[[Attempt, Any], None]] = {
    DropTable: _drop_table,
    DropView: lambda attempt, _: attempt.tx.drop_view(table_name(attempt.model.target)),
    KeepRows: lambda attempt, stage: attempt.notice(stage.how),
    Refuse: _refuse,
}


def _refuse_newer(attempt: Attempt) -> None:
    """Raise StepError where another run has made rows of the table since it was planned to drop it:
    nobody has asked to drop these.
    """
    as_of, own = attempt.planned.as_of, attempt.context.run_id
    if as_of is None:
        return
    for record in attempt.state.slices(attempt.target):
        if (record.last_made_in or 0) <= as_of or record.run_id == own:
            continue
        what = shown(record.slice) or "all"
        raise StepError(
            f"run {record.run_id} has published {what} of {attempt.model.target} since this run "
            "was planned, which would drop it",
            hint=f"nothing was changed; penstock plan {attempt.model.name} shows what there is to "
            "do now, and the same command does it",
            location=attempt.model.place("target"),
        )


def start_table(attempt: Attempt, known: SliceRecord | None) -> Start:
    """The table of a single slice. Raises DefinitionChanged for one that has to be dropped first,
    unless the run was asked to.
    """
    stages, model = prepare(attempt, known), attempt.model
    if any(isinstance(stage, DropTable) for stage in stages):
        return Start(anew=True)
    if not attempt.table.exists:
        return Start(first=True)
    if model.history is not None:
        refuse_no_history(model, last_load(attempt.state.slices(attempt.target)), attempt.table)
    elif model.strategy.merges:
        refuse_keys(model, known, attempt.table, attempt.place)
    return Start.of(known)


def refuse_keys(
    model: Model, known: SliceRecord | None, table: StagedTable, place: Place | None
) -> None:
    """Raise DefinitionChanged where rows that were merged by other keys, or by none, cannot be
    merged into.
    """
    if model.upsert.merge_filter:  # which lets a key come again
        return
    if not other_keys(model, known) or not table.count_rows(place):
        return
    nulls, repeated = _not_keys([key_in_spark(key, model) for key in model.keys], table, place)
    if nulls or repeated:
        raise bad_keys(model, place, nulls, repeated).error(model)


def _not_keys(keys: Sequence[str], table: StagedTable, place: Place | None) -> tuple[int, int]:
    """How many rows have a NULL among the keys, and how many keys are those of several rows.

    ``keys`` are expressions in Spark's SQL.
    """
    from pyspark.sql import functions as fn

    rows = table.to_df() if place is None else table.slice_df(*place)
    named = rows.selectExpr(
        *(unsubstituted(f"{key} AS _penstock_{at}") for at, key in enumerate(keys))
    )
    counted = named.groupBy(*named.columns).agg(fn.count("*").alias("_penstock_rows"))
    is_null = fn.lit(False)
    for name in named.columns:
        is_null = is_null | fn.col(name).isNull()
    rows_of_key = fn.col("_penstock_rows")
    counts = counted.agg(
        fn.coalesce(fn.sum(fn.when(is_null, rows_of_key)), fn.lit(0)),
        fn.count(fn.when(~is_null & (rows_of_key > 1), True)),
    ).first()
    assert counts is not None, "an aggregate without groups has one row"
    return counts[0], counts[1]


def start_joint(attempt: Attempt, known: Known) -> Start:
    """The table of many slices. Raises NotJoint for one that others made."""
    model, table = attempt.model, attempt.table
    if not table.exists:
        if attempt.tx.kind_of(table_name(model.target)) is not None:
            raise NotJoint("its name is a view's")
        return Start(first=True)
    if not table.fits_slices(attempt.column):
        raise NotJoint("files of its table hold rows of several slices")
    for record in known.values():
        if record.strategy != model.strategy.name or not record.is_slice_of(model):
            raise NotJoint(f"its slice {record.slice} was made in another way")
    since = table.made_in
    if not any(each.snapshot_id >= since for each in known.values()) and table.count_rows():
        raise NotJoint("its table has rows that no run has written")
    return Start(known)
