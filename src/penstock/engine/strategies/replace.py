"""replace: the slice becomes exactly what the SELECT returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.strategies.target import WriteTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable
    from penstock.destinations.values import Staged


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[None]) -> Staged:
    """A whole table may change its columns; a slice must fit it (`schema_change`)."""
    if target.place is None:
        return table.replace(df, known_fingerprint=target.known_fingerprint)
    column, value = target.place
    return table.replace_slice(
        df,
        column,
        value,
        partition_by=target.partition_by,
        known_fingerprint=target.known_fingerprint,
    )
