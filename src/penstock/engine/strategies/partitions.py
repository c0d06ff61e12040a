"""partitions: each partition that the SELECT's rows have becomes them; other partitions stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.strategies.target import WriteTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable
    from penstock.destinations.values import Staged


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[tuple[str, ...]]) -> Staged:
    """The options are the keys that tell the partitions apart."""
    return table.replace_partitions(df, target.options)
