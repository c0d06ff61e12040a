"""``data_test relationships <column> -> <asset>.<column>``: every value exists over there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.checks.check import Check, Proof, Scope, quoted
from penstock.lake.rows.small import compares
from penstock.model.data_test import RelationshipsTest

if TYPE_CHECKING:
    import pyarrow as pa


def build(test: RelationshipsTest, scope: Scope) -> Check:
    """A failure is a row whose value is missing there; NULL refers to nothing."""
    name = scope.column(test.column)
    column = quoted(name)
    there = scope.referenced(test.to, test.to_column)
    failing = (
        f"SELECT here.* FROM {quoted(scope.view)} AS here "
        f"LEFT ANTI JOIN {quoted(there.view)} AS there "
        f"ON here.{column} = there.{quoted(there.column)} "
        f"WHERE here.{column} IS NOT NULL"
    )
    proof = Proof(name, lambda here: holds(here, there.few()))
    return Check(test.name, failing, views=(scope.view, there.view), proof=proof)


def holds(here: pa.ChunkedArray, there: pa.ChunkedArray | None) -> bool:
    import pyarrow.compute as pc

    if there is None or here.type != there.type or not compares(here.type):
        return False
    missing = pc.invert(pc.is_in(pc.unique(here).drop_null(), value_set=there))
    return not pc.any(missing, min_count=0).as_py()
