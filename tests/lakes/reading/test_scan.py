"""Files made by hand, read as a table.

Tests ``lakes/reading/parquet/reading.py`` (files whatever their paths).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import DataFileCorrupt, DataFileMissing, QueryFailed
from penstock.lakes.format.files import (
    DataFile,
    DeleteFile,
    FileSet,
    InlinedPart,
    InlinedRows,
    NameMapping,
)
from penstock.lakes.format.schema import EMBEDDED_ROW_ID, Column, TableSchema
from penstock.lakes.reading import scan
from penstock.lakes.reading.deleted.positions import RowAddresses
from penstock.lakes.reading.scan import Scan
from penstock.spark import session
from penstock.spark.failures import explained
from tests.lakes.conftest import table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

KV = TableSchema((Column("k", "int64", 1), Column("v", "varchar", 2)))


@pytest.fixture
def prepared(spark: SparkSession) -> SparkSession:
    return session.prepare(spark)


def field(name: str, kind: pa.DataType, field_id: int | None) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)} if field_id else None)


def write(path: Path, columns: Mapping[pa.Field, Sequence[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(list(columns.values()), schema=pa.schema(list(columns))), path)
    return path


def kv(
    path: Path, keys: list[int], *, names: tuple[str, str] = ("k", "v"), ids: bool = True
) -> Path:
    first, second = (1, 2) if ids else (None, None)
    key, value = field(names[0], pa.int64(), first), field(names[1], pa.string(), second)
    return write(path, {key: keys, value: [f"v{key}" for key in keys]})


def data_file(path: Path, **more: Any) -> DataFile:
    rows = pq.read_metadata(path).num_rows
    return DataFile(str(path), rows, path.stat().st_size, 0, **more)


def delete_file(path: Path, positions: list[int], since: list[int] | None = None) -> DeleteFile:
    columns: dict[pa.Field, Sequence[object]] = {
        field("file_path", pa.string(), 2147483646): ["wherever"] * len(positions),
        field("pos", pa.int64(), 2147483645): positions,
    }
    if since:
        columns[field("_ducklake_internal_snapshot_id", pa.int64(), 2147483539)] = since
    write(path, columns)
    last = max(since) if since else None
    size = path.stat().st_size
    return DeleteFile(str(path), len(positions), size, 0, id=7, begin_snapshot=1, partial_max=last)


def read(spark: SparkSession, files: list[DataFile], schema: TableSchema = KV, **more: Any) -> Any:
    return table_of(scan.read(spark, Scan("main.t", schema, FileSet(tuple(files), **more))))


def test_columns_go_by_field_id(prepared: SparkSession, tmp_path: Path) -> None:
    old = kv(tmp_path / "old.parquet", [1, 2], names=("was", "called"))
    new = kv(tmp_path / "new.parquet", [3])
    assert read(prepared, [data_file(old), data_file(new)]) == [(1, "v1"), (2, "v2"), (3, "v3")]


def test_what_one_task_reads_is_not_shuffled(
    prepared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    single = [data_file(kv(tmp_path / "one.parquet", [1, 2, 1]))]
    two = [*single, data_file(kv(tmp_path / "two.parquet", [2]))]
    text = os.urandom(3 << 20).hex()  # a file that is split
    key, value = field("k", pa.int64(), 1), field("v", pa.string(), 2)
    path = write(tmp_path / "large.parquet", {key: [1, 2, 1], value: [text] * 3})
    large = [data_file(path)]

    def counted(files: list[DataFile]) -> tuple[bool, list[Any]]:
        df = scan.read(prepared, Scan("main.t", KV, FileSet(tuple(files)))).groupBy("k").count()
        df.explain()
        return "Exchange" in capsys.readouterr().out, table_of(df)

    assert counted(single) == (False, [(1, 2), (2, 1)])
    assert counted(two) == (True, [(1, 2), (2, 2)])
    assert counted(large) == (True, [(1, 2), (2, 1)])


def test_missing_columns_have_their_initial_default(prepared: SparkSession, tmp_path: Path) -> None:
    schema = TableSchema((*KV.columns, Column("n", "int32", 3, initial_default="7")))
    old = kv(tmp_path / "old.parquet", [1])
    new = write(
        tmp_path / "new.parquet",
        {field("k", pa.int64(), 1): [2], field("n", pa.int32(), 3): pa.array([None], pa.int32())},
    )
    assert read(prepared, [data_file(old), data_file(new)], schema) == [
        (1, "v1", 7),
        (2, None, None),
    ]


def test_promoted_types(prepared: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {field("k", pa.int16(), 1): [5]})
    assert read(prepared, [data_file(path)]) == [(5, None)]


def test_files_under_a_mapping_go_by_name(prepared: SparkSession, tmp_path: Path) -> None:
    path = kv(tmp_path / "a.parquet", [1], names=("key", "value"), ids=False)
    mapping = NameMapping(4, {("key",): 1, ("value",): 2})
    partly = NameMapping(5, {("key",): 1})
    files = [data_file(path, mapping_id=4), data_file(path, mapping_id=5)]
    rows = read(prepared, files, mappings={4: mapping, 5: partly})
    assert rows == [(1, "v1"), (1, None)]


def test_files_without_ids_or_mapping_are_refused(prepared: SparkSession, tmp_path: Path) -> None:
    path = kv(tmp_path / "a.parquet", [1], ids=False)
    with pytest.raises(DataFileCorrupt, match="field Ids"), explained(table="main.t"):
        read(prepared, [data_file(path)])


ODD = [
    "a b",
    "100%",
    "%20",
    "a=b",
    "ü",
    "[x]",
    "{a,b}",
    "*",
    "?",
    "back\\slash",
    "c:d",
    "[e]:f",
    "+",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_paths(prepared: SparkSession, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name / "deep"
    first, second = kv(folder / "a.parquet", [1, 2, 3]), kv(folder / "b.parquet", [4])
    gone = delete_file(folder / "gone.parquet", [1])
    files = [data_file(first, delete=gone), data_file(second)]
    assert read(prepared, files) == [(1, "v1"), (3, "v3"), (4, "v4")]


@pytest.mark.parametrize("folder", ["plain", "a b%20+[ü]"])
def test_deletes_belong_to_files_by_the_catalog(
    prepared: SparkSession, tmp_path: Path, folder: str
) -> None:
    """Names that come twice, on both sides, and a path in the delete file that says nothing."""
    files: list[DataFile] = []
    for at, gone in enumerate(([0], [1], [])):
        path = kv(tmp_path / folder / str(at) / "data.parquet", [10 * at, 10 * at + 1])
        place = tmp_path / folder / str(at) / "x" / "d.parquet"
        files.append(data_file(path, delete=delete_file(place, gone) if gone else None))
    assert [row[0] for row in read(prepared, files)] == [1, 10, 20, 21]


def test_deletes_of_later_snapshots_do_not_count(prepared: SparkSession, tmp_path: Path) -> None:
    gone = delete_file(tmp_path / "d.parquet", [0, 1, 2], since=[3, 4, 5])
    file = data_file(kv(tmp_path / "a.parquet", [1, 2, 3, 4]), delete=gone)
    for snapshot, left in ((3, [2, 3, 4]), (4, [3, 4]), (5, [4]), (9, [4])):
        df = scan.read(prepared, Scan("main.t", KV, FileSet((file,)), snapshot))
        assert [row[0] for row in table_of(df)] == left


def test_row_ids_follow_from_the_place_unless_embedded(
    prepared: SparkSession, tmp_path: Path
) -> None:
    plain = kv(tmp_path / "a.parquet", [1, 2])
    own = write(
        tmp_path / "b.parquet",
        {
            field("k", pa.int64(), 1): [3],
            field("_ducklake_internal_row_id", pa.int64(), 2147483540): [0],
        },
    )
    files = (data_file(plain, row_id_start=100), data_file(own, row_id_start=200))
    source = Scan("main.t", KV, FileSet(files))
    df: DataFrame = scan.read(prepared, source, positions=True)
    with_ids = scan.with_row_ids(prepared, source, df).select("k", scan.ROW_ID)
    assert table_of(with_ids) == [(1, 100), (2, 101), (3, 0)]


def test_no_files(prepared: SparkSession) -> None:
    empty = scan.read(prepared, Scan("main.t", KV, FileSet(())), positions=True)
    assert empty.collect() == []
    assert empty.columns == ["k", "v", scan.FILE, scan.POSITION, EMBEDDED_ROW_ID]


def test_a_missing_file_is_named(prepared: SparkSession, tmp_path: Path) -> None:
    path = kv(tmp_path / "a.parquet", [1])
    file = data_file(path)
    path.unlink()
    with pytest.raises(DataFileMissing, match=r"a\.parquet of main\.t") as caught:
        read(prepared, [file])
    assert caught.value.data["path"] == str(path)


def test_a_file_that_goes_while_it_is_read(prepared: SparkSession, tmp_path: Path) -> None:
    path = kv(tmp_path / "a.parquet", [1])
    df = scan.read(prepared, Scan("main.t", KV, FileSet((data_file(path),))))
    path.unlink()
    with pytest.raises(DataFileMissing, match=r"a\.parquet"), explained(table="main.t"):
        df.collect()


def test_uuids_in_both_forms(prepared: SparkSession, tmp_path: Path) -> None:
    text = "00112233-4455-6677-8899-aabbccddeeff"
    raw = bytes.fromhex(text.replace("-", ""))
    schema = TableSchema(
        (Column("u", "uuid", 1), Column("l", "list", 2, children=(Column("element", "uuid", 3),)))
    )
    binary = field("u", pa.binary(), 1), field("l", pa.list_(pa.binary()), 2)
    path = write(
        tmp_path / "a.parquet",
        {binary[0]: [raw, text.upper().encode(), None], binary[1]: [[raw, None], None, []]},
    )
    rows = {str(row) for row in read(prepared, [data_file(path)], schema)}
    assert rows == {str((text, [text, None])), str((text, None)), str((None, []))}


def test_nanoseconds_that_a_timestamp_holds(prepared: SparkSession, tmp_path: Path) -> None:
    schema = TableSchema((Column("t", "timestamp_ns", 1),))
    micros = write(
        tmp_path / "a.parquet", {field("t", pa.timestamp("ns"), 1): [-1000, 1_000, None]}
    )
    rows = sorted(str(row[0]) for row in read(prepared, [data_file(micros)], schema))
    assert rows == ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000001", "None"]
    nanos = write(tmp_path / "b.parquet", {field("t", pa.timestamp("ns"), 1): [1001]})
    with pytest.raises(QueryFailed, match="holds nanoseconds"), explained():
        read(prepared, [data_file(nanos)], schema)


def test_places_are_for_files_of_different_sizes() -> None:
    first, second = DataFile("a", 1000, 4_000, 0), DataFile("b", 3, 5_000, 0)
    places = RowAddresses.by_size([first, second])
    assert places is not None
    assert (places.base(first), places.base(second)) == (4_000 << 10, 5_000 << 10)
    assert RowAddresses.by_size([first, replace(second, size_bytes=4_000)]) is None
    assert RowAddresses.by_size([replace(first, size_bytes=1 << 60)]) is None
    assert RowAddresses.by_size([replace(first, size_bytes=0)]) is None
    assert RowAddresses.by_size([replace(first, size_bytes=n) for n in range(1, 502)]) is None


def test_inlined_rows_have_no_place_but_a_row_id(prepared: SparkSession, tmp_path: Path) -> None:
    columns: dict[str, Any] = {"row_id": [7], "begin_snapshot": [3]}
    columns["end_snapshot"] = pa.array([None], pa.int64())
    part = InlinedPart(KV, pa.table({**columns, "1": [5], "2": ["in"]}))
    file = data_file(kv(tmp_path / "a.parquet", [1]), row_id_start=10, begin_snapshot=2)
    source = Scan("main.t", KV, FileSet((file,), inlined=InlinedRows((part,))))
    df = scan.read(prepared, source, positions=True, row_ids=True)
    key = source.keys().key(file.path)
    assert table_of(df) == [(1, "v1", key, 0, None, 10, 2), (5, "in", None, None, 7, 7, 3)]
    embedded = scan.read(prepared, source, positions=True)
    assert table_of(scan.with_row_ids(prepared, source, embedded).select("k", scan.ROW_ID)) == [
        (1, 10),
        (5, 7),
    ]
