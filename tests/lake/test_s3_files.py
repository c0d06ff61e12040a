"""Files in S3 are added, come back in a rollback, and are looked for; by pyarrow, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.lake import storage
from penstock.lake.changes import ChangeSet, TableChange
from penstock.lake.lake import Lake
from penstock.lake.recovery.backup import check_files
from tests import s3


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with s3.server(tmp_path) as store:
        uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
        with Lake.attach(uri, data_path=f"s3://{s3.BUCKET}/l/", storage=store) as found:
            found.sql("CREATE TABLE t (i BIGINT, c VARCHAR)")
            yield found


def write(path: str) -> None:
    system, place = storage.open_system(path)
    with system.open_output_stream(place) as out:
        pq.write_table(pa.table({"i": [1, 2, 3]}), out)


def test_added_and_rolled_back(lake: Lake) -> None:
    for country in ("nl", "de"):
        write(f"s3://{s3.BUCKET}/in/c={country}/x.parquet")
    added = lake.add_data_files("t", f"s3://{s3.BUCKET}/in/*/*.parquet")
    assert added.snapshot is not None
    assert added.rows == 6
    table = lake.table("t").info()
    files = [file.id or 0 for file in lake.catalog.files(table, added.snapshot.id).files]
    gone = TableChange("main", "t", table_id=table.id, end=tuple(files))
    lake.catalog.commit(lake.catalog.latest(), ChangeSet(tables=(gone,)))
    assert lake.table("t").rollback(added.snapshot.id).files_restored == 2
    paths = {file.data_file for file in lake.list_files("t")}
    assert len(paths) == 2
    assert paths <= set(storage.list_files(lake.catalog.data_path))
    assert all("/c=" in path for path in paths)  # only the path has the column's value
    assert check_files(lake.catalog).missing == ()
    storage.remove_file(min(paths))
    assert check_files(lake.catalog).missing == (min(paths),)
