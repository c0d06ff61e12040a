"""A merge of a change feed: events with a sequence, some of which delete their key.

The event with the highest sequence of a key wins, in whatever order and batches events come. The
table has the rows that are current. The sequences of deleted keys are tombstones: they are in
``<table>_deleted``, staged in the same transaction, and older events of these keys are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.destinations.values import Staged
from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.strategies.target import WriteTarget
from penstock.engine.strategies.upsert import Options
from penstock.errors import (
    ArgumentError,
    DefinitionChanged,
    MergeKeyError,
    QueryFailed,
    SchemaMismatch,
)
from penstock.model.definition.model import Model
from penstock.model.values.upsert import SOURCE, TARGET, TOMBSTONES
from penstock.spark.failures import explained
from penstock.spark.functions import expr, fn
from penstock.sql.dialect import normalized, to_spark
from penstock.sql.identifiers import fold, quoted
from penstock.sql.tokens import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from penstock.destinations.destination import StagedTable, Transaction
    from penstock.model.values.asset import TableName

_VIEW, _DELETED, _RANK = "penstock_events", "_penstock_deleted", "_penstock_rank"
_STORED, _KEY = "_penstock_sequence", "_penstock_key"
_NESTED = ("struct", "array", "map", "variant")
_SAMPLES = 3


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[Options]) -> Staged:
    """Raises MergeKeyError for events without a key or a sequence, and for several events of a key
    that have its highest sequence.
    """
    model, tx = target.options.model, target.options.step.tx
    columns = _columns(df, model)
    by = quoted(columns[-1])
    tombstones = _tombstones(table, model, tx)
    winners = _winners(df, model, columns)
    with explained(table=model.target.qualified), _persisted(winners) as events:
        _check(events, columns)
        newer = events
        if table.exists:
            newer = _without(newer, table, columns, f"{by} <= {_STORED}")
        if tombstones.exists:  # after a rollback of the table, a deletion comes once more
            older = f"{by} < {_STORED} OR ({by} = {_STORED} AND NOT {_DELETED})"
            newer = _without(newer, tombstones, columns, older)
        with _persisted(newer) as changes:
            if table.exists and changes.isEmpty():
                return Staged(slice_rows=table.count_rows())
            current = changes.where(f"NOT {_DELETED}").drop(_DELETED)
            deleted = changes.where(_DELETED).select(*map(quoted, columns))
            if tombstones.exists:
                tombstones.merge(deleted, model.keys)
                _remove(tx, _place(model), current, model.keys)
            elif not deleted.isEmpty():
                tombstones.append(deleted)
                tombstones.comment(_comment(model))
            if not table.exists:
                return table.append(current)
            table.merge(current, model.keys)
            _remove(tx, model.target, deleted, model.keys)
            return Staged(slice_rows=table.count_rows())


def _remove(tx: Transaction, table: TableName, events: DataFrame, keys: Sequence[str]) -> None:
    """Remove the rows that have the keys of ``events``."""
    if events.isEmpty():
        return
    on = " AND ".join(f"{TARGET}.{quoted(key)} = {SOURCE}.{quoted(key)}" for key in keys)
    merge = f"MERGE INTO {table_name(table)} AS {TARGET} USING {_VIEW} AS {SOURCE} ON {on}"
    tx.sql(f"{merge} WHEN MATCHED THEN DELETE", views={_VIEW: events})


def _columns(df: DataFrame, model: Model) -> list[str]:
    """Return the keys and the sequence, last, as the rows call them. Raises SchemaMismatch."""
    names = {fold(name): name for name in df.columns}
    columns: list[str] = []
    for name in (*model.keys, str(model.upsert.sequence)):
        column, place = names.get(fold(name)), "unique_key" if name in model.keys else "sequence"
        kind = None if column is None else df.schema[column].dataType.typeName()
        if column is None or kind in _NESTED:
            raise SchemaMismatch(
                f"the SELECT has no column {name}, the key or the sequence of its events"
                if kind is None
                else f"column {name} is a {kind}, which is no key and no sequence of events",
                hint=f"the columns are {', '.join(df.columns)}",
                location=model.place(place),
                data={"column": name},
            )
        columns.append(column)
    return columns


@contextmanager
def _persisted(df: DataFrame) -> Iterator[DataFrame]:
    rows = df.persist()
    try:
        yield rows
    finally:
        rows.unpersist()


def _winners(df: DataFrame, model: Model, columns: Sequence[str]) -> DataFrame:
    """Return the events with the highest sequence of their key, those without a sequence first.
    Raises ArgumentError.
    """
    deletes = model.upsert.deletes
    condition = "false"
    if deletes is not None:
        dialect = model.query.dialect
        condition = to_spark(normalized(deletes, dialect), dialect, expression=True)
    is_deleted = f"coalesce(CAST(({unsubstituted(condition)}\n) AS BOOLEAN), false) AS {_DELETED}"
    *keys, by = map(quoted, columns)
    window = f"PARTITION BY {', '.join(keys)} ORDER BY {by} DESC NULLS FIRST"
    rank = f"rank() OVER ({window}) AS {_RANK}"
    try:
        with explained(table=model.target.qualified):
            ranked = df.selectExpr("*", is_deleted).selectExpr("*", rank)
    except QueryFailed as error:
        raise ArgumentError(
            f"`deletes` is no condition of the rows, `{deletes}`: {error.message}",
            hint=f"the columns are {', '.join(df.columns)}",
            location=model.place("deletes"),
        ) from error
    return ranked.where(f"{_RANK} = 1").drop(_RANK)


def _check(events: DataFrame, columns: Sequence[str]) -> None:
    """Raise MergeKeyError unless each key has one event with its highest sequence."""
    *keys, by = map(quoted, columns)
    counted = events.groupBy(*keys).agg(
        fn.count("*").alias("_penstock_n"), expr(f"max({by})").alias(_STORED)
    )
    is_null = " OR ".join(f"{key} IS NULL" for key in (*keys, _STORED))
    bad = counted.where(f"_penstock_n > 1 OR {is_null}").orderBy(*keys).limit(_SAMPLES).collect()
    if bad:
        raise _wrong_events(bad, columns)


def _wrong_events(rows: Sequence[Row], columns: Sequence[str]) -> MergeKeyError:
    """Return the error of the rows of one kind, that of the first."""
    *keys, sequence = columns
    values = [(*row[:-2], row[-1]) for row in rows]

    def shown(row: tuple[object, ...]) -> str:
        pairs = zip(columns, row, strict=True)
        return ", ".join(f"{name} = {'NULL' if each is None else each}" for name, each in pairs)

    first = values[0]
    if None in first[:-1]:
        what, hint = f"without a key ({', '.join(keys)})", "filter them in the SELECT"
    elif first[-1] is None:
        what, hint = f"without a sequence ({sequence})", "filter them in the SELECT, or order them"
    else:
        what = f"of one key with the same sequence ({sequence}), and either could be the last"
        hint = "select one event of each key and sequence, or a sequence that tells them apart"
    return MergeKeyError(
        f"the SELECT returns events {what}: {shown(first)}",
        hint=hint,
        data={"samples": [dict(zip(columns, row, strict=True)) for row in values]},
    )


def _tombstones(table: StagedTable, model: Model, tx: Transaction) -> StagedTable:
    """Return the table of deleted keys, without the tombstones of a table that is gone. Raises
    DefinitionChanged where its name is that of another table, or it has other keys.
    """
    place = _place(model)
    name = table_name(place)
    kind = tx.kind_of(name)
    if kind is None:
        return tx.table(name)
    if kind != "table" or tx.table(name).comments()[0] != _comment(model):
        raise DefinitionChanged(
            f"{place} is a {kind} of its own, and {model.name} keeps the deleted keys of "
            f"{model.target} under that name",
            hint=f"drop the {kind}, or give it another name",
            location=model.place("sequence"),
        )
    tombstones = tx.table(name)
    if not table.exists:
        tombstones.drop()
        return tx.table(name)
    *keys, sequence = map(fold, tombstones.schema.names)
    if set(keys) != set(map(fold, model.keys)) or sequence != fold(str(model.upsert.sequence)):
        raise DefinitionChanged(
            f"{place} has the deleted keys by {', '.join(tombstones.schema.names)}, and these are "
            "not the key and the sequence of the model",
            hint=f"rebuild both from the whole feed: penstock run {model.name} --full-refresh",
            location=model.place("sequence"),
        )
    return tombstones


def _place(model: Model) -> TableName:
    return replace(model.target, table=model.target.table + TOMBSTONES)


def _comment(model: Model) -> str:
    return f"deleted keys of {model.target.qualified}, with the sequences of their last events"


def _without(
    events: DataFrame, stored: StagedTable, columns: Sequence[str], older: str
) -> DataFrame:
    """Return the events that no stored sequence beats; ``older`` is the condition of the others.

    The stored rows are read by a semi-join with the events, and are as few as these afterwards.
    """
    *keys, by = map(quoted, columns)
    pairs = [(key, f"{_KEY}{number}") for number, key in enumerate(keys)]
    same_key = " AND ".join(f"{key} = {name}" for key, name in pairs)
    known = stored.to_df().selectExpr(
        *(f"{key} AS {name}" for key, name in pairs), f"{by} AS {_STORED}"
    )
    compared = events.select(*keys, by, _DELETED)
    beating = known.join(compared, expr(f"{same_key} AND ({older})"), "left_semi")
    return events.join(beating, expr(same_key), "left_anti")
