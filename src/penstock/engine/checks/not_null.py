"""``data_test not_null <column>[, <column>...]``"""

from __future__ import annotations

from penstock.engine.checks.check import Check, Proof, Scope, of_rows, quoted
from penstock.lazy import pa
from penstock.model.values.data_test import NotNullTest


def build(test: NotNullTest, scope: Scope) -> Check:
    """A failure is a row that has a NULL in any of the columns."""
    names = tuple(scope.column(name) for name in test.columns)
    failing = " OR ".join(f"{quoted(name)} IS NULL" for name in names)
    return of_rows(test.name, scope.view, failing, proof=Proof(names, holds))


def holds(rows: pa.Table) -> bool:
    return all(column.null_count == 0 for column in rows.columns)
