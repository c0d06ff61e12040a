"""Data tests looked at before rows are written: their columns, bounds and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.engine.checks.check import Scope, find_column, quoted
from penstock.engine.checks.expression import columns_in, in_spark
from penstock.engine.checks.run import build
from penstock.errors import ArgumentError, Location, QueryFailed
from penstock.lazy import exp
from penstock.model.definition.model import Model
from penstock.model.values.data_test import (
    CustomTest,
    DataTest,
    ExpressionTest,
    RelationshipsTest,
    columns_of,
)
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql
from penstock.sql.missing import missing_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.destinations.values import Rows
    from penstock.engine.checks.check import ReferencedTable
    from penstock.model.values.asset import Asset

_VIEW = "tested"


def require(model: Model, types: Mapping[str, str], session: SparkSession) -> None:
    """Raise for the first test that rows of these columns, with their types, cannot have.

    Tests that only warn keep no row from being written.
    """
    for test, place in model.placed_tests:
        if test.severity != "warn":
            verify(test, place, types, session, model.query.dialect)


def verify(
    test: DataTest,
    place: Location,
    types: Mapping[str, str],
    session: SparkSession,
    dialect: str,
) -> None:
    """Raises ColumnNotFound, ArgumentError, QueryFailed, at the test's place."""
    for name in columns_of(test):
        find_column(name, tuple(types), "the result", place)
    if isinstance(test, RelationshipsTest | CustomTest):
        return
    scope = Scope(_VIEW, types, "t", place, _no_table, _no_script, dialect)
    build(test, scope)
    if isinstance(test, ExpressionTest):
        _verify_condition(test, scope, test.location or place, session)


def _verify_condition(
    test: ExpressionTest, scope: Scope, place: Location, session: SparkSession
) -> None:
    """Let Spark analyse the condition over columns of these types, without rows."""
    from penstock.sql.dialect import parse
    from penstock.sql.text import Unreadable

    sql = in_spark(test.sql, test.dialect or scope.dialect, place)
    known = tuple(scope.types)
    try:
        (tree,) = parse(f"SELECT 1 FROM {_VIEW} WHERE ({sql}\n)")
        if isinstance(tree, exp.Select):
            for missing in missing_columns(tree, {_VIEW: known}):
                find_column(missing.name, known, "the result", place)
    except (Unreadable, ValueError):
        pass  # Spark may read it
    names = columns_in(sql, known) or known
    columns = ", ".join(f"CAST(NULL AS {scope.types[name]}) AS {quoted(name)}" for name in names)
    try:
        with explained():
            query = f"SELECT ({sql}\n) AS condition FROM (SELECT {columns}) AS {_VIEW}"
            ((_, kind),) = run_sql(session, query).dtypes
    except QueryFailed as error:
        error.location = place
        raise
    if kind not in {"boolean", "void"}:
        raise ArgumentError(
            f"the data test's condition `{test.sql}` is {kind}, and not true or false",
            hint="write a comparison: id <> 0 instead of id",
            location=place,
        )


def _no_table(asset: Asset) -> ReferencedTable:
    raise AssertionError(f"no test but relationships reads {asset.path}")


def _no_script(test: CustomTest) -> tuple[Rows, str]:
    raise AssertionError(f"{test.path} is not a script")
