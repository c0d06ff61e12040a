"""What Arrow finds and computes of DELETE and UPDATE is what Spark does, or nothing.

Tests ``lakes/rows/change.py``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import CommitConflict, QueryFailed
from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from penstock.lakes.rows import arrow_finder, engine
from penstock.lakes.rows.arrow_finder import Bounds, Computed
from penstock.lakes.rows.change import Condition, MatchedRows, RowChange
from penstock.lakes.rows.route import facts_of
from tests import duck
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lakes.transaction import TransactionTable

pytestmark = pytest.mark.spark

Make = Callable[[Lake, "SparkSession"], None]
Change = Callable[["TransactionTable"], Any]


def orders(spark: SparkSession, first: int, end: int) -> DataFrame:
    return spark.range(first, end, 1, 1).selectExpr(
        "id",
        "if(id % 5 = 0, NULL, int(id % 7)) AS kind",
        "CAST(id * 1.25 AS DECIMAL(9, 2)) AS price",
        "if(id % 3 = 0, 'open', concat('nr ', id)) AS state",
        "date_add(DATE '2013-02-01', int(id)) AS day",
        "timestamp_micros(id * 1000001) AS moment",
        "id / 3.0D AS share",
        "id % 2 = 0 AS even",
    )


def plain(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t")
    for first in (0, 20, 40):
        table.append(orders(spark, first, first + 20))


def deleted(lake: Lake, spark: SparkSession) -> None:
    plain(lake, spark)
    lake.table("t").delete("id IN (7, 27)")
    with duck.attach(lake.catalog.uri, inline=5) as con:
        con.execute("DELETE FROM t WHERE id IN (17, 37, 47)")
    lake.table("t").delete("id BETWEEN 48 AND 51")


def partitioned(lake: Lake, spark: SparkSession) -> None:
    lake.table("t").append(orders(spark, 0, 40), partition_by=["kind"])


def renamed(lake: Lake, spark: SparkSession) -> None:
    """Two columns have each other's names in the files."""
    table = lake.table("t")
    names = ["id", "price", "kind", "state", "day", "moment", "share", "even"]
    table.append(orders(spark, 0, 30).toDF(*names))
    for old, new in (("kind", "other"), ("price", "kind"), ("other", "price")):
        table.alter.rename_column(old, new)


def updated(lake: Lake, spark: SparkSession) -> None:
    """Rows with ids of their own."""
    plain(lake, spark)
    table = lake.table("t")
    table.update({"state": "'new'"}, "id % 4 = 1")
    table.update({"id": "id + 100"}, "id IN (9, 10, 11)")


def compacted(lake: Lake, spark: SparkSession) -> None:
    updated(lake, spark)
    lake.table("t").delete("id = 55")
    lake.merge_adjacent_files()


def of_duckdb(lake: Lake, spark: SparkSession) -> None:
    with duck.attach(lake.catalog.uri) as con:
        con.execute(
            "CREATE TABLE t (id BIGINT, kind INT, price DECIMAL(9, 2), state VARCHAR, day DATE, "
            "moment TIMESTAMPTZ, share DOUBLE, even BOOLEAN)"
        )
        con.execute(
            "INSERT INTO t SELECT i, i % 7, i * 1.25, CASE WHEN i % 3 = 0 THEN 'open' ELSE 'x' END,"
            " DATE '2013-02-01' + i::INT, make_timestamptz(i * 1000001), i / 3, i % 2 = 0 "
            "FROM range(50) s(i)"
        )
        con.execute("UPDATE t SET state = 'upd' WHERE id % 10 = 7")


def inlined(lake: Lake, spark: SparkSession) -> None:
    """Rows in files and, some of them deleted, in the catalog."""
    with duck.attach(lake.catalog.uri, inline=20) as con:
        con.execute(
            "CREATE TABLE t (id BIGINT, kind INT, price DECIMAL(9, 2), state VARCHAR, day DATE, "
            "moment TIMESTAMPTZ, share DOUBLE, even BOOLEAN)"
        )
        for first, end in ((0, 30), (30, 40), (40, 60)):
            con.execute(
                "INSERT INTO t SELECT i, nullif(i % 7, 3), i * 1.25, "
                "CASE WHEN i % 3 = 0 THEN 'open' ELSE 'é' END, DATE '2013-02-01' + i::INT, "
                "make_timestamptz(i * 1000001), nullif(i, 47) / 3, i % 2 = 0 "
                f"FROM range({first}, {end}) s(i)"
            )
        con.execute("DELETE FROM t WHERE id IN (7, 37)")


def widened(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t")
    few = orders(spark, 0, 20)
    table.append(few.withColumn("id", few.id.cast("int")))
    table.alter.set_type("id", "bigint")
    table.append(orders(spark, 20, 30))


def added(lake: Lake, spark: SparkSession) -> None:
    """A column that older files lack, of which they have the default."""
    table = lake.table("t")
    table.append(orders(spark, 0, 20).drop("kind"))
    lake.sql("ALTER TABLE t ADD COLUMN kind INT DEFAULT 5")
    table.append(orders(spark, 20, 30))


STATES: list[tuple[Make, bool]] = [
    (plain, True),
    (deleted, True),
    (partitioned, True),
    (renamed, True),
    (updated, True),
    (compacted, True),
    (of_duckdb, True),
    (inlined, True),
    (widened, False),
    (added, False),
]


def delete(table: TransactionTable) -> Any:
    return table.delete("pmod(id, 10) = 7 OR kind IS NULL AND state = 'open'")


def update(table: TransactionTable) -> Any:
    values = {"state": "'upd'", "price": "price + 1", "KIND": "if(even, kind, NULL)", "id": "id"}
    return table.update(values, "id % 10 = 7 AND price > 1 OR id = 3")


def places(table: TransactionTable, where: str) -> Any:
    computed = arrow_finder.compiled(table.schema, RowChange.delete(Condition.of(where)))
    assert computed is not None
    return found(table, computed)


def found(table: TransactionTable, computed: Computed) -> MatchedRows | None:
    source, limits = table.scan_all(), table.context.limits
    return arrow_finder.find(source, computed, facts_of(source, table.schema), limits)


def unused(*_: object, **__: object) -> Any:
    raise AssertionError("Arrow should have done it")


@contextmanager
def without_spark() -> Iterator[None]:
    """No rows are found by Spark inside."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "find", unused)
        patched.setattr(engine, "find_updated", unused)
        yield


def changed(lake: Lake, change: Change) -> tuple[Any, ...]:
    """What DuckDB reads afterwards: the rows with their ids, and what changed; what was told."""
    first = lake.catalog.latest().id + 1
    with lake.transaction() as transaction:
        staged = change(transaction.table("t"))
    last = lake.catalog.latest().id
    uri = lake.catalog.uri
    feed = f"SELECT * EXCLUDE snapshot_id FROM lk.table_changes('t', {first}, {last})"
    assert last == first
    own = [tuple(row) for row in lake.table("t").to_df(row_ids=True).collect()]
    read = duck.rows(uri, "SELECT rowid, * FROM t")
    assert len(own) == len(read)
    counts = staged.rows_deleted, staged.rows_updated, staged.rows_written
    return counts, read, duck.rows(uri, feed), sorted(own, key=repr)


@pytest.mark.parametrize(("make", "on_driver"), STATES, ids=[make.__name__ for make, _ in STATES])
def test_as_spark(tmp_path: Path, spark: SparkSession, make: Make, on_driver: bool) -> None:
    """The table is made once, and each change begins with a copy of its lake."""
    folder = tmp_path / "lake"
    folder.mkdir()
    with attached(folder, spark, Limits()) as lake:
        make(lake, spark)
    shutil.copytree(folder, tmp_path / "made")
    for change in (delete, update):
        found = []
        for limits in (Limits(scanned_files=-1), Limits()):
            shutil.rmtree(folder)
            shutil.copytree(tmp_path / "made", folder)
            alone = without_spark() if limits == Limits() and on_driver else nullcontext()
            with attached(folder, spark, limits) as lake, alone:
                found.append(changed(lake, change))
        assert found[0] == found[1]
        assert max(found[0][0]) > 0


def attached(folder: Path, spark: SparkSession, limits: Limits) -> Lake:
    uri = f"ducklake:sqlite:{folder}/meta.sqlite"
    return Lake.attach(uri, data_path=f"{folder}/data", spark=spark, limits=limits)


@pytest.mark.parametrize("change", [delete, update])
def test_rows_of_the_transaction_itself(lake: Lake, spark: SparkSession, change: Change) -> None:
    plain(lake, spark)
    with lake.transaction() as transaction:
        table = transaction.table("t")
        table.append(orders(spark, 100, 120))
        table.delete("id = 47")
        table.update({"state": "'first'"}, "id IN (17, 107)")
        with without_spark():
            change(table)
        found = table_of(table.to_df())
    assert [tuple(row) for row in duck.rows(lake.catalog.uri, "SELECT count(*) FROM t")] == [
        (len(found),)
    ]
    rows = {row[0]: row[3] for row in found}
    assert (17 in rows, 47 in rows, 117 in rows) == (
        (False, False, False) if change is delete else (True, False, True)
    )
    assert change is delete or (rows[17], rows[107], rows[117], rows[3]) == ("upd",) * 4


@pytest.mark.parametrize("change", [delete, update])
def test_two_that_change_the_same_rows_conflict(
    lake: Lake, spark: SparkSession, change: Change
) -> None:
    plain(lake, spark)

    def both() -> None:
        with lake.transaction() as transaction:
            with without_spark():
                change(transaction.table("t"))
            lake.table("t").delete("id = 7")

    with pytest.raises(CommitConflict):
        both()


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("upper(state) = 'OPEN'", {"kind": "1"}),  # a function that is not computed here
        ("share > 1", {"kind": "1"}),
        ("rowid = 3", {"kind": "1"}),
        ("id = 3", {"price": "price / 3"}),
        ("id = 3", {"kind": "9.9"}),  # rounded, as DuckDB does
        ("id = 3", {"day": "'2013-01-01'"}),
        ("id = 3", {"price": "price * 1.111"}),  # loses digits
    ],
)
def test_what_is_left_to_spark(
    lake: Lake, spark: SparkSession, where: str, values: dict[str, object]
) -> None:
    plain(lake, spark)
    with lake.transaction() as transaction:
        table = transaction.table("t")
        change = RowChange.update(Condition.of(where), values)
        computed = arrow_finder.compiled(table.schema, change)
        assert computed is None or found(table, computed) is None
    assert lake.table("t").update(values, where).staged.rows_updated > 0


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("id % (kind - 1) = 0", {"kind": "1"}),
        ("id = 3", {"kind": "kind + 2147483647"}),
        ("id = 3", {"price": "price * 10000000"}),
        ("1 % 0 = id", {"kind": "1"}),
        ("id = 3 = 4", {"kind": "1"}),
    ],
)
def test_what_fails_fails_as_in_spark(
    lake: Lake, spark: SparkSession, where: str, values: dict[str, object]
) -> None:
    plain(lake, spark)
    before = table_of(lake.table("t").to_df())
    with pytest.raises(QueryFailed):
        lake.table("t").update(values, where)
    assert table_of(lake.table("t").to_df()) == before


def test_a_null_that_a_column_does_not_take(lake: Lake, rows: Rows) -> None:
    duck.rows(lake.catalog.uri, "CREATE TABLE t(k INT NOT NULL, v VARCHAR)")
    table = lake.table("t")
    table.append(rows("k INT, v STRING", [(1, "a"), (2, "b")]))
    with pytest.raises(QueryFailed, match=r'column k of main.t is NOT NULL.*"v":"b"'):
        table.update({"k": "NULL"}, "k = 2")


def test_another_dialect(lake: Lake, spark: SparkSession) -> None:
    """A session that computes otherwise is asked itself."""
    plain(lake, spark)
    with lake.transaction() as transaction:
        table = transaction.table("t")
        spark.conf.set("spark.sql.ansi.enabled", "false")
        try:
            assert not arrow_finder.settings_are_known(table)
        finally:
            spark.conf.set("spark.sql.ansi.enabled", "true")
        assert arrow_finder.settings_are_known(table)


def test_more_than_is_kept(lake: Lake, spark: SparkSession) -> None:
    plain(lake, spark)
    lake.limits = Limits(places=9)
    with lake.transaction() as transaction:
        table = transaction.table("t")
        assert places(table, "id < 9") is not None
        assert places(table, "id < 10") is None


def test_row_groups(tmp_path: Path, lake: Lake, spark: SparkSession) -> None:
    """Places count from the file's beginning, over several row groups and slices."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from penstock.lakes.arrow_expressions.compiled import condition, expression
    from penstock.lakes.format.files import DataFile
    from penstock.lakes.format.schema import Column, TableSchema
    from penstock.lakes.reading.arrow_files import Deleted

    texts = [f"text {i % 3}" for i in range(50)]
    fields = [
        pa.field("k", pa.int64(), metadata={b"PARQUET:field_id": b"1"}),
        pa.field("v", pa.string(), metadata={b"PARQUET:field_id": b"2"}),
    ]
    path = str(tmp_path / "rows.parquet")
    held = pa.table([pa.array(range(50)), texts], schema=pa.schema(fields))
    pq.write_table(held, path, row_group_size=20, store_schema=False)
    schema = TableSchema((Column("n", "int64", 1), Column("w", "varchar", 2)))
    kinds = {"n": pa.int64(), "w": pa.string()}
    file = DataFile(path, 50, Path(path).stat().st_size, 0, id=1)
    wanted = condition("n % 4 = 3", kinds)
    news = {"n": expression("n + 1", kinds)}
    job = arrow_finder.Reading(schema, wanted, Deleted(), news)
    found = arrow_finder.read([file], job, Bounds(50, 10_000, batch=7))
    values = pa.concat_tables([one.values for one in found])
    assert [p for one in found for p in one.positions.to_pylist()] == list(range(3, 50, 4))
    assert values["n"].to_pylist() == list(range(4, 51, 4))
    assert values["w"].to_pylist() == texts[3::4]
