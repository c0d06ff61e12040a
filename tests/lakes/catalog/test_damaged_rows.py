"""Damaged rows of a SQLite catalog, which keeps any value in any column, are a CatalogCorrupt."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import CatalogCorrupt
from penstock.lakes.lake import Lake

ROWS = pa.table({"i": pa.array(range(30), pa.int64())})


def _append(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.table("t").append(ROWS)


ACTS: Mapping[str, Callable[[Lake], object]] = {
    "append": _append,
    "snapshots": Lake.snapshots,
    "tables": Lake.tables,
    "merge": Lake.merge_adjacent_files,
    "rewrite": Lake.rewrite_data_files,
    "cleanup": Lake.cleanup_old_files,
    "expire": lambda lake: lake.expire_snapshots(versions=[0]),
    "expire_dry": lambda lake: lake.expire_snapshots(versions=[0], dry_run=True),
}


def _option(key: str, value: str) -> str:
    return f"INSERT INTO ducklake_metadata(key, value) VALUES ('{key}', '{value}')"


@pytest.mark.parametrize(
    ("damage", "acts"),
    [
        ("UPDATE ducklake_snapshot SET snapshot_time = 'yesterday'", "append snapshots tables"),
        ("DELETE FROM ducklake_snapshot", "append tables expire expire_dry"),
        ("UPDATE ducklake_snapshot SET snapshot_time = NULL", "append snapshots merge"),
        ("UPDATE ducklake_snapshot SET next_file_id = 'x'", "append merge"),
        ("UPDATE ducklake_table_stats SET next_row_id = 'x'", "append"),
        ("UPDATE ducklake_table_stats SET next_row_id = NULL", "append"),
        ("UPDATE ducklake_table_stats SET record_count = 'x'", "append"),
        ("UPDATE ducklake_data_file SET record_count = 'x'", "append merge"),
        ("DELETE FROM ducklake_snapshot", "append tables merge"),
        (_option("parquet_compression", "blosc"), "append merge"),
        (_option("parquet_row_group_size", "-1x"), "append merge rewrite"),
        (_option("parquet_version", "V9"), "append"),
        (_option("data_inlining_row_limit", "many"), "append"),
        (_option("rewrite_delete_threshold", "half"), "rewrite"),
        (_option("delete_older_than", "some time"), "cleanup"),
    ],
)
def test_damage(tmp_path: Path, damage: str, acts: str) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/meta"
    with Lake.attach(uri, data_path=f"{tmp_path}/data", data_inlining_row_limit=0) as lake:
        lake.sql("CREATE TABLE t(i BIGINT)")
        for _ in range(2):
            _append(lake)
    with sqlite3.connect(tmp_path / "meta") as connection:
        connection.execute(damage)
    connection.close()
    with Lake.attach(uri) as lake:
        for name in acts.split():
            with pytest.raises(CatalogCorrupt, match="damaged"):
                ACTS[name](lake)
