"""``data_test not_null <column>``"""

from __future__ import annotations

from penstock.engine.checks.check import Check, of_rows, quoted
from penstock.engine.checks.scope import Scope
from penstock.model.data_test import NotNullTest


def build(test: NotNullTest, scope: Scope) -> Check:
    column = quoted(scope.column(test.column))
    return of_rows(test.name, scope.view, f"{column} IS NULL")
