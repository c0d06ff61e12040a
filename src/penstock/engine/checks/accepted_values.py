"""``data_test accepted_values <column> = a,b,c``: NULL is accepted, as `not_null` minds it."""

from __future__ import annotations

from penstock.engine.checks.check import Check, of_rows, quoted
from penstock.engine.checks.scope import Scope
from penstock.model.data_test import AcceptedValuesTest

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
    return of_rows(test.name, scope.view, f"{column} IS NOT NULL AND NOT {found}", args)
