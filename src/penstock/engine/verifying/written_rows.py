"""Find the rows that a step of a past run wrote, and those of a query that they are compared with.

A strategy says which rows of the table are the step's: its slice, the rows of its keys, those that
were added, or the versions of a history that its query had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.answers.table_diff import Sides
from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.strategies.time_range import rows_in_ranges
from penstock.engine.verifying.past_step import PastStep
from penstock.model.time.interval import Interval, union
from penstock.model.time.slice import Part
from penstock.spark.functions import expr
from penstock.sql.identifiers import fold, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from penstock.destinations.destination import Destination


def sides_of(past: PastStep, made: DataFrame, lake: Destination, partition_column: str) -> Sides:
    """Return what the step wrote, and what its query has ``made`` now, with the columns of both.

    Raises SnapshotNotFound, TableNotFound.
    """
    wrote, strategy = _of_slice(past, lake, partition_column), past.model.strategy
    made = _as_types(made, wrote)
    interval = past.slice if isinstance(past.slice, Interval) else None
    if strategy.time_column and interval is not None:
        by_time, dialect = past.model.time_range, past.model.query.dialect
        assert by_time is not None, "it has a time column"
        inside = union((interval,))
        made = rows_in_ranges(made, by_time, inside, dialect)
        wrote = rows_in_ranges(wrote, by_time, inside, dialect)
    if strategy.merges:
        wrote = _like(wrote, made, [quoted(name) for name in past.model.keys])
    if strategy.by_partition_keys:
        wrote = _like(wrote, made, past.model.layout.partitioned_by)
    if strategy.keeps_versions:  # versions of before, and those that it closed, are not its rows
        common = [name for name in made.columns if _has(wrote, name)]
        names = [quoted(name) for name in common]
        made = made.distinct()
        wrote = _like(wrote, made, names).select(*names).distinct()
    return Sides(wrote, made)


def _of_slice(past: PastStep, lake: Destination, partition_column: str) -> DataFrame:
    """The rows of the slice as they were left; of rows that are only added, those."""
    table = lake.table(table_name(past.model.target))
    if not past.model.strategy.only_adds:
        rows = table.to_df(version=past.at)
    elif past.wrote:
        rows = table.changed_rows(past.at - 1, past.at, only_new=True).df
        rows = rows.select(*map(quoted, table.info(past.at).schema.names))
    else:
        rows = table.to_df(version=past.at).limit(0)
    if isinstance(past.slice, Part):
        rows = rows.where(expr(quoted(partition_column)) == past.slice.value)
        rows = rows.drop(partition_column)
    return rows


def _has(frame: DataFrame, name: str) -> bool:
    return fold(name) in set(map(fold, frame.columns))


def _as_types(made: DataFrame, wrote: DataFrame) -> DataFrame:
    """The rows with the types of the table, as writing them gives them."""
    kinds = {fold(name): kind for name, kind in wrote.dtypes}
    columns = [
        expr(quoted(name))
        if kinds.get(fold(name), kind) == kind or "<" in kind
        else expr(quoted(name)).cast(kinds[fold(name)]).alias(name)
        for name, kind in made.dtypes
    ]
    return made.select(*columns)


def _like(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows that have one of the others' values of some expressions; NULL is a value."""
    own = [expr(key).alias(f"own_{i}") for i, key in enumerate(keys)]
    wanted = others.select(*(expr(key).alias(f"key_{i}") for i, key in enumerate(keys)))
    same = " AND ".join(f"own_{i} <=> key_{i}" for i in range(len(keys)))
    found = rows.select("*", *own).join(wanted.distinct(), expr(same), "left_semi")
    return found.drop(*(f"own_{i}" for i in range(len(keys))))
