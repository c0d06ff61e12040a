"""``data_test relationships <column> -> <asset>.<column>``: every value exists over there."""

from __future__ import annotations

from penstock.engine.checks.check import Check, Proof, Scope, quoted
from penstock.lakes.rows.route import compares
from penstock.lazy import pa, pc
from penstock.model.values.data_test import RelationshipsTest


def build(test: RelationshipsTest, scope: Scope) -> Check:
    """A failure is a row whose value the other table lacks; NULL refers to nothing."""
    name = scope.column(test.column)
    column = quoted(name)
    referenced = scope.referenced(test.to, test.to_column)
    failing = (
        f"SELECT tested.* FROM {quoted(scope.view)} AS tested "
        f"LEFT ANTI JOIN {quoted(referenced.view)} AS referenced "
        f"ON tested.{column} = referenced.{quoted(referenced.column)} "
        f"WHERE tested.{column} IS NOT NULL"
    )
    proof = Proof((name,), lambda rows: holds(rows[name], referenced.collected()))
    views, called = (scope.view, referenced.view), {referenced.view: referenced.called}
    return Check(test.name, failing, views=views, called=called, proof=proof)


def holds(values: pa.ChunkedArray, referenced: pa.ChunkedArray | None) -> bool:
    if referenced is None or values.type != referenced.type or not compares(values.type):
        return False
    missing = pc.invert(pc.is_in(pc.unique(values).drop_null(), value_set=referenced))
    return not pc.any(missing, min_count=0).as_py()
