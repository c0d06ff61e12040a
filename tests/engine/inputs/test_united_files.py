"""``union_by_name`` of read_csv: columns of all files, as DuckDB has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock.engine.inputs.file_reader import files
from penstock.engine.inputs.united_files import UnitedFiles, by_name, wider
from penstock.errors import ArgumentError, Location, QueryFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE = Location("models/raw.sql", 7, 6)
TYPES = {"int": "BIGINT", "bigint": "BIGINT", "double": "DOUBLE", "string": "VARCHAR"}
TYPES |= {"date": "DATE", "timestamp": "TIMESTAMP", "boolean": "BOOLEAN"}


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        (root / f"{name}.csv").write_text(text)


def read(root: Path, path: Any = "?.csv", **options: Any) -> Any:
    asked = {"union_by_name": True, **options}
    found = files("read_csv", path, asked, root=root, location=PLACE)
    return by_name(found, asked, PLACE)


def test_files_of_one_header_are_read_as_any(tmp_path: Path) -> None:
    write(tmp_path, a="id,x\n1,2\n", b="id,x\n3,4\n")
    assert not isinstance(read(tmp_path), UnitedFiles)


def test_files_of_a_header_are_read_at_once(tmp_path: Path) -> None:
    write(tmp_path, a="id,x\n1,2\n", b="x,id,new\n3,4,5\n", c="id,x\n1,2\n")
    parts = read(tmp_path).parts
    assert [(part.header, len(part.files.paths)) for part in parts] == [
        (("id", "x"), 2),
        (("x", "id", "new"), 1),
    ]


@pytest.mark.parametrize(
    ("texts", "options", "said"),
    [
        ({"a": "id\n1\n"}, {"header": False}, "union_by_name needs the header"),
        ({"a": "id,ID\n1,2\n"}, {"delim": ","}, "a.csv: two of its columns have one name"),
        ({"a": "", "b": "id\n1\n"}, {"delim": ","}, "a.csv: the file is empty"),
        (
            {"a": "id\n1\n", "b": "id,channel\n1,x\n"},
            {"columns": {"id": "INTEGER"}, "delim": ","},
            "b.csv: the file has 2 columns, `columns` has 1: `channel` is new",
        ),
        (
            {"a": "id,x\n1,2\n"},
            {"columns": {"id": "INTEGER", "y": "INTEGER"}},
            "a.csv: `columns` has no `x`",
        ),
    ],
)
def test_what_cannot_be_united(
    tmp_path: Path, texts: dict[str, str], options: dict[str, Any], said: str
) -> None:
    write(tmp_path, **texts)
    with pytest.raises((ArgumentError, QueryFailed)) as raised:
        read(tmp_path, **options)
    assert str(raised.value).startswith("models/raw.sql:7:6: ")
    assert said in str(raised.value)


def test_types_that_hold_both() -> None:
    assert wider("int", "int") == "int"
    assert wider("double", "bigint") == "double"
    assert wider("date", "int") == wider("timestamp", "date") == "string"


FILES: tuple[dict[str, str], ...] = (
    {"a": "id,name\n1,x\n2,y\n", "b": "name,id,channel\nz,3,web\n"},
    {"a": "id,name\n1,x\n", "b": "ID,other\n4,1.5\n", "c": "other\n7\n"},
    {"a": "n,d\n1,2026-01-01\n", "b": "d\n2026-01-02\n", "c": "n\n1.5\n"},
    {"a": "n,t\n007,2026-01-01 10:00:00\n", "b": "n,u\nx,true\n"},
    {"a": "id,b\n1,\n", "b": 'b,id\n"q, r",2\n'},
)


@pytest.mark.spark
@pytest.mark.parametrize("texts", FILES)
def test_the_rows_and_types_of_duckdb(
    tmp_path: Path, spark: SparkSession, texts: dict[str, str]
) -> None:
    write(tmp_path, **texts)
    theirs = duckdb.sql(f"FROM read_csv('{tmp_path}/?.csv', union_by_name = true)")
    frame = read(tmp_path).read(spark)
    assert [(name, TYPES[kind]) for name, kind in frame.dtypes] == list(
        zip(theirs.columns, map(str, theirs.types), strict=True)
    )
    assert sorted(map(tuple, frame.collect()), key=str) == sorted(theirs.fetchall(), key=str)


@pytest.mark.spark
def test_declared_columns_are_taken_by_name(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, a="name,id\nx,1\n", b="id\n2\n")
    frame = read(tmp_path, columns={"id": "BIGINT", "name": "VARCHAR"}, delim=",").read(spark)
    assert frame.dtypes == [("id", "bigint"), ("name", "string")]
    assert sorted(map(tuple, frame.collect())) == [(1, "x"), (2, None)]
