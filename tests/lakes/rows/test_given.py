"""Rows in the forms that users have them in.

Tests ``lakes/rows/append.py`` (rows given as values).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.errors import ArgumentError, TableNotFound
from penstock.lakes.lake import Lake

AT = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - a column without a zone
COLUMNS = "id INTEGER, s VARCHAR, at TIMESTAMP, d DECIMAL(9,2), b UTINYINT"


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Lake]:
    """Without Spark."""
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with Lake.attach(uri, data_path=f"{tmp_path}/d") as attached:
        attached.sql("CREATE TABLE t (id INTEGER, s VARCHAR, at TIMESTAMP)")
        yield attached


def relation(query: str) -> Any:
    return duckdb.connect().sql(query)


def test_without_spark(plain: Lake) -> None:
    table = plain.table("t")
    table.append(relation("SELECT range::INTEGER AS id, 's' || range AS s FROM range(2)"))
    table.append(pa.record_batch({"id": [7], "s": pa.array(["x"]).dictionary_encode()}))
    table.append(pa.table({"ID": [8], "s": pa.array(["y"], pa.large_string())}))
    assert table.to_arrow().select(["id", "s"]).to_pylist() == [
        {"id": 0, "s": "s0"},
        {"id": 1, "s": "s1"},
        {"id": 7, "s": "x"},
        {"id": 8, "s": "y"},
    ]
    assert table.to_arrow(version=1).num_rows == 0
    assert repr(plain.sql("INSERT INTO t (id) VALUES (9)")) == (
        "[{'num_affected_rows': 1, 'num_updated_rows': 0, 'num_deleted_rows': 0, "
        "'num_inserted_rows': 1}]"
    )


@pytest.mark.parametrize("rows", [5, "abc", {"id": [1]}, [1, 2], [{"id": 1}, 2]])
def test_what_is_not_rows(plain: Lake, rows: Any) -> None:
    with pytest.raises(ArgumentError, match="is not rows") as caught:
        plain.table("t").append(rows)
    assert "a relation of DuckDB" in (caught.value.hint or "")


@pytest.mark.spark
def test_changes_by_rows(lake: Lake) -> None:
    lake.sql(f"CREATE TABLE t ({COLUMNS}); INSERT INTO t (id, s) VALUES (1, 'a'), (2, 'b')")
    table = lake.table("t")
    table.merge([{"id": 1, "s": "new"}, {"id": 7, "s": "x"}], "id")
    table.merge(pa.table({"id": [2], "at": [AT], "d": [Decimal("1.5")]}), "id")
    with pytest.raises(ArgumentError, match="row 2 has no s"):
        table.merge([{"id": 1, "s": "new"}, {"id": 7}], "id")
    table.overwrite([{"id": 100, "d": Decimal("2.25"), "b": 200}], "id > 6")
    merge = table.merge_into([{"id": 100, "s": "m"}], "t.id = s.id")
    merge.when_matched_update(set={"s": "s.s"}).execute()
    rows = sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())
    assert rows == [
        (1, "new", None, None, None),
        (2, "b", AT, Decimal("1.50"), None),
        (100, "m", None, Decimal("2.25"), 200),
    ]
    assert table.to_arrow(where="id > 2").num_rows == 1
    assert table.changes(2).count() == table.changes(2, lake.snapshots()[-1].id).count() > 4


@pytest.mark.spark
def test_tables_of_their_own_columns(lake: Lake) -> None:
    table = lake.table("n")
    with pytest.raises(TableNotFound, match="does not exist"):
        table.merge([{"a": 1}], "a")
    table.append(relation("SELECT 1::UTINYINT AS a, TIMESTAMP '2026-01-02 03:04:05' AS at"))
    assert [column.type for column in table.schema.columns] == ["int16", "timestamp"]
    table.overwrite(relation("SELECT 'x'::ENUM('x', 'y') AS e, [1, 2] AS l"))
    assert table.to_arrow().to_pylist() == [{"e": "x", "l": [1, 2]}]
