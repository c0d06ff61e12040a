"""``data_test accepted_values <column> = a,b,c``; NULL is accepted: `not_null` tests for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.engine.checks.check import Check, Proof, Scope, of_rows, quoted
from penstock.lazy import pa, pc
from penstock.model.values.data_test import AcceptedValuesTest

_PLAIN = re.compile("-?[0-9]{1,18}")
# Compared in the column's type, so that 1 accepts 1.0; other types are compared as text.
_TYPED = frozenset(
    {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean", "date"}
)


def build(test: AcceptedValuesTest, scope: Scope) -> Check:
    name = scope.column(test.column)
    column = quoted(name)
    args = {f"{scope.prefix}_{number}": value for number, value in enumerate(test.values)}
    kind = scope.type_name(name)
    if kind.partition("(")[0] in _TYPED:
        # A value that does not fit the type becomes NULL by try_cast, and accepts nothing.
        accepted = ", ".join(f"try_cast(:{arg} AS {kind})" for arg in args)
        accepts = f"coalesce({column} IN ({accepted}), false)"
    else:
        accepted = ", ".join(f":{arg}" for arg in args)
        accepts = f"CAST({column} AS STRING) IN ({accepted})"
    failing = f"{column} IS NOT NULL AND NOT {accepts}"
    proof = Proof((name,), lambda rows: holds(rows[name], test.values))
    return of_rows(test.name, scope.view, failing, args, proof)


def holds(column: pa.ChunkedArray, values: Sequence[str]) -> bool:
    """For strings and integers; of the accepted values only plain digits count as integers."""
    distinct = pc.unique(column).to_pylist()
    if pa.types.is_string(column.type):
        return {*values, None}.issuperset(distinct)
    if pa.types.is_integer(column.type):
        plain = (int(value) for value in values if _PLAIN.fullmatch(value))
        return {*plain, None}.issuperset(distinct)
    return False
