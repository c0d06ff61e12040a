"""Rows that the driver reads are those that Spark reads, or it reads none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.lakes.catalog.database import metadata
from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from penstock.lakes.reading import arrow_files
from tests.lakes.conftest import Rows

pytestmark = pytest.mark.spark

KV = "k BIGINT, v STRING"
ABC = [(1, "a"), (2, "b"), (3, None)]


def seen(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))  # NaN is itself


def same(lake: Lake, names: list[str]) -> bool:
    """Whether the driver reads the rows; then they equal Spark's, in its types."""
    table = lake.table("t")
    mine = table.few_rows(names, lake.catalog.latest().id)
    if mine is None:
        return False
    spark = table.to_df().select(*names).toArrow()
    assert mine.schema.types == spark.schema.types
    assert seen(mine) == seen(spark)
    return True


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BOOLEAN", "true"),
        ("TINYINT", "-128"),
        ("SMALLINT", "7"),
        ("INT", "7"),
        ("BIGINT", "9223372036854775807"),
        ("FLOAT", "double('NaN')"),
        ("DOUBLE", "-0.0"),
        ("DECIMAL(5, 2)", "999.99"),
        ("DECIMAL(38, 9)", "-1.5"),
        ("DATE", "DATE '1500-03-01'"),
        ("TIMESTAMP", "TIMESTAMP '2013-01-02 03:04:05.678901'"),
        ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '1969-12-31 23:59:59.5'"),
        ("STRING", "'é\\n'"),
        ("BINARY", "X'00ff'"),
    ],
)
def test_types(lake: Lake, kind: str, value: str) -> None:
    frame = lake.sql(f"SELECT 1 AS k, CAST({value} AS {kind}) AS c UNION ALL SELECT 2, NULL")
    lake.table("t").append(frame)
    assert same(lake, ["c", "k"])


def test_deleted_rows_and_updated_ones(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows(KV, ABC))
    lake.table("t").append(rows(KV, [(4, "d"), (5, "e")]))
    lake.sql("DELETE FROM t WHERE k IN (1, 4)")
    assert same(lake, ["v"])
    lake.sql("UPDATE t SET v = 'x' WHERE k = 2")
    lake.sql("DELETE FROM t WHERE k = 3")
    assert same(lake, ["v", "k"])


def test_inlined_rows_and_deletes(lake: Lake, rows: Rows) -> None:
    lake.sql("CALL set_option('data_inlining_row_limit', '5')")
    lake.table("t").append(rows(KV, [(n, str(n)) for n in range(10)]))
    lake.sql("INSERT INTO t VALUES (10, 'ten'), (11, NULL)")
    lake.sql("DELETE FROM t WHERE k IN (3, 10)")
    assert same(lake, ["v", "k"])


def test_renamed_and_swapped_columns(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows("a STRING, b STRING", [("1", "2")]))
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        lake.sql(f"ALTER TABLE t RENAME COLUMN {old} TO {new}")
    assert same(lake, ["a", "b"])


def test_merged_files_as_they_are_now(lake: Lake, rows: Rows) -> None:
    for n in range(3):
        lake.table("t").append(rows(KV, [(n, str(n))]))
    lake.sql("CALL merge_adjacent_files()")
    assert same(lake, ["k", "v"])
    assert lake.table("t").few_rows(["k"], 2) is None  # part of a file


def test_a_table_without_rows(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (k INT, v STRING)")
    assert same(lake, ["v"])


def test_what_is_left_to_spark(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows("k INT, s STRUCT<a: INT>, l ARRAY<INT>", [(1, (2,), [3])]))
    assert not same(lake, ["k"])  # by names, for the list
    lake.sql("CREATE OR REPLACE TABLE t (k INT, s STRUCT<a: INT>)")
    lake.sql("INSERT INTO t SELECT 1, named_struct('a', 2)")
    assert same(lake, ["k"])
    assert not same(lake, ["s"])
    lake.sql("ALTER TABLE t ALTER COLUMN k TYPE BIGINT")
    assert not same(lake, ["k"])
    lake.sql("CREATE OR REPLACE TABLE t (k INT)")
    lake.sql("INSERT INTO t SELECT id FROM range(20)")
    lake.sql("ALTER TABLE t ADD COLUMN d INT DEFAULT 5")
    assert same(lake, ["k", "d"])  # no file has d
    assert (
        arrow_files.read_small(lake.table("t").scan_at(lake.catalog.latest().id), ["k"]) is not None
    )
    lake.limits = Limits(table_files=0)
    assert not same(lake, ["k"])


def test_no_more_than_the_limit(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows(KV, ABC))
    with lake.transaction() as tx:
        source = tx.table("t").scan_all()
        assert arrow_files.read_small(source, ["k"], Limits(table_rows=2)) is None
        assert arrow_files.read_small(source, ["k"], Limits(table_rows=3)) is not None


def test_the_candidate_state_and_a_slice_of_it(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows("k INT, day STRING", [(1, "mon"), (2, "tue"), (3, None)]))
    with lake.transaction() as tx:
        table = tx.table("t")
        table.append(rows("k INT, day STRING", [(4, "mon")]))
        table.delete("k = 1")
        whole, slice_ = table.few_rows(["k"]), table.few_rows(["k"], ("day", "mon"))
        assert whole is not None
        assert slice_ is not None
        assert seen(whole) == seen(table.to_df().select("k").toArrow())
        assert seen(slice_.select(["k"])) == ["{'k': 4}"]
        tx.rollback()


def test_a_file_that_is_gone(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows(KV, ABC))
    for file in lake.table("t").list_files():
        Path(file.data_file).unlink()
    assert lake.table("t").few_rows(["k"], lake.catalog.latest().id) is None


def _footer_size(path: str) -> int:
    """As the last eight bytes say: its length, then the magic number."""
    return int.from_bytes(Path(path).read_bytes()[-8:-4], "little")


def test_days_of_another_calendar(lake: Lake, rows: Rows) -> None:
    """Spark turns those that are written as Spark 2 wrote them."""
    lake.table("t").append(rows(KV, ABC).coalesce(1))
    latest = lake.catalog.latest().id
    (file,) = lake.table("t").list_files()
    content = pq.read_table(file.data_file)
    assert lake.table("t").few_rows(["k"], latest) is not None
    with pq.ParquetWriter(file.data_file, content.schema, store_schema=False) as writer:
        writer.write_table(content)
        writer.add_key_value_metadata({"org.apache.spark.legacyDateTime": ""})
    with lake.catalog.writing() as connection:  # another file in its place would be refused
        size, footer = Path(file.data_file).stat().st_size, _footer_size(file.data_file)
        connection.execute(
            metadata.data_file.update().values(file_size_bytes=size, footer_size=footer)
        )
    assert lake.table("t").few_rows(["k"], latest) is None
