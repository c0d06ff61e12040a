"""Small queries answered from files have the rows that Spark has, or no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.lakes.format.naming import TableRef
from penstock.lakes.lake import Lake
from penstock.lakes.queries import sparkless
from penstock.sql.plain_select import plain_select

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

MADE = """\
SELECT CAST(id AS INT) AS k, IF(id % 3 = 0, NULL, concat('v', id % 4)) AS v,
  CAST(id AS DECIMAL(9, 2)) / 8 AS d, id % 2 = 0 AS even, CAST(id AS FLOAT) / 3 AS f,
  DATE '2013-01-01' + CAST(id AS INT) AS day, encode(concat('b', id), 'UTF-8') AS b,
  CAST(timestamp_seconds(1356998400 + id * 86399) AS TIMESTAMP) AS zoned,
  CAST(timestamp_seconds(id * 1.5) AS TIMESTAMP_NTZ) AS zoneless
FROM range(40)"""


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """Two files, some rows of which are deleted, and rows that the catalog holds."""
    lake.sql(f"CREATE TABLE t AS {MADE}")
    lake.sql("DELETE FROM t WHERE k IN (1, 4)")
    lake.sql("INSERT INTO t SELECT * FROM t WHERE k > 35")
    lake.sql("CALL set_option('data_inlining_row_limit', '5')")
    lake.sql("INSERT INTO t (k, v) VALUES (100, 'é'), (101, NULL)")
    return lake


def answer(lake: Lake, text: str, **conf: str) -> sparkless.SmallResult | None:
    select = plain_select(text)
    assert select is not None
    return sparkless.read_small_table(lake.catalog, TableRef.parse("t"), select, conf)


def columns(frame: DataFrame) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in frame.dtypes]


ORDERED = (
    "SELECT k FROM t ORDER BY k",
    "SELECT * FROM t ORDER BY v DESC, K, day NULLS LAST",
    "SELECT even, v FROM t ORDER BY even, v NULLS LAST, k DESC LIMIT 7",
    "SELECT zoned, b FROM t ORDER BY zoned DESC, k",
    "SELECT count(*) FROM t",
    "SELECT count(1) AS n FROM t WHERE v = 'v1'",
    "SELECT count(*) FROM t WHERE zoned < '2013-01-10'",
    "SELECT day, v FROM t WHERE day <= DATE '2013-02-01' ORDER BY v, day DESC LIMIT 5",
)
UNORDERED = (
    "SELECT * FROM t",
    "SELECT V, f FROM t WHERE k BETWEEN 3 AND 30 AND v LIKE 'v%'",
    "SELECT k FROM t WHERE v IS NULL OR NOT even",
    "SELECT zoneless FROM t WHERE day > DATE '2013-01-20' AND d * 2 > 7.5",
    "SELECT k FROM t WHERE zoned >= TIMESTAMP '2013-01-05 00:00:00' AND zoned < '2013-01-20'",
    "SELECT k FROM t WHERE zoned > DATE '2013-01-20' OR zoned = zoned AND k < 3",
    "SELECT k, zoneless FROM t WHERE zoneless BETWEEN '1970-01-01 00:00:20.5' AND '1970-01-02'",
    "SELECT k FROM t WHERE zoneless > TIMESTAMP '1970-01-01 00:00:20'",
    "SELECT k FROM t WHERE zoneless IN (TIMESTAMP_NTZ '1970-01-01 00:00:30')",
)


def test_the_rows_that_spark_has(filled: Lake) -> None:
    for text in (*ORDERED, *UNORDERED):
        same_as_spark(filled, text, ordered=text in ORDERED)


def same_as_spark(lake: Lake, text: str, *, ordered: bool) -> None:
    result, spark = answer(lake, text), lake.sql(text)
    assert result is not None, text
    assert list(result.columns) == columns(spark), text
    rows, wanted = result.rows, [tuple(row) for row in spark.collect()]
    if not ordered:
        rows, wanted = sorted(rows, key=str), sorted(wanted, key=str)
    assert rows == wanted, text


YOUNGER = (
    *("a INT DEFAULT 7", "day DATE DEFAULT DATE '2020-02-03'", "v VARCHAR", "even BOOLEAN"),
    *("price DECIMAL(9, 2) DEFAULT 1.5", "f DOUBLE DEFAULT 0.1", "word VARCHAR DEFAULT 'ä'"),
    "at TIMESTAMP DEFAULT TIMESTAMP '2020-02-03 04:05:06'",
)


def test_columns_that_are_younger_than_a_file(lake: Lake) -> None:
    """Rows of the older file have the defaults that the columns were added with, or NULL."""
    lake.sql("CREATE TABLE t AS SELECT id FROM range(3)")
    for column in YOUNGER:
        lake.sql(f"ALTER TABLE t ADD COLUMN {column}")
    lake.sql("ALTER TABLE t ALTER COLUMN a SET DEFAULT 9")
    lake.sql("INSERT INTO t (id, v) SELECT id, 'new' FROM range(3, 5)")
    lake.sql("DELETE FROM t WHERE id = 1")
    for text in (
        "SELECT * FROM t",
        "SELECT word, price FROM t WHERE day = '2020-02-03' AND v IS NULL",
        "SELECT count(*) FROM t WHERE a = 7",
    ):
        same_as_spark(lake, text, ordered=False)


def test_a_limit_reads_no_more_files_than_it_needs(filled: Lake) -> None:
    result = answer(filled, "SELECT k FROM t LIMIT 3")
    assert result is not None
    assert len(result.rows) == 3
    assert answer(filled, "SELECT k FROM t LIMIT 0") == sparkless.SmallResult((("k", "int"),), [])


def test_what_is_left_to_spark(filled: Lake) -> None:
    assert answer(filled, "SELECT k FROM t ORDER BY f") is None  # NaN and -0.0
    zone = {"spark.sql.session.timeZone": "Europe/Berlin"}
    assert answer(filled, "SELECT k FROM t WHERE zoned > '2013-01-01'", **zone) is None
    assert answer(filled, "SELECT k FROM t WHERE day > zoned") is None
    assert answer(filled, "SELECT k FROM t WHERE upper(v) = 'V1'") is None
    assert answer(filled, "SELECT missing FROM t") is None
    assert (
        answer(filled, "SELECT k FROM t WHERE k > 1", **{"spark.sql.ansi.enabled": "false"}) is None
    )
    filled.sql("CREATE VIEW seen AS SELECT 1 AS k")
    select = plain_select("SELECT k FROM seen")
    assert select is not None
    assert sparkless.read_small_table(filled.catalog, TableRef.parse("seen"), select, {}) is None


def test_a_slice_is_chosen_by_its_value(filled: Lake) -> None:
    select = plain_select("SELECT k FROM t")
    assert select is not None
    result = sparkless.read_small_table(
        filled.catalog, TableRef.parse("t"), select, {}, slice_=("v", "v2")
    )
    assert result is not None
    assert result.rows == [
        tuple(row) for row in filled.sql("SELECT k FROM t WHERE v = 'v2'").collect()
    ]
