"""merge: rows are updated or inserted by key; rows that the SELECT lacks stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.strategies.slice import Slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.state import Staged
    from penstock.lake.staging import TransactionTable


def stage(table: TransactionTable, df: DataFrame, into: Slice) -> Staged:
    """Merge on read. NULL or duplicate keys in ``df`` raise MergeKeyError; nothing is written."""
    return table.merge(df, into.keys, slice=into.place)
