"""A file in another's place is refused by whoever opens it, Spark or not."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import DataFileCorrupt
from penstock.lakes.lake import Lake
from tests import duck

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Act = Callable[[Lake], object]
ACTS: dict[str, Act] = {
    "delete": lambda lake: lake.sql("DELETE FROM t WHERE k = 1"),
    "update": lambda lake: lake.sql("UPDATE t SET v = 'x' WHERE k = 1"),
    "merge": lambda lake: lake.sql(
        "MERGE INTO t USING (SELECT 1 AS k, 'x' AS v) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    ),
    "merge_adjacent_files": lambda lake: lake.merge_adjacent_files("main.t"),
    "rewrite_data_files": lambda lake: lake.rewrite_data_files("main.t", delete_threshold=0),
    "query": lambda lake: lake.sql("SELECT count(v) FROM t").collect(),
}
INSERT = "INSERT INTO {} SELECT range, 'v' || range FROM range({}, {})"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """``t`` of four files, two with a delete file, and ``other``, of the same columns."""
    uri, data = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", str(tmp_path / "data/")
    with duck.attach(uri, data, inline=0) as connection:
        for name in ("t", "other"):
            connection.execute(f"CREATE TABLE {name} (k BIGINT, v VARCHAR)")
        inserts = [("t", 0, 10), ("t", 10, 20), ("t", 20, 30), ("t", 30, 40), ("other", 0, 99)]
        for insert in inserts:
            connection.execute(INSERT.format(*insert))
        for where in ("k = 3", "k = 13"):
            connection.execute(f"DELETE FROM t WHERE {where}")
    with Lake.attach(uri, data_path=data, spark=spark) as attached:
        yield attached


def files(lake: Lake, name: str) -> Sequence[Path]:
    table = lake.catalog.table("main", name, lake.catalog.latest().id)
    listed = lake.catalog.files(table, lake.catalog.latest().id).files
    return [Path(file.path) for file in listed]


@pytest.mark.parametrize("act", ACTS)
def test_a_data_file_of_another_table(lake: Lake, act: str) -> None:
    for path in files(lake, "t"):
        shutil.copyfile(files(lake, "other")[0], path)
    before = lake.catalog.latest().id
    with pytest.raises(DataFileCorrupt, match=r"bytes where the catalog says"):
        ACTS[act](lake)
    assert lake.catalog.latest().id == before


@pytest.mark.parametrize("act", ["delete", "update", "rewrite_data_files"])
def test_delete_files_in_each_other_s_place(lake: Lake, act: str) -> None:
    table = lake.catalog.table("main", "t", lake.catalog.latest().id)
    file, other, *_ = lake.catalog.files(table, lake.catalog.latest().id).files
    assert file.delete is not None
    assert other.delete is not None
    assert file.delete.size_bytes == other.delete.size_bytes, "the size alone must not tell"
    first, second = Path(file.delete.path), Path(other.delete.path)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    with pytest.raises(DataFileCorrupt, match=r"delete file .* of main\.t.*it deletes rows of"):
        ACTS[act](lake)


def test_a_footer_of_another_length(lake: Lake) -> None:
    """Same size, same rows: only the footer tells."""
    with closing(sqlite3.connect(lake.catalog.uri.removeprefix("ducklake:sqlite:"))) as catalog:
        catalog.execute("UPDATE ducklake_data_file SET footer_size = footer_size + 1")
        catalog.commit()
    with pytest.raises(DataFileCorrupt, match="bytes of footer where the catalog says"):
        ACTS["rewrite_data_files"](lake)
