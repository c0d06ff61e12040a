"""Files in S3 are added, come back in a rollback, and are looked for; by pyarrow, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.lakes import storage
from penstock.lakes.format.changes import ChangeSet, TableChange
from penstock.lakes.format.files import DataFile
from penstock.lakes.lake import Lake
from penstock.lakes.maintenance.reading import pieces
from penstock.lakes.recovery.backup import check_files, missing_below
from tests import s3
from tests.s3_relay import relay


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with s3.server(tmp_path) as store:
        uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
        with Lake.attach(uri, data_path=f"s3://{s3.BUCKET}/l/", storage=store) as attached:
            attached.sql("CREATE TABLE t (i BIGINT, c VARCHAR)")
            yield attached


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


def test_missing_files_are_seen_whether_asked_for_or_listed(lake: Lake) -> None:
    directory = f"s3://{s3.BUCKET}/l/main/t/"
    there = [f"{directory}x/{number}.parquet" for number in range(3)]
    for path in there:
        write(path)
    gone = f"{directory}y.parquet"
    assert missing_below(directory, [*there, gone]) == (gone,)
    assert missing_below(directory, [*there, gone], listed_above=2) == (gone,)


def test_a_large_file_is_read_in_blocks(tmp_path: Path) -> None:
    """Of 400 column chunks, in the order of the file; nothing is requested twice."""
    with s3.server(tmp_path, "blocks") as store, relay(str(store["endpoint"])) as proxy:
        path = "s3://blocks/large.parquet"
        storage.use(path, storage.Storage.of({**store, "endpoint": proxy.endpoint}))
        system, place = storage.open_system(path)
        rows = pa.table({f"c{n}": pa.array(range(n, 400_000 + n)) for n in range(4)})
        with system.open_output_stream(place) as out:
            pq.write_table(
                rows, out, row_group_size=4_000, compression="none", use_dictionary=False
            )
        size = storage.size_of(path) or 0
        file = DataFile(path, rows.num_rows, size, 0)
        proxy.asked.clear()
        read = [piece.rows for piece in pieces([file], table="main.t", rows=50_000, memory=1 << 30)]
    assert [piece.num_rows for piece in read] == [50_000] * 8
    assert pa.concat_tables(read) == rows
    assert size > 8 << 20
    asked = [request for request in proxy.asked if request.method == "GET"]
    assert len(asked) <= 3
    assert sum(request.answered for request in asked) < size + 100_000
