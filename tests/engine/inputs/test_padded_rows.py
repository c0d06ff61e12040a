"""``null_padding`` of read_csv: short rows, as DuckDB reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock.engine.inputs.file_reader import files
from penstock.errors import QueryFailed
from penstock.spark.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXTS = (
    "a,b,c\n1,2\n3,4,5\n6\n",
    "a,b,c\n1,2\n\n3\n",
    'a,b,c\nx,"q, r"\ny\nz,s,1.5\n',
    "a,b\n1,2\n3,4\n",
    "a,b,c\n2026-01-01,1,2\n2026-01-02\n",
)


def read(root: Path, text: str, **options: Any) -> Any:
    (root / "a.csv").write_text(text)
    asked = {"null_padding": True, "delim": ",", **options}
    return files("read_csv", "a.csv", asked, root=root, location=None)


@pytest.mark.parametrize("text", TEXTS)
def test_the_rows_of_duckdb(tmp_path: Path, spark: SparkSession, text: str) -> None:
    frame = read(tmp_path, text).read(spark)
    theirs = duckdb.sql(
        f"FROM read_csv('{tmp_path}/a.csv', null_padding = true, header = true, delim = ',')"
    )
    assert frame.columns == theirs.columns
    ours = sorted(tuple(map(str, row)) for row in frame.collect())
    assert ours == sorted(tuple(map(str, row)) for row in theirs.fetchall())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1\n1,2,3\n", "a.csv, line 3: the row has 3 of 2 columns"),
        ("a,b\n1\nx,2\n", "a.csv, line 3: 'x' is not of its column's type"),
        ("a,b\n1\n2,y\n", "a.csv, line 3: 'y' is not of its column's type"),
        ("a,b\n1\n2,\n", None),
        ("a,b\n1\nNA,NA\n", None),
    ],
)
def test_a_row_that_is_wrong_in_another_way(
    tmp_path: Path, spark: SparkSession, text: str, said: str | None
) -> None:
    made = read(tmp_path, text, columns={"a": "INTEGER", "b": "INTEGER"}, nullstr="NA")
    frame = made.read(spark).select("b")
    if said is None:
        assert frame.count() == 2
        return
    with pytest.raises(QueryFailed) as raised, explained():
        frame.collect()
    blamed = made.blamed(raised.value)
    assert blamed is not None
    assert blamed.message == said


def test_inferred_types_of_short_rows(tmp_path: Path, spark: SparkSession) -> None:
    frame = read(tmp_path, "a,b,c\n1,2\n3,4.5\n").read(spark)
    assert frame.dtypes == [("a", "int"), ("b", "double"), ("c", "string")]
    padded = read(tmp_path, "x,1\ny\n", header=False).read(spark)
    assert sorted(map(tuple, padded.collect())) == [("x", 1), ("y", None)]
