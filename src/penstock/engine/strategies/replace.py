"""replace: the slice becomes exactly what the SELECT returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.strategies.slice import Slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.transaction import Staged, TransactionTable


def stage(table: TransactionTable, df: DataFrame, into: Slice) -> Staged:
    """A whole table may change its columns; a slice must fit the table (see ``evolution``)."""
    if into.column is None or into.value is None:
        return table.replace(df, known_fingerprint=into.known_fingerprint)
    return table.replace_slice(
        df,
        into.column,
        into.value,
        partition_by=into.partition_by,
        known_fingerprint=into.known_fingerprint,
    )
