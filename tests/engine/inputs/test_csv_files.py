"""Rows of CSV files: those of DuckDB, or an error with file, line and value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.inputs.csv_files import CsvFiles
from penstock.engine.inputs.file_reader import files
from penstock.errors import ArgumentError, Location, PenstockError, QueryFailed
from penstock.spark.failures import explained
from tests.engine.inputs.differential.compare import TYPES, by_duckdb
from tests.engine.inputs.differential.csv_cases import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE = Location("models/raw.sql", 7, 6)
TWO = {"a": "INTEGER", "b": "INTEGER"}


def read(root: Path, *texts: str | bytes, **options: Any) -> CsvFiles:
    """Read files a.csv, b.csv, ... that hold these texts."""
    names = [f"{letter}.csv" for letter in "abcd"[: len(texts)]]
    for name, text in zip(names, texts, strict=True):
        (root / name).write_bytes(_bytes(text))
    read_ = files("read_csv", names, options, root=root, location=PLACE)
    assert isinstance(read_, CsvFiles)
    return read_


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (("id\n1\n",), {"header": False, "union_by_name": True}, "a.csv: union_by_name needs"),
        (
            ("id\n1\n", "id,channel\n1,x\n"),
            {"columns": {"id": "INTEGER"}, "union_by_name": True},
            "b.csv: the file has 2 columns, `columns` has 1: `channel` is new",
        ),
        (
            ("x,y\n1,2\n", "x,channel,y\n1,web,2\n"),
            {"columns": {"x": "INTEGER", "y": "INTEGER"}},
            "b.csv: the file has 3 columns, `columns` has 2: `channel` is new",
        ),
        (
            ("y\n2\n",),
            {"columns": {"x": "INTEGER", "y": "INTEGER"}},
            "a.csv: the file has 1 column, `columns` has 2: `x` is missing",
        ),
        (
            ("b,c\n1,2\n",),
            {"columns": TWO},
            "a.csv, line 1: column `b` has another position in `columns`",
        ),
        (("id\n1\n", "x,y\n1,2\n"), {}, "b.csv: its columns are x, y, and those of a.csv are id"),
        (("id,v\n1,x\n", "1,x\n2,y\n"), {}, "its columns are column0, column1, without a header"),
        (("",), {}, "a.csv: the file is empty: it says nothing of its columns"),
        ((b"a,b\n1,\xe9t\xe9\n",), {}, "a.csv, line 2: not UTF-8"),
    ],
)
def test_files_that_are_refused(
    tmp_path: Path, texts: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ArgumentError, QueryFailed)) as raised:
        read(tmp_path, *texts, **options)
    assert str(raised.value).startswith("models/raw.sql:7:6: ")
    assert message in str(raised.value)


def test_files_of_a_header_are_read_at_once(tmp_path: Path) -> None:
    made = read(tmp_path, "id,x\n1,2\n", "x,id\n3,4\n", "id,x\n1,2\n")
    assert [(part.form.header, len(part.paths)) for part in made.parts] == [
        (("id", "x"), 2),
        (("x", "id"), 1),
    ]


def test_an_empty_file_has_the_declared_columns(tmp_path: Path) -> None:
    made = read(tmp_path, "", columns={"a": "INTEGER"})
    assert (made.columns, made.parts) == ((("a", "INT"),), ())


SAME: dict[str, tuple[tuple[str | bytes, ...], dict[str, Any]]] = {
    "decimals": (("a,b\n1.50,12.9\n",), {"columns": {"a": "DECIMAL(9,2)", "b": "DOUBLE"}}),
    "commas": (("a;b\n1,50;x\n1234,5;y\n",), {"decimal_separator": ","}),
    "by name": (("id,name\n1,x\n2,y\n", "name,id,channel\nz,3,web\n"), {"union_by_name": True}),
    "by name, types": (("id,x\n1,x\n", "ID,o\n4,1.5\n", "o\n7\n"), {"union_by_name": True}),
    "times": (("a,b\n08:15:00,T10:00\n", "a,b\n08:15,2024-05\n"), {}),
    "letters": (("a,b\n1D,0x1p3\n2F,1_000\n",), {}),
    "zeros": (("a,b,c\n007,+5,1e3\n",), {}),
    "breaks": (('a,b\n1,"x\ny"\n2,"x\r\ny"\n',), {}),
    "CRLF breaks": (('a,b\r\n1,"x\r\ny"\r\n2,\r\n',), {}),
    "one column": (('v\n"x\ny"\nz\n',), {}),
    "declared breaks": (('a,b\n1,"x\ny"\n',), {"columns": {"a": "INTEGER", "b": "VARCHAR"}}),
    "separators": (("id;v\n1;a\u2028b\n2;a\x85b\n3;a\x0cb\n4;a\x0bb\n",), {}),
    "tabs": (("a\tb\n1\t2\n\t\n",), {}),
    "days": (("d,t\n16/05/2026,16.05.2026 10:00:00\n",), {}),
    "zones": (("d,t\n2026-05-16 10:00:00+02,2026-05-16T10:00:00\n",), {}),
    "declared days": (("d\n1/5/2026\n",), {"columns": {"d": "DATE"}, "dateformat": "%d/%m/%Y"}),
    "years": (("d,x\n16.05.69,1\n16.05.68,2\n",), {"dateformat": "%d.%m.%y"}),
    "no header": (("1,x\n2,y\n",), {}),
    "NULL": (('a,b\nNA,1\n"NA",2\n,3\n"",4\n',), {"nullstr": "NA"}),
    "padded": (('a,b,c\n1,2\n\n3\n4,"q, r",s\n',), {"null_padding": True, "delim": ","}),
    "BOM": (("\ufeffa,b\n1,2\n",), {}),
    "UTF-16": (("a,b\r\n1,€\r\n".encode("utf-16"),), {"encoding": "utf-16"}),
    "latin": (("a,b\n1,é\n".encode("latin-1"),), {"encoding": "latin-1"}),
    "quotes": (('a,b\n5" pipe,it\'s\n"say ""hi""",x\n',), {}),
    "escapes": (('a,b\n"x\\"y",2\n"\\\\",3\n',), {"escape": "\\"}),
    "apostrophes": (("a;b\n'x;y';2\n'z';3\n",), {}),
    "booleans": (("a,b\nyes,t\nno,F\n",), {}),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", SAME)
def test_the_rows_and_types_of_duckdb(tmp_path: Path, spark: SparkSession, name: str) -> None:
    texts, options = SAME[name]
    frame = read(tmp_path, *texts, **options).read(spark)
    contents = {f"{letter}.csv": _bytes(text) for letter, text in zip("abcd", texts, strict=False)}
    theirs = by_duckdb(Case(0, contents, options, options.get("encoding", "utf-8")), tmp_path)
    assert theirs.rows is not None, theirs.error
    columns, rows = list(theirs.columns), theirs.rows
    times = [index for index, (_, kind) in enumerate(columns) if kind == "TIME"]
    columns = [(column, "VARCHAR" if kind == "TIME" else kind) for column, kind in columns]
    assert [(column, TYPES[kind]) for column, kind in frame.dtypes] == columns
    ours = [tuple(row) for row in frame.collect()]
    ours = [tuple("" if i in times else str(v) for i, v in enumerate(row)) for row in ours]
    assert sorted(ours) == sorted(
        tuple("" if i in times else _utc(v) for i, v in enumerate(row)) for row in rows
    )


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _utc(value: Any) -> str:
    return str(value).removesuffix("+00:00")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a\n1,50\n", {"a": "DECIMAL(9,2)"}, None),
        ("a;b\n1;2\n1,50;2\n", {"a": "DECIMAL(9,2)", "b": "INTEGER"}, "line 3: '1,50' is not"),
        ("a,b\n1,2\n 1.5 ,2\n", TWO, "line 3: ' 1.5 ' is not of its column's type: `a` is INT"),
        ("a,b\n1D,2\n", {"a": "DOUBLE", "b": "INTEGER"}, "line 2: '1D' is not"),
        ("a,b\n1e400,2\n", {"a": "DOUBLE", "b": "INTEGER"}, "line 2: '1e400' is not"),
        ("a,b\n2024-05,2\n", {"a": "DATE", "b": "INTEGER"}, "line 2: '2024-05' is not"),
        ("a,b\n10:00,2\n", {"a": "TIMESTAMP", "b": "INTEGER"}, "line 2: '10:00' is not"),
        ("a,b\n2026-01-01 10:00:00+02,2\n", {"a": "TIMESTAMP", "b": "INTEGER"}, "line 2: '2026"),
        ('a,b\n1,"2\n"\n"x\ny",4\n', {"a": "INTEGER", "b": "VARCHAR"}, "line 5: 'x\\ny' is not"),
        ("id;v\n1;a;\n2;b;\n", {"id": "INTEGER", "v": "VARCHAR"}, "it ends with a separator"),
    ],
)
def test_a_wrong_value_has_its_line(
    tmp_path: Path, spark: SparkSession, text: str, options: dict[str, str], message: str | None
) -> None:
    error = failure(tmp_path, spark, text, columns=options)
    assert error is not None
    assert message is None or message in str(error)


def failure(root: Path, spark: SparkSession, text: str, **options: Any) -> PenstockError | None:
    """Return the error of reading a file, in the user's words."""
    try:
        made = read(root, text, **options)
    except PenstockError as error:
        return error
    try:
        with explained():
            made.read(spark).collect()
    except PenstockError as error:
        return made.blamed(error) or error
    return None


@pytest.mark.spark
def test_a_row_that_only_the_last_column_shows(tmp_path: Path, spark: SparkSession) -> None:
    rows = "1,2\n" * 30_000
    made = read(tmp_path, f"a,b\n{rows}3\n", columns=TWO)
    for frame in (made.read(spark).select("a"), made.read(spark).selectExpr("count(*)")):
        with pytest.raises(PenstockError) as raised, explained():
            frame.collect()
        blamed = made.blamed(raised.value)
        assert blamed is not None
        assert blamed.message == "a.csv, line 30002: the row has 1 of 2 columns"


@pytest.mark.spark
def test_declared_columns_of_a_header_in_another_order(tmp_path: Path, spark: SparkSession) -> None:
    made = read(tmp_path, "id,v\n1,2\n", "v,id\n3,4\n", columns={"id": "BIGINT", "v": "BIGINT"})
    assert sorted(map(tuple, made.read(spark).collect())) == [(1, 2), (4, 3)]


@pytest.mark.spark
def test_characters_of_windows_1252(tmp_path: Path, spark: SparkSession) -> None:
    made = read(tmp_path, "a,b\n1,€ “x” é\n".encode("cp1252"), encoding="windows-1252")
    assert [tuple(row) for row in made.read(spark).collect()] == [(1, "€ “x” é")]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1\n1,2,3\n", "a.csv: the file has 3 columns, `columns` has 2"),
        ("a,b\n1\nx,2\n", "a.csv, line 3: 'x' is not of its column's type: `a` is INT"),
        ("a,b\n1\n2,y\n", "a.csv, line 3: 'y' is not of its column's type: `b` is INT"),
        ("a,b\n1\nNA,NA\n", None),
    ],
)
def test_padded_rows_that_are_wrong_in_another_way(
    tmp_path: Path, spark: SparkSession, text: str, message: str | None
) -> None:
    options: dict[str, Any] = {"null_padding": True, "nullstr": "NA", "delim": ","}
    error = failure(tmp_path, spark, text, columns=TWO, **options)
    assert (error is None) == (message is None)
    assert message is None or message in str(error)
    if message is None:
        assert read(tmp_path, text, columns=TWO, **options).read(spark).select("b").count() == 2
