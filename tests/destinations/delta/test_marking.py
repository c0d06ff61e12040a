"""Rows that go by deletion vectors, and when a file is written again all the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.delta.actions import DeletionVector
from penstock.delta.vectors import as_delete_file, positions
from penstock.destinations.delta.actions import added
from penstock.destinations.delta.marking import Settled, discard, needs_settling, rewritten, settled
from penstock.lakes.format.changes import TableChange
from penstock.lakes.format.files import DataFile, DeleteFile, Table, write
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.reading.deleted.positions import Whose, load
from penstock.lakes.storage import make_directory
from penstock.uuid7 import new_uuid7

SCHEMA = TableSchema((Column("id", "int64", id=1),))
ROWS = 10


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(1, "uuid", "main", "t", f"{tmp_path}/", SCHEMA, 1)


def file(table: Table, id_: int) -> DataFile:
    path = f"{table.path}p={id_}/a b.parquet"
    make_directory(f"{table.path}p={id_}")
    pq.write_table(pa.table({"id": pa.array(range(ROWS), pa.int64())}), path)
    return DataFile(path, ROWS, Path(path).stat().st_size, 0, id=id_)


def delete(table: Table, data: DataFile, gone: list[int]) -> DeleteFile:
    folder = f"{table.path}{new_uuid7()}/_penstock_number=0"
    make_directory(folder)
    return write(f"{folder}/deletes.parquet", data.path, pa.array(gone, pa.int64()))


def settle(table: Table, gone: dict[int, list[int]], *, by_vectors: bool = True) -> Settled:
    files = {id_: file(table, id_) for id_ in gone}
    deletes = {id_: delete(table, files[id_], rows) for id_, rows in gone.items()}
    change = TableChange("main", "t", table_id=1, deletes=deletes)
    return settled(change, files, table, by_vectors=by_vectors)


def left(table: Table) -> set[str]:
    return {path.suffix for path in Path(table.path).rglob("*.*")}


@pytest.mark.parametrize("most", [1, 5])
def test_up_to_half_of_a_file_is_marked(table: Table, most: int) -> None:
    gone = {7: list(range(most)), 8: [9]}
    made = settle(table, gone)
    assert (made.change.end, made.change.add) == ((), ())
    assert len(set(made.written)) == 1
    deletes = made.change.deletes or {}
    assert {id_: each.delete_count for id_, each in deletes.items()} == {7: most, 8: 1}
    for id_, rows in gone.items():
        data = file(table, id_)
        vector = made.marks[data.path]
        (found,) = positions(table.path, {"a": vector}, "t").values()
        assert found.to_pylist() == rows
        (seen,) = load([DataFile(data.path, ROWS, 1, 0, id=id_, delete=deletes[id_])], WHOSE)
        assert seen.positions.to_pylist() == rows
    made.discard()
    assert ".bin" not in left(table)


WHOSE = Whose("main.t", None)


def test_a_file_that_is_mostly_gone_is_written_again(table: Table) -> None:
    made = settle(table, {7: [0, 1, 2, 3, 4, 9], 8: [3]})
    assert made.change.end == (7,)
    assert [each.record_count for each in made.change.add] == [4]
    assert list(made.change.deletes or {}) == [8]
    assert len(made.written) == 2
    assert all(Path(path).is_file() for path in made.written)


def test_without_vectors_files_are_written_again(table: Table) -> None:
    made = settle(table, {7: [3]}, by_vectors=False)
    assert (made.marks, made.change.deletes, made.change.end) == ({}, None, (7,))


def test_delete_files_that_nothing_names_are_removed(table: Table) -> None:
    data = file(table, 7)
    one, other = delete(table, data, [1]), delete(table, data, [2])
    deletes = {7: one, 8: other, 9: DeleteFile("a/b/c.parquet", 1, 1, 1)}
    discard(TableChange("main", "t", table_id=1, deletes=deletes))
    assert not Path(one.path).parent.parent.exists()
    assert not Path(other.path).exists()
    assert Path(data.path).exists()


def test_a_vector_in_an_index(table: Table) -> None:
    vector = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 3, 4)
    found = as_delete_file(table.path, vector)
    assert found.path.startswith(f"{table.path}ab/deletion_vector_")
    assert (found.delete_count, found.size_bytes, found.footer_size) == (3, 48, 4)
    assert found.format == "vector"


@pytest.mark.parametrize("by_vectors", [True, False])
def test_files_that_are_brought_back_without_some_rows(table: Table, *, by_vectors: bool) -> None:
    """As a rollback has them: new files with delete files of their own."""
    back = [replace(file(table, id_), id=None) for id_ in (7, 8)]
    folder = f"{table.path}{new_uuid7()}"
    make_directory(folder)
    gone = write(f"{folder}/x-delete.parquet", back[0].path, pa.array([1, 2], pa.int64()))
    change = TableChange("main", "t", table_id=1, add=(replace(back[0], delete=gone), back[1]))
    assert needs_settling(change)
    made = settled(change, {}, table, by_vectors=by_vectors)
    first, second = made.change.add
    assert second == back[1]
    if by_vectors:
        assert first.delete == as_delete_file(table.path, made.marks[back[0].path])
        line = added(table.path, first, (), SCHEMA, now=1, vector=made.marks[first.path])["add"]
        assert line["deletionVector"]["cardinality"] == 2
        assert json.loads(line["stats"])["numRecords"] == ROWS
    else:
        assert first.delete is None
        assert pq.read_table(first.path)["id"].to_pylist() == [0, *range(3, ROWS)]
    discard(change)
    assert not Path(gone.path).exists()
    assert Path(folder).exists()


REWRITING_ROWS = 300_000  # several batches


@pytest.mark.parametrize(
    "gone", [[0, 131_071, 131_072, REWRITING_ROWS - 1], list(range(REWRITING_ROWS))]
)
def test_a_file_without_some_rows(tmp_path: Path, gone: list[int]) -> None:
    path = f"{tmp_path}/a.parquet"
    pq.write_table(pa.table({"id": pa.array(range(REWRITING_ROWS), pa.int64())}), path)
    file = DataFile(path, REWRITING_ROWS, Path(path).stat().st_size, 0, id=7)
    delete = write(f"{tmp_path}/d.parquet", path, pa.array(gone, pa.int64()))
    change = TableChange("main", "t", table_id=1, deletes={7: delete})
    made, paths = rewritten(change, {7: file}, SCHEMA)
    assert (made.end, made.deletes) == ((7,), None)
    kept = REWRITING_ROWS - len(gone)
    assert [each.record_count for each in made.add] == [kept] * bool(kept)
    assert [each.path for each in made.add] == list(paths)
    for each in made.add:
        ids = pq.read_table(each.path)["id"].to_pylist()
        assert ids == sorted(set(range(REWRITING_ROWS)) - set(gone))
        assert (each.stats[0].min_value, each.stats[0].max_value) == ("1", str(REWRITING_ROWS - 2))
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
