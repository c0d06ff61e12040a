"""``data_test accepted_values <column> = a,b,c``: NULL is accepted, as `not_null` minds it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.engine.checks.check import Check, Proof, Scope, of_rows, quoted
from penstock.model.data_test import AcceptedValuesTest

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN = re.compile("-?[0-9]{1,18}")
# Compared as what they are, so that 1 accepts 1.0; everything else is compared as text.
_TYPED = frozenset(
    {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean", "date"}
)


def build(test: AcceptedValuesTest, scope: Scope) -> Check:
    name = scope.column(test.column)
    column = quoted(name)
    args = {f"{scope.prefix}_{number}": value for number, value in enumerate(test.values)}
    kind = scope.type_name(name)
    if kind.partition("(")[0] in _TYPED:
        # A value that is none of the type's (try_cast: NULL) accepts nothing.
        accepted = ", ".join(f"try_cast(:{arg} AS {kind})" for arg in args)
        found = f"coalesce({column} IN ({accepted}), false)"
    else:
        accepted = ", ".join(f":{arg}" for arg in args)
        found = f"CAST({column} AS STRING) IN ({accepted})"
    failing = f"{column} IS NOT NULL AND NOT {found}"
    proof = Proof(name, lambda rows: holds(rows, test.values))
    return of_rows(test.name, scope.view, failing, args, proof)


def holds(column: pa.ChunkedArray, values: Sequence[str]) -> bool:
    """Of texts and whole numbers; a number that is written in another way than plainly is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.unique(column).to_pylist()
    if pa.types.is_string(column.type):
        return {*values, None}.issuperset(found)
    if pa.types.is_integer(column.type):
        plain = (int(value) for value in values if _PLAIN.fullmatch(value))
        return {*plain, None}.issuperset(found)
    return False
