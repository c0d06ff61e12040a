"""Rows written before and after their table's columns change, all in one transaction.

Tests ``lakes/candidate/table.py``, ``lakes/candidate/staged.py``, ``lakes/staging.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import CommitConflict, SchemaMismatch, UnsupportedFeature
from penstock.lakes import alter
from penstock.lakes.format.schema import Column
from penstock.lakes.lake import Lake
from penstock.lakes.staging import TransactionTable
from tests import duck

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = "SELECT 1 AS a, 'r' AS b, array(named_struct('x', 1)) AS l FROM range(20)"
AFTER = "SELECT 2L AS b, 'z' AS a, array(named_struct('xx', 2)) AS l, 6 AS n FROM range(20)"


def change(table: TransactionTable) -> None:
    """Two columns swap their names, a nested field gets another, one is promoted, one is new."""
    schema = table.schema
    for path, name in ((("a",), "tmp"), (("b",), "a"), (("tmp",), "b")):
        schema = alter.rename_column(schema, path, name)
    schema = alter.rename_column(schema, ("l", "element", "x"), "xx")
    schema = alter.set_type(schema, ("b",), Column("", "int64"))
    table.alter(alter.add_column(schema, (), Column("n", "int32", default="5")))


@pytest.mark.spark
@pytest.mark.parametrize("existing", [False, True])
def test_rows_are_read_by_the_columns_they_were_written_by(
    spark: SparkSession, tmp_path: Path, existing: bool
) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        if existing:
            lake.table("t").append(spark.sql(BEFORE))
        with lake.transaction() as transaction:
            table = transaction.table("t")
            table.append(spark.sql(BEFORE))
            change(table)
            table.append(spark.sql(AFTER))
            table.append(spark.sql("SELECT 3L AS b, CAST(NULL AS INT) AS n FROM range(20)"))
            with pytest.raises(SchemaMismatch, match="has NULLs"):
                table.alter(alter.set_nullable(table.schema, ("n",), False))
            inside = sorted(map(tuple, table.to_df().select("b", "a", "n").collect()))
        assert sorted(map(tuple, lake.table("t").to_df().select("b", "a", "n").collect())) == inside
    counts = {(1, "r", 5): 40 if existing else 20, (2, "z", 6): 20, (3, None, None): 20}
    assert {row: inside.count(row) for row in inside} == counts
    theirs = "SELECT b, a, n, l[1].xx, count(*) FROM t GROUP BY ALL"
    inner = {1: 1, 2: 2, 3: None}
    expected = [(*row, inner[row[0]], count) for row, count in counts.items()]
    assert duck.rows(uri, theirs) == sorted(expected, key=repr)


SWAPPED = ("RENAME COLUMN a TO z", "RENAME COLUMN b TO a")
ANEW = ("DROP COLUMN a", "ADD COLUMN a BIGINT")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("changes", "where", "rows"),
    [
        (SWAPPED, "a = 1005", 1),
        (SWAPPED, "a = 5", 0),
        (SWAPPED, "a < 500", 0),  # of the column that was called so it is true for each row
        (ANEW, "a IS NULL", 10),
        (ANEW, "a >= 0", 0),
        (("DROP COLUMN a", "ADD COLUMN a BIGINT DEFAULT 77"), "a = 77", 10),
    ],
)
def test_files_are_chosen_by_the_columns_that_have_the_names_now(
    spark: SparkSession, tmp_path: Path, changes: tuple[str, ...], where: str, rows: int
) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.table("t").append(spark.sql("SELECT id AS a, id + 1000 AS b, 0 AS c FROM range(10)"))
        for statement in ("UPDATE t SET c = 1", "DELETE FROM t"):
            transaction = lake.transaction()
            for change in changes:
                transaction.sql(f"ALTER TABLE t {change}")
            counts = transaction.sql(f"{statement} WHERE {where}").collect()[0]
            assert counts["num_affected_rows"] == rows
            transaction.rollback() if "c = 1" in statement else transaction.commit()
    assert duck.rows(uri, "SELECT count(*), sum(c) FROM t") == [
        (10 - rows, 0 if rows < 10 else None)
    ]


@pytest.mark.spark
@pytest.mark.parametrize("existing", [False, True])
def test_nulls_that_the_catalog_is_to_hold_are_seen(
    spark: SparkSession, tmp_path: Path, existing: bool
) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        if existing:
            lake.sql("CREATE TABLE t (a INT, b INT)")
            lake.sql("INSERT INTO t VALUES (1, 1)")
        with lake.transaction() as transaction:
            if not existing:
                transaction.sql("CREATE TABLE t (a INT, b INT)")
            transaction.sql("INSERT INTO t VALUES (NULL, 2)")
            with pytest.raises(SchemaMismatch, match=r"'a' .* has NULLs"):
                transaction.sql("ALTER TABLE t ALTER COLUMN a SET NOT NULL")
            transaction.sql("ALTER TABLE t ALTER COLUMN b SET NOT NULL")


@pytest.mark.spark
def test_a_slice_is_replaced_whose_key_has_got_wider(spark: SparkSession, tmp_path: Path) -> None:
    """Its files' partition values are texts of the type that it had."""
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (x FLOAT, n INT)")
        lake.sql("ALTER TABLE t SET PARTITIONED BY (x)")
        with lake.transaction() as transaction:
            transaction.sql("INSERT INTO t VALUES (1.1, 1), (2.5, 2)")
            transaction.sql("ALTER TABLE t ALTER COLUMN x SET DATA TYPE DOUBLE")
            table, wide = transaction.table("t"), 1.100000023841858
            table.replace_slice(spark.sql("SELECT 3 AS n"), "x", wide)
            assert [row["n"] for row in table.slice_df("x", wide).collect()] == [3]
    assert duck.rows(uri, "SELECT n FROM t ORDER BY n") == [(2,), (3,)]


@pytest.mark.spark
@pytest.mark.parametrize(
    "changes",
    [
        ("RENAME COLUMN a TO z", "RENAME COLUMN b TO a"),
        ("RENAME COLUMN a TO z", "ADD COLUMN a INT DEFAULT 2"),
    ],
)
def test_rows_that_others_add_to_a_slice_are_a_conflict_by_whatever_name(
    spark: SparkSession, tmp_path: Path, changes: tuple[str, ...]
) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (a INT, b INT)")
        lake.sql("ALTER TABLE t SET PARTITIONED BY (a, b)")
        transaction = lake.transaction()
        for change in changes:
            transaction.sql(f"ALTER TABLE t {change}")
        table = transaction.table("t")
        rest = [name for name in table.schema.names if name != "a"]
        new = spark.range(1).selectExpr(*(f"9 AS {name}" for name in rest))
        table.replace_slice(new, "a", 2)
        lake.sql("INSERT INTO t VALUES (1, 2)")  # what the transaction calls a is 2 there, too
        with pytest.raises(CommitConflict, match=r"changed rows of main\.t"):
            transaction.commit()


@pytest.mark.spark
@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("renames", [("RENAME COLUMN b TO c",), ()])
def test_a_new_column_has_nothing_of_the_dropped_one_of_its_name(
    spark: SparkSession, tmp_path: Path, existing: bool, renames: tuple[str, ...]
) -> None:
    """The name mapping that its rows get by the renaming is of the columns they were written by."""
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        if existing:
            lake.sql("CREATE TABLE t (a INT, b INT)")
        with lake.transaction() as transaction:
            if not existing:
                transaction.sql("CREATE TABLE t (a INT, b INT)")
            transaction.sql("INSERT INTO t VALUES (1, 2)")
            for change in ("DROP COLUMN a", "ADD COLUMN a INT", *renames):
                transaction.sql(f"ALTER TABLE t {change}")
            assert [tuple(row) for row in transaction.sql("SELECT * FROM t").collect()] == [
                (2, None)
            ]
        assert [tuple(row) for row in lake.sql("SELECT * FROM t").collect()] == [(2, None)]
    assert duck.rows(uri, "FROM t") == [(2, None)]


@pytest.mark.spark
def test_rows_that_were_updated_before_a_column_went_have_their_ids(
    spark: SparkSession, tmp_path: Path
) -> None:
    """DuckDB finds no rows in a file with a name mapping beside a file without."""
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.table("t").append(spark.sql("SELECT id AS a, id AS b FROM range(3)"))
        with lake.transaction() as transaction:
            transaction.sql("UPDATE t SET b = 9 WHERE a = 1")
            transaction.sql("ALTER TABLE t DROP COLUMN a")
        with lake.transaction() as transaction:
            transaction.sql("UPDATE t SET b = 8 WHERE b = 2")
    assert duck.rows(uri, "SELECT rowid, b FROM t") == [(0, 0), (1, 9), (2, 8)]


@pytest.mark.spark
@pytest.mark.parametrize("change", ["RENAME COLUMN b TO z", "ALTER COLUMN c TYPE BIGINT"])
def test_rows_that_were_updated_keep_their_columns_until_the_commit(
    spark: SparkSession, tmp_path: Path, change: str
) -> None:
    """DuckDB would not find their row ids."""
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.table("t").append(spark.sql("SELECT id AS a, id AS b, 0 AS c FROM range(10)"))
        with lake.transaction() as transaction:
            transaction.sql("UPDATE t SET c = 1 WHERE a < 5")
            with pytest.raises(UnsupportedFeature, match="rows that this transaction updated"):
                transaction.sql(f"ALTER TABLE t {change}")
            transaction.sql("ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 4")
        lake.sql(f"ALTER TABLE t {change}")
    rows = duck.rows(uri, "SELECT rowid, a, d FROM t")
    assert rows == [(at, at, 4) for at in range(10)]
