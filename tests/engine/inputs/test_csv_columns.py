"""Columns of CSV files, put together; ``engine/inputs/csv_remote.py`` is tested here as well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.inputs.csv_columns import declared_places, inferred_columns, wider
from penstock.engine.inputs.csv_options import CsvOptions
from penstock.engine.inputs.csv_remote import RemoteCsv, is_local
from penstock.engine.inputs.csv_scan import Quoting
from penstock.engine.inputs.csv_sniffer import Sniffed
from penstock.engine.inputs.input_files import Unfit
from penstock.errors import PenstockError
from penstock.spark.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
