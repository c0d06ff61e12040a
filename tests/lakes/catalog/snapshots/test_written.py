"""What snapshots wrote, by table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.lakes.catalog.snapshots.written import Written
from penstock.lakes.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_files_rows_and_deleted_rows_of_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/l.sqlite"
    with Lake.attach(uri, data_path=str(tmp_path / "d"), spark=spark) as lake:
        lake.sql("CREATE TABLE t (id BIGINT)")
        lake.table("t").append(pa.table({"id": list(range(100))}))
        appended = lake.catalog.latest().id
        lake.sql("DELETE FROM t WHERE id >= 70")
        deleted = lake.catalog.latest().id
        found = lake.catalog.written_in([appended, deleted])
        first = found[appended, "main.t"]
        assert (first.files, first.rows, first.deleted) == (1, 100, 0)
        assert first.bytes > 0
        assert found[deleted, "main.t"] == Written(deleted=30)
        assert lake.catalog.written_in([]) == {}
        assert lake.catalog.count_rows("main", "t", deleted) == 70
        assert lake.catalog.count_rows("main", "t", 0) is None
