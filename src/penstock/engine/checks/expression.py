"""``data_test expression <condition>``, and audits that are conditions of rows, of aggregates, or
queries. A condition that is NULL passes, as in a CHECK constraint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.checks.check import (
    Aggregate,
    Check,
    Proof,
    Scope,
    never,
    of_aggregates,
    of_rows,
    quoted,
)
from penstock.errors import ArgumentError, UnsupportedFeature
from penstock.lazy import exp
from penstock.model.values.data_test import AggregateTest, ExpressionTest, QueryTest, RowCountTest
from penstock.sql.dialect import normalized, to_spark
from penstock.sql.identifiers import fold
from penstock.sql.text import SqlExpression, Unreadable

if TYPE_CHECKING:
    from penstock.errors import Location

THIS_MODEL = "@this_model"


def build(test: ExpressionTest, scope: Scope) -> Check:
    """A failure is a row for which the condition is false."""
    sql = in_spark(test.sql, test.dialect or scope.dialect, test.location or scope.location)
    predicate = f"NOT ({sql}\n)"  # the line may end in a comment
    names = columns_in(sql, tuple(scope.types))
    proof = never(predicate, names) if names else None
    return of_rows(test.name, scope.view, predicate, proof=proof)


def in_spark(sql: str, dialect: str, location: Location | None) -> str:
    """Raises ArgumentError for what cannot be translated or read."""
    try:
        return to_spark(normalized(sql, dialect), dialect, expression=True)
    except (UnsupportedFeature, Unreadable) as error:
        message = (
            error.message if isinstance(error, UnsupportedFeature) else f"it cannot be read{error}"
        )
        raise ArgumentError(
            f"the data test's condition `{sql}`: {message}",
            hint="write it in another way, or as a script in tests/",
            location=location,
        ) from None


def columns_in(sql: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of ``columns`` that the condition names; none where it cannot be read."""
    tree = SqlExpression(sql).tree
    named = {fold(part.name) for part in tree.find_all(exp.Identifier)} if tree else set()
    return tuple(column for column in columns if fold(column) in named)


def build_row_count(test: RowCountTest, scope: Scope) -> Check:
    bounds = ((">=", test.minimum), ("<=", test.maximum))
    condition = " AND ".join(f"count(*) {sign} {n}" for sign, n in bounds if n is not None)
    first = next(iter(scope.types), None)
    low, high = test.minimum or 0, test.maximum
    proof = first and Proof(
        (first,), lambda rows: low <= rows.num_rows and (high is None or rows.num_rows <= high)
    )
    value = "count(*) AS row_count"
    return of_aggregates(test.name, scope.view, value, Aggregate(condition), proof or None)


def build_aggregate(test: AggregateTest, scope: Scope) -> Check:
    columns = tuple(scope.column(name) for name in test.columns)
    value = f"{test.value} AS value"
    return of_aggregates(test.name, scope.view, value, Aggregate(test.sql, columns))


def build_query(test: QueryTest, scope: Scope) -> Check:
    """A failure is a row of the query."""
    for name in test.columns:
        scope.column(name)
    failing = test.sql.replace(THIS_MODEL, quoted(scope.view))
    return Check(test.name, failing, views=(scope.view,))
