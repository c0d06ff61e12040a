"""append: rows are added and never looked at again, for immutable logs.

By the documents a re-run adds its rows again (seeds/materialization.md, "Strategy and unit"). What
an interrupted run had already published is not added again by the run that takes it up: the runner
sees to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.strategies.target import WriteTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable
    from penstock.destinations.values import Staged


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[None]) -> Staged:
    return table.append(df, partition_by=target.partition_by, slice=target.place)
