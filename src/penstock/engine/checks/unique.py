"""``data_test unique <column>``: a failure is a value that occurs more than once."""

from __future__ import annotations

from penstock.engine.checks.check import Check, quoted
from penstock.engine.checks.scope import Scope
from penstock.model.data_test import UniqueTest


def build(test: UniqueTest, scope: Scope) -> Check:
    """NULLs are no values here: ``not_null`` is the test that minds them."""
    column = quoted(scope.column(test.column))
    failing = (
        f"SELECT {column}, count(*) AS occurrences FROM {quoted(scope.view)} "
        f"WHERE {column} IS NOT NULL GROUP BY {column} HAVING count(*) > 1"
    )
    return Check(test.name, failing)
