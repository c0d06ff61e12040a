"""partitions: each partition that the SELECT's rows have becomes them; other partitions stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.strategies.slice import Slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.state import Staged
    from penstock.lake.staging import TransactionTable


def stage(table: TransactionTable, df: DataFrame, into: Slice) -> Staged:
    """``into.partition_keys`` tell the partitions apart."""
    return table.replace_partitions(df, into.partition_keys)
