"""A table's statistics as a whole, on each of the three databases."""

from __future__ import annotations

import duckdb
import pytest

from penstock.errors import CatalogCorrupt
from penstock.lakes.catalog.commit_context import Totals
from penstock.lakes.catalog.statistics.totals import from_rows
from penstock.lakes.format.statistics import TableColumnStats
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.catalog.conftest import Place


def test_a_column_without_nulls_becomes_not_null(place: Place) -> None:
    """No file is read: by the statistics none can match."""
    with duck.attach(place.uri, place.data_path) as connection:
        connection.execute("CREATE TABLE t (a INT, b INT)")
        connection.execute("INSERT INTO t VALUES (1, NULL), (2, 3)")
    with Lake.attach(place.uri) as lake:
        lake.table("t").alter.set_not_null("a")
        assert [column.nullable for column in lake.table("t").schema.columns] == [False, True]
    with pytest.raises(duckdb.Error, match="NOT NULL"):
        duck.rows(place.uri, "INSERT INTO t (b) VALUES (4)")


def test_rows_of_the_catalog_are_totals_with_a_column_each() -> None:
    rows = [(7, 3, 5, 400, 1, False, None, "1", "9"), (7, 3, 5, 400, 2, True, None, None, None)]
    assert from_rows(rows) == Totals(
        True,
        3,
        5,
        400,
        {
            1: TableColumnStats(1, False, None, "1", "9"),
            2: TableColumnStats(2, True, None, None, None),
        },
    )


def test_a_table_without_statistics_has_no_totals() -> None:
    assert from_rows([]) == from_rows([(None,) * 9]) == Totals()


def test_a_count_that_is_no_number_is_a_damaged_catalog() -> None:
    with pytest.raises(CatalogCorrupt, match="record_count"):
        from_rows([(7, "3", 5, None, None, None, None, None, None)])
