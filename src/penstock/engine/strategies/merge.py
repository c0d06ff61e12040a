"""merge: rows are updated or inserted by key; rows that the SELECT lacks stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.strategies.target import WriteTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable
    from penstock.destinations.values import Staged


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[tuple[str, ...]]) -> Staged:
    """Merge on read by the options, which are keys. Raises MergeKeyError for NULL and double keys
    of ``df``; nothing is written then.
    """
    return table.merge(df, target.options, slice=target.place)
