"""Which files fit which columns, by their types and names; patterns and paths.

Tests ``lakes/writing/adding/files.py``.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from penstock.errors import DataFileMissing, SchemaMismatch
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.writing.adding.files import (
    expand,
    hive_texts,
    hive_value,
    matching,
    partition_names,
)
from penstock.lakes.writing.adding.fit import Fit, Rules, accepted, accepts, fit, keeps_bounds


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("int8", "int64"),
        ("uint32", "int64"),
        ("uint8", "int16"),
        ("float32", "float64"),
        ("decimal(5,2)", "decimal(9,3)"),
        ("int96", "timestamp"),
        ("milliseconds", "timestamp_ns"),
        ("timestamptz", "timestamptz"),
        ("uuid", "uuid"),
    ],
)
def test_accepted(kind: str, table: str) -> None:
    assert accepts(kind, table)
    assert accepted(table)


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("int64", "int32"),
        ("uint64", "int64"),
        ("int32", "varchar"),
        ("float64", "float32"),
        ("decimal(9,1)", "decimal(9,3)"),
        ("timestamp", "timestamptz"),
        ("timestamp_ns", "timestamp_ms"),
        ("varchar", "json"),
        ("float64", "int128"),
        ("varchar", "variant"),
    ],
)
def test_not_accepted(kind: str, table: str) -> None:
    assert not accepts(kind, table)
    assert accepted(table)


def test_bounds_of_finer_times_are_not_kept() -> None:
    assert not keeps_bounds("timestamp_ns", "timestamp")
    assert not keeps_bounds("timestamp", "timestamp_s")
    assert keeps_bounds("milliseconds", "timestamp")


COLUMNS = TableSchema(
    (
        Column("id", "int64", 1, nullable=False),
        Column("s", "struct", 2, children=(Column("a", "int32", 3), Column("b", "varchar", 4))),
        Column("l", "list", 5, children=(Column("element", "int32", 6),)),
        Column("day", "date", 7),
    )
)


def fitted(table: pa.Table, *, hive: tuple[Column, ...] = (), **rules: bool) -> Fit:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    schema = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    return fit(schema, COLUMNS, hive, Rules(**rules), file="x.parquet", table="main.t")


def test_fields_by_name_at_any_depth() -> None:
    inner = pa.array([{"X": 0, "B": "b", "a": 1}])
    table = pa.table({"l": [[1]], "S": inner, "ID": pa.array([1], pa.int32())})
    table = table.set_column(0, "l", pa.array([[1]], pa.list_(pa.int32())))
    hive = (COLUMNS.columns[3],)
    with pytest.raises(SchemaMismatch, match=r"'S\.X' is in the file and not"):
        fitted(table, hive=hive)
    with pytest.raises(SchemaMismatch, match=r"'S\.a' is int64 there and int32 in table main\.t"):
        fitted(table, hive=hive, ignore_extra_columns=True)
    typed = inner.cast(pa.struct([("X", pa.int32()), ("B", pa.string()), ("a", pa.int32())]))
    result = fitted(table.set_column(1, "S", typed), hive=hive, ignore_extra_columns=True)
    assert list(result.mapping.fields.items()) == [
        *((("l",), 5), (("l", "list"), 6), (("S",), 2)),
        *((("S", "B"), 4), (("S", "a"), 3), (("ID",), 1)),
    ]
    assert result.mapping.partitions == {7: "day"}
    assert [(leaf.index, leaf.column.name) for leaf in result.leaves] == [
        *((0, "element"), (2, "b"), (3, "a"), (4, "id"))
    ]


def test_missing_and_double() -> None:
    with pytest.raises(SchemaMismatch, match=r"'s' of table main\.t is not in the file"):
        fitted(pa.table({"id": [1]}))
    with pytest.raises(SchemaMismatch, match=r"'id' of table main\.t is NOT NULL, has no default"):
        fitted(pa.table({"s": [1]}).drop_columns(["s"]), allow_missing=True)
    with pytest.raises(SchemaMismatch, match="is there twice"):
        fitted(pa.table({"id": [1], "ID": [1]}), allow_missing=True)
    with pytest.raises(SchemaMismatch, match="'l' is int64 there and list<int32>"):
        fitted(pa.table({"id": [1], "l": [1]}), allow_missing=True)


def test_values_of_paths() -> None:
    path = "s3://b/x=1/country=a%2Fb/n=__HIVE_DEFAULT_PARTITION__/y=2=3/f=4.parquet"
    assert hive_texts(path) == {"x": "1", "country": "a/b", "n": None, "y": "2=3"}
    fields = (PartitionField("ts", "month"), PartitionField("c"), PartitionField("u", "month"))
    assert partition_names(fields) == ("month", "c", "month_u")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int32", "007", "7"),
        ("boolean", "TRUE", "true"),
        ("decimal(5,2)", "1.5", "1.50"),
        ("date", "2020-01-05", "2020-01-05"),
        ("float64", "1.50", "1.5"),
        ("varchar", "NULLS", "NULLS"),
        ("timestamp", "2020-01-05 10:00:00", "2020-01-05 10:00:00"),
    ],
)
def test_typed_values_of_paths(kind: str, text: str, value: str) -> None:
    assert hive_value(Column("c", kind, 1), text, "p") == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [("int8", "300"), ("int32", "1.0"), ("decimal(3,2)", "12.3"), ("date", "5-1-2020")],
)
def test_wrong_values_of_paths(kind: str, text: str) -> None:
    with pytest.raises(SchemaMismatch, match="is no"):
        hive_value(Column("c", kind, 1), text, "p")


def test_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/1.parquet", "a/2.parquet", "a/b/3.parquet", "c[1].parquet", "a/_x.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def names(*patterns: str) -> list[str]:
        return [path.removeprefix(f"{tmp_path}/") for path in expand(patterns)]

    monkeypatch.chdir(tmp_path)
    assert names("a/*.parquet") == ["a/1.parquet", "a/2.parquet", "a/_x.parquet"]
    assert names("**/[13].parquet", "a/1.parquet") == ["a/1.parquet", "a/b/3.parquet"]
    assert names(f"file://{tmp_path}/c[1].parquet") == ["c[1].parquet"]
    assert names("a") == ["a/1.parquet", "a/2.parquet", "a/b/3.parquet"]
    with pytest.raises(DataFileMissing, match=r"file a/9\* does not exist"):
        expand("a/9*")


def test_patterns_in_a_store(tmp_path: Path) -> None:
    """In a store everything is listed and compared; this test uses a local disk instead."""
    for name in ("a/x=1/1.parquet", "a/x=2/y/2.parquet", "b/3.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def names(pattern: str) -> list[str]:
        place = f"{tmp_path}/{pattern}"
        paths = matching(fs.LocalFileSystem(), place, place)
        return [path.removeprefix(f"{tmp_path}/") for path in paths]

    assert names("a/*/*.parquet") == ["a/x=1/1.parquet"]
    assert names("a/**/*.parquet") == ["a/x=1/1.parquet", "a/x=2/y/2.parquet"]
    assert names("**/[!1].parquet") == ["a/x=2/y/2.parquet", "b/3.parquet"]
    assert names("?/3.parquet") == ["b/3.parquet"]
