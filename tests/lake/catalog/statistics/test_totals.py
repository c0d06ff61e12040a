"""A table's statistics as a whole, on each of the three databases."""

from __future__ import annotations

import duckdb
import pytest

from penstock.lake.lake import Lake
from tests import duck
from tests.lake.catalog.conftest import Place


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
