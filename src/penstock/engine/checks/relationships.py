"""``data_test relationships <column> -> <asset>.<column>``: every value exists over there."""

from __future__ import annotations

from penstock.engine.checks.check import Check, quoted
from penstock.engine.checks.scope import Scope
from penstock.model.data_test import RelationshipsTest


def build(test: RelationshipsTest, scope: Scope) -> Check:
    """A failure is a row whose value is missing there; NULL refers to nothing."""
    column = quoted(scope.column(test.column))
    there = scope.referenced(test.to, test.to_column)
    failing = (
        f"SELECT here.* FROM {quoted(scope.view)} AS here "
        f"LEFT ANTI JOIN {quoted(there.view)} AS there "
        f"ON here.{column} = there.{quoted(there.column)} "
        f"WHERE here.{column} IS NOT NULL"
    )
    return Check(test.name, failing)
