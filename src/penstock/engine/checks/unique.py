"""``data_test unique <column>[, <column>...]``: a failure is a key that occurs more than once."""

from __future__ import annotations

import re

from penstock.engine.checks.check import Check, Proof, Scope, UniqueKey, quoted
from penstock.lakes.rows.route import compares
from penstock.lazy import pa
from penstock.model.values.data_test import UniqueTest

# Types whose values have equal hashes where Spark groups them together. Floating point has two
# zeros and many NaNs; what is nested may hold it.
_HASHED = re.compile(
    r"tinyint|smallint|int|bigint|boolean|string|binary|date|timestamp(_ntz)?|decimal\(.*\)"
)


def build(test: UniqueTest, scope: Scope) -> Check:
    """A key with a NULL is not counted (``not_null`` tests for it), unless NULLs are equal."""
    names = tuple(scope.column(name) for name in test.columns)
    columns = ", ".join(map(quoted, names))
    whole = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in names)
    counted = "" if test.nulls_equal else f"WHERE {whole} "
    failing = (
        f"SELECT {columns}, count(*) AS occurrences FROM {quoted(scope.view)} "
        f"{counted}GROUP BY {columns} HAVING count(*) > 1"
    )
    hashed = all(_HASHED.fullmatch(scope.type_name(name)) for name in names)
    return Check(
        test.name,
        failing,
        key=UniqueKey(names, test.nulls_equal) if hashed else None,
        views=(scope.view,),
        proof=Proof(names, lambda rows: holds(rows, nulls_equal=test.nulls_equal)),
    )


def holds(rows: pa.Table, *, nulls_equal: bool = False) -> bool:
    if not all(compares(kind) for kind in rows.schema.types):
        return False
    counted = rows if nulls_equal else rows.drop_null()
    keys = counted.group_by(counted.column_names, use_threads=False).aggregate([])
    return bool(keys.num_rows == counted.num_rows)
