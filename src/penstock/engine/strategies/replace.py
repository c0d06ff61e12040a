"""replace: the slice becomes exactly what the SELECT returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.strategies.slice import Slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.state import Staged
    from penstock.lake.staging import TransactionTable


def stage(table: TransactionTable, df: DataFrame, into: Slice) -> Staged:
    """A whole table may change its columns; a slice must fit it (`redefinition`)."""
    if into.place is None:
        return table.replace(df, known_fingerprint=into.known_fingerprint)
    column, value = into.place
    return table.replace_slice(
        df,
        column,
        value,
        partition_by=into.partition_by,
        known_fingerprint=into.known_fingerprint,
    )
