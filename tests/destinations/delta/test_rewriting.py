"""Data files that lose rows are written again without them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.destinations.delta.rewriting import rewritten
from penstock.lake.format.changes import TableChange
from penstock.lake.format.files import DataFile, write
from penstock.lake.format.schema import Column, TableSchema

SCHEMA = TableSchema((Column("id", "int64", id=1),))
ROWS = 300_000  # several batches


@pytest.mark.parametrize("gone", [[0, 131_071, 131_072, ROWS - 1], list(range(ROWS))])
def test_a_file_without_some_rows(tmp_path: Path, gone: list[int]) -> None:
    path = f"{tmp_path}/a.parquet"
    pq.write_table(pa.table({"id": pa.array(range(ROWS), pa.int64())}), path)
    file = DataFile(path, ROWS, Path(path).stat().st_size, 0, id=7)
    delete = write(f"{tmp_path}/d.parquet", path, pa.array(gone, pa.int64()))
    change = TableChange("main", "t", table_id=1, deletes={7: delete})
    made, paths = rewritten(change, {7: file}, SCHEMA)
    assert (made.end, made.deletes) == ((7,), None)
    kept = ROWS - len(gone)
    assert [each.record_count for each in made.add] == [kept] * bool(kept)
    assert [each.path for each in made.add] == list(paths)
    for each in made.add:
        ids = pq.read_table(each.path)["id"].to_pylist()
        assert ids == sorted(set(range(ROWS)) - set(gone))
        assert (each.stats[0].min_value, each.stats[0].max_value) == ("1", str(ROWS - 2))
    left = {name.name for name in tmp_path.iterdir()} - {"a.parquet", "d.parquet"}
    assert len(left) == len(made.add)


def test_texts_that_are_views(tmp_path: Path) -> None:
    """The files of delta-rs tell Arrow to read texts as views, which it cannot filter."""
    texts = pa.array(["a", None, "c"], pa.string_view())
    columns = {
        "text": texts,
        "data": pa.array([b"a", b"b", b"c"], pa.binary_view()),
        "list": pa.array([["a"], [], ["c"]], pa.list_(pa.string_view())),
        "map": pa.array([[("a", 1)], [], [("c", 3)]], pa.map_(pa.string_view(), pa.int64())),
        "struct": pa.StructArray.from_arrays([texts], ["x"]),
    }
    path = f"{tmp_path}/a.parquet"
    pq.write_table(pa.table(columns), path)
    delete = write(f"{tmp_path}/d.parquet", path, pa.array([1], pa.int64()))
    change = TableChange("main", "t", table_id=1, deletes={7: delete})
    file = DataFile(path, 3, Path(path).stat().st_size, 0, id=7)
    made, _ = rewritten(change, {7: file}, SCHEMA)
    rows = pq.read_table(made.add[0].path).to_pylist()
    assert rows == [row for row in pq.read_table(path).to_pylist() if row["text"]]
    assert [row["text"] for row in rows] == ["a", "c"]
