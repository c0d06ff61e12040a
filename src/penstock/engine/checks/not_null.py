"""``data_test not_null <column>``"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.checks.check import Check, Proof, Scope, of_rows, quoted
from penstock.model.data_test import NotNullTest

if TYPE_CHECKING:
    import pyarrow as pa


def build(test: NotNullTest, scope: Scope) -> Check:
    name = scope.column(test.column)
    return of_rows(test.name, scope.view, f"{quoted(name)} IS NULL", proof=Proof(name, holds))


def holds(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count == 0)
