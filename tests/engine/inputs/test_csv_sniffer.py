"""How a CSV file is written, and what its values are, as DuckDB's sniffer finds them.

Columns of CSV files, put together; ``engine/inputs/csv_files.py`` is tested here as well.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.inputs.csv_files import RemoteCsv, is_local
from penstock.engine.inputs.csv_form import UTF8, CsvOptions, Quoting
from penstock.engine.inputs.csv_sniffer import (
    Sniffed,
    declared_places,
    inferred_columns,
    sample_of,
    sniff,
    wider,
)
from penstock.engine.inputs.input_files import Unfit
from penstock.errors import PenstockError
from penstock.spark.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sniffed(root: Path, text: str | bytes, name: str = "a.csv", **options: Any) -> Sniffed:
    path = root / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return sniff(path, sample_of(path, UTF8), CsvOptions(**options))


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1;2\n", ";"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b", "|"),
        ('a;b\n"x;y";2\n', ";"),
        ("\ufeffa;b\n\n1;2\n", ";"),
        ("id;v\n1;a\u2028b\n", ";"),
        ("id;v\n1;a\x85b\n2;a\x0cb\n3;a\x0bb\n", ";"),
        ("id\tv\r\n1\tx\r\n", "\t"),
    ],
)
def test_the_separator_is_found(tmp_path: Path, text: str, separator: str) -> None:
    assert sniffed(tmp_path, text).quoting.separator == separator
    assert len(sniffed(tmp_path, text).names) == 2


@pytest.mark.parametrize(
    ("options", "text", "separator"),
    [
        ({"separator": "|"}, "a;b\n1;2\n", "|"),
        ({"infer": False}, "a;b\n1;2\n", ","),
        ({"comment": "#"}, "#, x\na;b\n1;2\n", ";"),
        ({"quote": "'"}, "a;b\n'x;y';2\n", ";"),
        ({"escape": "\\"}, 'a;b\n"x\\";y";2\n', ";"),
        ({"quote": ""}, 'a;b\n";2\n', ";"),
    ],
)
def test_the_options_hold(
    tmp_path: Path, options: dict[str, Any], text: str, separator: str
) -> None:
    assert sniffed(tmp_path, text, **options).quoting.separator == separator


def test_a_large_or_compressed_file_is_judged_by_its_beginning(tmp_path: Path) -> None:
    large = "a;b\n" + '1;"x\ny"\n' * 700_000
    assert sniffed(tmp_path, large).types == ("BIGINT", "VARCHAR")
    assert sniffed(tmp_path, gzip.compress(large.encode()), "a.csv.gz").quoting.separator == ";"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id;v\n1;a\n2;b;c\n3;d\n", "a.csv, line 3: the row has 3 of 2 columns"),
        ("id;v\n1;a\n2\n", "a.csv, line 3: the row has 1 of 2 columns"),
        ("id\tv\n1\ta\n2\tb\tc\n", "a.csv, line 3: the row has 3 of 2 columns"),
        ("# no\na,b\n1,2\n", "a.csv, line 2: the row has 2 of 1 columns"),
        ("a,b;c\n1,2;3\n", "a.csv: ',' and ';' could each be its separator"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(Unfit) as raised:
        sniffed(tmp_path, text)
    assert raised.value.fault.text(tmp_path).endswith(reason)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("1", "-5"), "BIGINT"),
        (("1.5", "2"), "DOUBLE"),
        (("08:15:00", "08:15"), "VARCHAR"),
        (("T10:00",), "VARCHAR"),
        (("2024-05", "2024-1"), "VARCHAR"),
        (("1D", "2F", "12D"), "VARCHAR"),
        (("0x1p3",), "VARCHAR"),
        (("007",), "VARCHAR"),
        (("2026-05-16", "2024-1-5"), "DATE"),
        (("2026-05-16 10:00:00",), "TIMESTAMP"),
        (("2026-05-16 10:00:00+02",), "TIMESTAMP WITH TIME ZONE"),
        (("true", "f"), "BOOLEAN"),
    ],
)
def test_types_are_those_of_duckdb(tmp_path: Path, values: tuple[str, ...], kind: str) -> None:
    rows = "".join(f"{value},x\n" for value in values)
    assert sniffed(tmp_path, f"a,b\n{rows}").types == (kind, "VARCHAR")


def test_a_column_without_a_value_has_no_type(tmp_path: Path) -> None:
    assert sniffed(tmp_path, "a,b,c\n,1,NA\n,2,NA\n", null="NA").types == ("", "BIGINT", "")
    assert sniffed(tmp_path, "a,b\n").types == ("", "")


def test_headers_are_found(tmp_path: Path) -> None:
    years: dict[str, Any] = {"columns": (("2020", "INT"), ("2021", "INT"))}
    assert sniffed(tmp_path, "2020,2021\n1,2\n").header is None
    assert sniffed(tmp_path, "2020,2021\n1,2\n", **years).header == ("2020", "2021")
    assert sniffed(tmp_path, "1,x\n2,y\n").header is None
    assert sniffed(tmp_path, "1,x\n2,y\n").names == ("column0", "column1")
    assert sniffed(tmp_path, "a,A,\n1,2,3\n").header == ("a", "A_1", "column2")
    assert sniffed(tmp_path, "a,a, \n1,2,3\n", infer=False).header == ("a", "a_1", "column2")


A, B = Path("a.csv"), Path("b.csv")
COMMA = Quoting(",", '"', '"')


def file(*columns: tuple[str, str], header: bool = True) -> Sniffed:
    names = tuple(name for name, _ in columns)
    types = tuple(kind for _, kind in columns)
    return Sniffed(COMMA, names if header else None, names, types)


def test_types_hold_the_values_of_all_files() -> None:
    assert wider("DOUBLE", "BIGINT") == "DOUBLE"
    assert wider("DATE", "TIMESTAMP") == "TIMESTAMP"
    assert wider("DATE", "BIGINT") == "VARCHAR"


def test_columns_of_all_files() -> None:
    one, other = file(("a", "BIGINT"), ("b", "")), file(("B", "DATE"), ("A", "DOUBLE"))
    assert inferred_columns({A: one, B: other}, by_name=False) == (("a", "DOUBLE"), ("b", "DATE"))
    more = file(("b", "VARCHAR"), ("c", ""))
    assert inferred_columns({A: one, B: more}, by_name=True) == (
        ("a", "BIGINT"),
        ("b", "STRING"),
        ("c", "STRING"),
    )
    with pytest.raises(Unfit, match=r"its columns are b, c, and those of a\.csv are a, b"):
        inferred_columns({A: one, B: more}, by_name=False)


def test_places_of_declared_columns() -> None:
    columns = (("a", "INT"), ("b", "INT"))
    found = file(("b", ""), ("A", ""))
    assert declared_places(A, found, columns, by_name=False) == (1, 0)
    assert declared_places(A, file(("x", ""), ("y", "")), columns, by_name=False) == (0, 1)
    assert declared_places(A, file(("b", "")), columns, by_name=True) == (None, 0)
    assert declared_places(A, file(("x", "")), columns, by_name=False, padded=True) == (0, None)
    assert declared_places(A, file(("x", ""), ("y", ""), header=False), columns, by_name=False) == (
        0,
        1,
    )


def test_files_that_nobody_looks_at(tmp_path: Path) -> None:
    (tmp_path / "a.csv.zst").write_bytes(b"")
    assert not is_local("s3a://bucket/a.csv")
    assert not is_local(str(tmp_path))
    assert is_local(str(tmp_path / "a.csv"))


@pytest.mark.spark
def test_their_first_rows_are_read_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "a.csv").write_text("id;v\n1;x\n2;1D\n")
    (tmp_path / "b.csv").write_text("id;v\n3;z\n")
    uris = tuple(f"file://{tmp_path}/{name}" for name in ("a.csv", "b.csv"))
    frame = RemoteCsv(uris, CsvOptions(), tmp_path).read(spark)
    assert frame.dtypes == [("id", "bigint"), ("v", "string")]
    assert sorted(map(tuple, frame.collect())) == [(1, "x"), (2, "1D"), (3, "z")]
    (tmp_path / "b.csv").write_text("v;id\nz;3\n")
    with pytest.raises(PenstockError), explained():
        RemoteCsv(uris, CsvOptions(), tmp_path).read(spark).collect()
