"""``data_test unique <column>``: a failure is a value that occurs more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.checks.check import Check, Proof, Scope, quoted
from penstock.lake.rows.route import compares
from penstock.model.data_test import UniqueTest

if TYPE_CHECKING:
    import pyarrow as pa


def build(test: UniqueTest, scope: Scope) -> Check:
    """NULL is not counted as a value: ``not_null`` is the test for it."""
    name = scope.column(test.column)
    column = quoted(name)
    failing = (
        f"SELECT {column}, count(*) AS occurrences FROM {quoted(scope.view)} "
        f"WHERE {column} IS NOT NULL GROUP BY {column} HAVING count(*) > 1"
    )
    return Check(test.name, failing, views=(scope.view,), proof=Proof(name, holds))


def holds(column: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    if not compares(column.type):
        return False
    values = pc.count_distinct(column, mode="only_valid").as_py()
    return bool(values == len(column) - column.null_count)
