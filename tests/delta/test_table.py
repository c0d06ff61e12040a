"""Tables through Spark: each change, read back by DuckDB and delta-rs at every version.

Tests ``delta/table.py``, ``delta/merge.py``, ``delta/scan.py``,
``delta/version.py``, ``delta/delta.py`` and ``delta/place.py``.

Changes of tables that others made, by the transaction of a lake: their files, names and vectors.

Tests ``delta/table.py``, ``delta/version.py`` and ``delta/version.py``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import Delta
from penstock.delta.actions import Add, DeletionVector, Protocol, lines
from penstock.delta.log_files import commit_path, put_if_absent
from penstock.delta.schema import column_comments
from penstock.delta.table import Table
from penstock.destinations.delta.lake import DeltaLake
from penstock.errors import (
    ArgumentError,
    ColumnNotFound,
    MergeKeyError,
    PenstockError,
    QueryFailed,
    SchemaMismatch,
    SnapshotNotFound,
    TableNotFound,
    UnsupportedFeature,
)
from tests.delta.oracles import by_delta_rs, by_duckdb, rows_of, sort
from tests.delta.tables import make, metadata, schema_text
from tests.delta.test_fixtures import EXPECTED, FIXTURES, NOT_CHANGED, NOT_READ, NOT_WRITTEN
from tests.delta.test_vectors import INLINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


ON = {"delta.enableDeletionVectors": "true"}
Rows = Sequence[tuple[Any, ...]]


@pytest.fixture
def delta(spark: SparkSession, tmp_path: Path) -> Delta:
    return Delta.attach(tmp_path / "root", spark=spark)


@pytest.fixture
def orders(delta: Delta, spark: SparkSession) -> Table:
    """Ten orders in two files."""
    table = delta.table("shop.orders")
    table.append(orders_of(spark, range(5)))
    table.append(orders_of(spark, range(5, 10)))
    return table


def orders_of(spark: SparkSession, ids: Sequence[int], name: str = "n") -> DataFrame:
    rows = [(at, f"{name}{at}", at * 10) for at in ids]
    return spark.createDataFrame(rows, "id long, name string, price long")


def check(table: Table, expected: Rows | None = None) -> None:
    """All versions are the same to other readers, and the newest to all."""
    uri, last = table.place.uri, table.version()
    rows = rows_of(table.to_df().toArrow())
    for version in range(last + 1):
        seen = by_duckdb(uri, version)
        assert by_delta_rs(uri, version) == seen, f"version {version}"
    assert seen == rows
    assert expected is None or rows == sort(expected)


def data_files(table: Table) -> set[str]:
    """The data files that are there, whether a version names them or not."""
    root = Path(table.place.uri)
    found = [*root.rglob("*.parquet"), *root.rglob("*.bin")]
    return {str(path) for path in found if "_delta_log" not in path.parts}


def all_files(table: Table) -> set[str]:
    """The data files of all versions."""
    return {path for at in range(table.version() + 1) for path in table.files(at)}


def ids(table: Table, version: int | None = None) -> list[int]:
    return sorted(row.id for row in table.to_df(version).select("id").collect())


def test_append_and_time_travel(delta: Delta, orders: Table) -> None:
    assert (ids(orders, 0), ids(orders)) == ([*range(5)], [*range(10)])
    assert orders.append([{"id": 10, "name": "é"}]).change.rows_inserted == 1
    first = orders.history()[-1]
    assert (first.version, first.operation) == (0, "CREATE TABLE AS SELECT")
    appended = orders.history(1)[0]
    assert (appended.metrics["numOutputRows"], appended.parameters["mode"]) == ("1", "Append")
    assert orders.to_df(timestamp=first.time).count() == 5
    assert delta.tables() == ["shop.orders"]
    check(orders)
    with pytest.raises(SnapshotNotFound, match="has no version 9"):
        orders.to_df(9)


@pytest.mark.parametrize("options", [{}, ON])
def test_delete_and_update(orders: Table, options: dict[str, str]) -> None:
    orders.set_options(options)
    untouched = set(orders.files(0))
    assert orders.delete("id = 7").change.rows_deleted == 1
    assert untouched <= set(orders.files())  # only the file with the row is another
    changed = orders.update({"price": "price + 1", "NAME": "upper(name)"}, "id IN (1, 8)")
    assert changed.change.rows_updated == 2
    assert orders.delete("id = 99").version is None
    kept = [(at, f"n{at}", at * 10) for at in range(10) if at not in (1, 7, 8)]
    check(orders, [*kept, (1, "N1", 11), (8, "N8", 81)])
    assert {p for p in data_files(orders) if p.endswith("parquet")} == all_files(orders)


def test_an_option_that_is_not_done_is_refused(delta: Delta, orders: Table) -> None:
    with pytest.raises(UnsupportedFeature, match=r"delta\.enableRowTracking"):
        orders.set_options({"delta.enableRowTracking": "true"})
    with pytest.raises(UnsupportedFeature, match=r"delta\.enableRowTracking"):
        delta.table("shop.new").create(orders.to_df(), options={"delta.enableRowTracking": "true"})


def test_a_file_of_which_all_rows_go_is_not_read(orders: Table) -> None:
    for path in orders.files(0):
        Path(path).write_bytes(b"no Parquet")
    assert orders.delete("id < 5").change.rows_deleted == 5
    assert ids(orders) == [*range(5, 10)]


def test_delete_everything(orders: Table) -> None:
    assert orders.delete().change.rows_deleted == 10
    check(orders, [])


@pytest.mark.parametrize("options", [{}, ON])
def test_upsert(orders: Table, spark: SparkSession, options: dict[str, str]) -> None:
    orders.set_options(options)
    merged = orders.merge(orders_of(spark, [8, 9, 20], "m"), ["ID"])
    assert (merged.change.rows_updated, merged.change.rows_inserted) == (2, 1)
    kept = [(at, f"n{at}", at * 10) for at in range(8)]
    check(orders, [*kept, (8, "m8", 80), (9, "m9", 90), (20, "m20", 200)])


def test_every_clause_of_a_merge(orders: Table, spark: SparkSession) -> None:
    source = spark.createDataFrame([(1, 5), (2, 0), (30, 1), (31, 0)], "id long, price long")
    when = Delta.when
    merged = orders.merge(
        source,
        "target.id = source.id",
        [
            when("matched", "delete", "source.price = 0"),
            when("matched", "update", None, {"price": "target.price + source.price"}),
            when("not_matched", "insert", "source.price > 0"),
            when("not_matched_by_source", "delete", "target.id > 7"),
            when("not_matched_by_source", "update", "target.id = 3", {"name": "'three'"}),
        ],
    )
    change = merged.change
    assert (change.rows_inserted, change.rows_updated, change.rows_deleted) == (1, 2, 3)
    kept = [(at, f"n{at}", at * 10) for at in (0, 4, 5, 6, 7)]
    check(orders, [*kept, (1, "n1", 15), (3, "three", 30), (30, None, 1)])


def test_keys_that_are_null_or_come_twice(orders: Table, spark: SparkSession) -> None:
    source = spark.sql("SELECT id, 'x' name FROM VALUES (1L), (1L), (NULL), (2L) AS t (id)")
    with pytest.raises(MergeKeyError, match="1 rows with a key that is NULL and 2 with") as caught:
        orders.merge(source, ["id"])
    assert caught.value.data["null_count"] == 1
    with pytest.raises(MergeKeyError, match=r"1 rows of shop\.orders are matched by several rows"):
        orders.merge(source, "target.id = source.id", [Delta.when("matched", "update")])
    assert orders.version() == 1


def test_what_is_no_merge(orders: Table, spark: SparkSession) -> None:
    source = orders_of(spark, [1])
    with pytest.raises(ColumnNotFound, match="'none' is not a column of the Delta table"):
        orders.merge(source, ["none"])
    with pytest.raises(ArgumentError, match="does not insert rows matched"):
        orders.merge(source, ["id"], [Delta.when("matched", "insert")])
    with pytest.raises(ArgumentError, match="no row to take values from"):
        orders.merge(source, ["id"], [Delta.when("not_matched_by_source", "update")])


@pytest.fixture
def days(delta: Delta, spark: SparkSession) -> Table:
    """Rows by day and by names with all kinds of characters."""
    table = delta.table("shop.days")
    rows = spark.sql(
        "SELECT id, date_add(DATE '2026-05-01', CAST(id % 3 AS INT)) AS day, "
        "element_at(array('a b', 'é/%', NULL, 'c=d+e'), CAST(id % 4 + 1 AS INT)) AS name "
        "FROM range(12)"
    )
    table.overwrite(rows, partition_by=["day", "name"])
    return table


def test_partitions(days: Table) -> None:
    check(days)
    assert days.partition_columns() == ("day", "name")
    assert days.to_df(where="name = 'é/%' AND day = DATE '2026-05-02'").count() == 1
    assert days.delete("name IS NULL").change.rows_deleted == 3
    check(days)
    assert any("day=2026-05-02" in path for path in days.files())


def test_replace_where(days: Table, spark: SparkSession) -> None:
    rows = spark.sql("SELECT 100L AS id, DATE '2026-05-02' AS day, 'x' AS name")
    replaced = days.replace_where(rows, "day = DATE '2026-05-02'")
    assert (replaced.change.rows_deleted, replaced.change.rows_inserted) == (4, 1)
    with pytest.raises(QueryFailed, match=r"a new row of shop\.days does not satisfy"):
        days.replace_where(rows, "day = DATE '2026-05-03'")
    check(days)
    assert ids(days) == [0, 2, 3, 5, 6, 8, 9, 11, 100]


def test_types(delta: Delta, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    table = delta.table("main.types")
    rows = spark.sql(
        "SELECT CAST(id AS TINYINT) AS a, CAST(id AS SMALLINT) AS b, CAST(id AS INT) AS c, id AS d,"
        " id / 3.0F AS e, id / 3.0D AS f, CAST(id AS DECIMAL(30, 5)) AS g, id > 1 AS h,"
        " DATE '1500-01-01' AS i, TIMESTAMP '2026-05-01 10:00:00.123456 UTC' AS j,"
        " TIMESTAMP_NTZ '2026-05-01 10:00:00.123456' AS k, X'00FF' AS l, array(id, NULL) AS m,"
        " map('x', named_struct('y', id)) AS n, named_struct('o', 'p', 'q', array(1)) AS o "
        "FROM range(3)"
    )
    table.overwrite(rows, partition_by=["a", "g", "h", "i", "j", "k"])
    plain = "a, b, c, d, e, f, g, h, i, k, l"
    expected = rows_of(rows.selectExpr(*plain.split(", ")).toArrow())
    assert rows_of(table.to_df().selectExpr(*plain.split(", ")).toArrow()) == expected
    assert by_duckdb(table.place.uri, 0, plain) == expected
    assert by_delta_rs(table.place.uri, 0, plain) == expected
    moments = table.to_df().selectExpr("unix_micros(j) AS j").distinct().collect()
    assert [m.j for m in moments] == [1777629600123456]
    assert set(by_duckdb(table.place.uri, 0, "epoch_us(j)")) == {(1777629600123456,)}
    assert sort(table.to_df().select("m", "n", "o").collect()) == sort(
        rows.select("m", "n", "o").collect()
    )
    assert table.to_df(where="j = TIMESTAMP '2026-05-01 10:00:00.123456 UTC'").count() == 3


def test_schemas_evolve(orders: Table, spark: SparkSession) -> None:
    wider = orders_of(spark, [50]).selectExpr("*", "named_struct('x', 1) AS extra")
    with pytest.raises(SchemaMismatch, match="extra"):
        orders.append(wider)
    orders.append(wider, evolve=True)
    deeper = orders_of(spark, [51]).selectExpr("*", "named_struct('x', 2, 'y', 3) AS extra")
    orders.append(deeper, evolve=True)
    check(orders)
    assert orders.to_df(where="extra.y = 3").count() == 1
    with pytest.raises(SchemaMismatch, match="is int64 and cannot become float64"):
        orders.append(spark.sql("SELECT 1L AS id, 2.5D AS price"), evolve=True)
    orders.overwrite(spark.sql("SELECT 'a' AS id"))
    check(orders, [("a",)])


def test_an_empty_text_to_partition_by(delta: Delta, spark: SparkSession) -> None:
    table = delta.table("main.t")
    with pytest.raises(UnsupportedFeature, match="which Delta reads as NULL"):
        table.overwrite(spark.sql("SELECT 1 AS id, '' AS p"), partition_by=["p"])
    assert (table.exists(), data_files(table)) == (False, set())


def test_null_in_a_column_that_has_none(delta: Delta, spark: SparkSession) -> None:
    from penstock import Column, TableSchema

    table = delta.table("main.t")
    table.create(TableSchema((Column("id", "int64", nullable=False), Column("x", "varchar"))))
    assert table.create(TableSchema((Column("other", "int64"),))).version is None
    with pytest.raises(QueryFailed, match="column id is NOT NULL in the table"):
        table.append(spark.sql("SELECT CAST(NULL AS BIGINT) AS id"))
    table.comment("all of them")
    table.comment("its number", "ID")
    metadata = table.place.at().metadata
    assert metadata.description == "all of them"
    assert column_comments(metadata) == {"id": "its number"}


def test_queries(delta: Delta, orders: Table, spark: SparkSession) -> None:
    views = {"wanted": orders_of(spark, [3, 8])}
    query = "SELECT o.id FROM shop.orders AT (VERSION => 0) AS o JOIN wanted USING (id)"
    assert [r.id for r in delta.sql(query, views=views).collect()] == [3]
    query = "SELECT max(shop.orders.id) AS id FROM delta.shop.orders WHERE id < :most"
    assert [r.id for r in delta.sql(query, {"most": 7}).collect()] == [6]
    with pytest.raises(TableNotFound, match=r"no Delta table main\.orders"):
        delta.sql("SELECT * FROM orders")
    with pytest.raises(TableNotFound, match="lake does not exist: this root is called delta"):
        delta.sql("SELECT * FROM lake.shop.orders")


def test_rows_without_a_table(delta: Delta) -> None:
    with pytest.raises(TableNotFound):
        delta.table("main.none").append([{"id": 1}])
    with pytest.raises(TableNotFound):
        delta.table("main.none").delete()


REQUIRED = {
    "type": "struct",
    "fields": [
        {"name": "x", "type": "long", "nullable": False, "metadata": {}},
        {"name": "y", "type": "long", "nullable": True, "metadata": {}},
    ],
}
NESTED = [
    ("id", "long"),
    ("s", REQUIRED),
    ("l", {"type": "array", "elementType": "long", "containsNull": False}),
    ("m", {"type": "map", "keyType": "string", "valueType": REQUIRED, "valueContainsNull": True}),
]
FULL, EMPTY = "named_struct('x', 1L, 'y', NULL)", "named_struct('x', NULL, 'y', 1L)"
NESTED_ROW = {"s": FULL, "l": "array(1L)", "m": f"map('a', {FULL}, 'b', NULL)"}


def nested(spark: SparkSession, id_: int, **changes: str) -> DataFrame:
    values = {"id": f"{id_}L", **NESTED_ROW, **changes}
    return spark.sql("SELECT " + ", ".join(f"{text} AS {name}" for name, text in values.items()))


def test_null_in_a_field_that_is_not_null(delta: Delta, spark: SparkSession) -> None:
    """delta-rs reads no version of a table that has one."""
    place = delta.place("shop.nested")
    make(place.uri, schema_text=schema_text(NESTED))
    table = delta.table("shop.nested")
    table.append(nested(spark, 1))
    table.append(nested(spark, 2, s="NULL", l="NULL", m="NULL"))
    writes: dict[str, Callable[[], object]] = {
        "s.x": lambda: table.append(nested(spark, 3, s=EMPTY)),
        "l.element": lambda: table.append(nested(spark, 3, l="array(1L, NULL)")),
        "m.value.x": lambda: table.overwrite(nested(spark, 3, m=f"map('a', {EMPTY})")),
        "(s.x": lambda: table.update({"s": EMPTY}, "id = 1"),
        "column s": lambda: table.merge(nested(spark, 1, s=EMPTY), ["id"]),
    }
    for text, write in writes.items():
        with pytest.raises(QueryFailed, match="are NOT NULL in the table") as caught:
            write()
        assert text in str(caught.value)
    index = f"ducklake:sqlite:{place.uri}.sqlite"
    with DeltaLake.of_root(delta.root, index, spark=spark) as lake:
        staged = lake.table("shop.nested")
        with pytest.raises(QueryFailed, match="are NOT NULL in the table"):
            staged.merge(nested(spark, 1, s=EMPTY), ["id"])
        with pytest.raises(SchemaMismatch, match=r"field s\.x of shop.nested is NOT NULL"):
            staged.append([{"id": 4, "s": {"x": None, "y": 1}}])
        staged.append([{"id": 4, "s": {"x": 1, "y": None}, "l": [1], "m": {"a": None}}])
    assert len(by_delta_rs(place.uri, 3)) == 3


def test_a_condition_on_renamed_columns(delta: Delta, spark: SparkSession) -> None:
    """Names that swapped: statistics and partition values have the physical names."""
    fields = [("a", "long"), ("b", "long"), ("k", "string"), ("v", "string")]
    physical = {"a": "b", "b": "a", "k": "v", "v": "k"}
    place = delta.place("shop.swapped")
    kind = json.loads(schema_text(fields))
    for number, field in enumerate(kind["fields"]):
        name, id_ = "delta.columnMapping.physicalName", "delta.columnMapping.id"
        field["metadata"] = {name: physical[field["name"]], id_: number}
    rows = pa.table({"a": [1, 2], "b": [100, 200], "v": ["1", "1"]})
    Path(place.uri, "_delta_log").mkdir(parents=True)
    pq.write_table(rows, f"{place.uri}/f.parquet")
    low, high = {"a": 1, "b": 100, "v": "1"}, {"a": 2, "b": 200, "v": "1"}
    stats = json.dumps({"numRecords": 2, "minValues": low, "maxValues": high})
    text, options = json.dumps(kind), {"delta.columnMapping.mode": "name"}
    add = Add("f.parquet", (("k", "9"),), Path(place.uri, "f.parquet").stat().st_size, 1, stats)
    table_of = metadata(schema_text=text, options=options, partition_by=("v",))
    actions = [Protocol(2, 5).json(), table_of.json(), add.json()]
    put_if_absent(commit_path(place.uri, 0), lines(actions))
    table = delta.table("shop.swapped")
    index = f"ducklake:sqlite:{place.uri}.sqlite"
    with DeltaLake.of_root(delta.root, index, spark=spark) as lake:
        for where in ("a = 100", "k = '1' AND v = '9' AND b = 1"):
            assert table.to_df(where=where).count() == 1, where
            assert lake.sql(f"SELECT * FROM shop.swapped WHERE {where}").count() == 1, where
    assert by_delta_rs(place.uri, 0) == [(100, 1, "1", "9"), (200, 2, "1", "9")]


def test_a_void_column(delta: Delta, spark: SparkSession) -> None:
    """It is NULL in each row and in no file; a type may come later."""
    place = delta.place("shop.void")
    fields = [("id", "long"), ("v", "void")]
    Path(place.uri, "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), f"{place.uri}/f.parquet")
    add = Add("f.parquet", (), Path(place.uri, "f.parquet").stat().st_size, 1)
    actions = [Protocol().json(), metadata(schema_text=schema_text(fields)).json(), add.json()]
    put_if_absent(commit_path(place.uri, 0), lines(actions))
    index = f"ducklake:sqlite:{place.uri}.sqlite"
    with DeltaLake.of_root(delta.root, index, spark=spark) as lake:
        assert lake.sql("SELECT id, v FROM shop.void").collect() == [(1, None)]
        with pytest.raises(UnsupportedFeature, match="the column v of type void"):
            delta.table("shop.void").append([{"id": 2}])
        typed = metadata(schema_text=schema_text([("id", "long"), ("v", "string")]))
        put_if_absent(commit_path(place.uri, 1), lines([typed.json()]))
        lake.refresh()
        lake.table("shop.void").append([{"id": 2, "v": "x"}])
        rows = [(1, None), (2, "x")]
        assert sort(map(tuple, lake.sql("SELECT id, v FROM shop.void").collect())) == rows
    assert by_duckdb(place.uri, 2) == rows
    assert delta.table("shop.void").to_df(0).collect() == [(1, None)]


WRITTEN = sorted(set(EXPECTED) - set(NOT_READ) - set(NOT_WRITTEN) - set(NOT_CHANGED))


@pytest.mark.parametrize("name", WRITTEN)
def test_rows_go_from_files_of_another_engine(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    shutil.copytree(FIXTURES / "others" / name, tmp_path / "others" / name)
    table = Delta.attach(tmp_path, spark=spark).table(f"others.{name}")
    plain = [column.name for column in table.schema().columns if not column.children]
    some = f"pmod(hash({', '.join(plain)}), 2) = 0"
    whole, left = table.to_df(), table.to_df().where(f"NOT ({some})")
    expected, count = rows_of(left.toArrow()), whole.count()
    deleted = table.delete(some).change.rows_deleted
    assert rows_of(table.to_df().toArrow()) == expected
    assert deleted == count - len(expected)
    assert len(by_duckdb(table.place.uri, table.version(), plain[0])) == len(expected)


def made_by_others(
    uri: str, names: list[str], vector: DeletionVector | None = None, rows: int = 10
) -> None:
    """Files without statistics, with names that a log encodes."""
    Path(uri, "_delta_log").mkdir(parents=True)
    adds = []
    for number, name in enumerate(names):
        ids = pa.array(range(rows * number, rows * number + rows), pa.int64())
        pq.write_table(pa.table({"id": ids, "name": ids.cast(pa.string())}), f"{uri}/{name}")
        size = Path(uri, name).stat().st_size
        adds.append(Add(name.replace("%", "%25").replace(" ", "%20"), (), size, 1, None, vector))
    table = metadata(schema_text=schema_text([("id", "long"), ("name", "string")]))
    protocol = (
        Protocol() if vector is None else Protocol(3, 7, *(frozenset({"deletionVectors"}),) * 2)
    )
    actions = [protocol.json(), table.json(), *(add.json() for add in adds)]
    put_if_absent(commit_path(uri, 0), lines(actions))


@pytest.mark.parametrize("options", [{}, {"delta.enableDeletionVectors": "true"}])
def test_names_of_files_with_any_characters(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = Delta.attach(tmp_path, spark=spark).table("main.t")
    made_by_others(table.place.uri, ["a b.parquet", "c%20d+é.parquet"])
    table.set_options(options)
    assert table.delete("id IN (3, 13)").change.rows_deleted == 2
    assert table.update({"name": "'new'"}, "id IN (4, 14)").change.rows_updated == 2
    rows = [(id_, "new" if id_ % 10 == 4 else str(id_)) for id_ in range(20) if id_ % 10 != 3]
    assert rows_of(table.to_df().toArrow()) == sort(rows)
    for reader in (by_duckdb, by_delta_rs):
        assert reader(table.place.uri, table.version()) == sort(rows)


@pytest.mark.parametrize("is_on", ["true", "false"])
def test_a_vector_in_the_log(spark: SparkSession, tmp_path: Path, is_on: str) -> None:
    table = Delta.attach(tmp_path, spark=spark).table("main.t")
    made_by_others(table.place.uri, ["a.parquet"], DeletionVector("i", INLINE, 44, 6), rows=30)
    table.set_options({"delta.enableDeletionVectors": is_on})
    assert table.delete("id IN (2, 3, 5)").change.rows_deleted == 2  # 3 is gone already
    kept = sorted(set(range(30)) - {3, 4, 7, 11, 18, 29} - {2, 5})
    assert [row.id for row in table.to_df().orderBy("id").collect()] == kept
    rows = sort((id_, str(id_)) for id_ in kept)
    assert by_duckdb(table.place.uri, table.version()) == rows


def test_fields_and_casts(spark: SparkSession, tmp_path: Path) -> None:
    """Values are cast as Spark casts them, and texts mean what they mean in Spark."""
    table = Delta.attach(tmp_path, spark=spark).table("main.t")
    table.append(
        spark.sql("SELECT id, named_struct('x', 1L, 'y', 'a') AS s, 'q' AS n FROM range(3)")
    )
    table.update({"s.x": "7", "ID": "id + 1.9"}, 'n = "q" AND id = 1')
    source = spark.sql("SELECT 5.7D AS id, 2L AS k")
    matched = Delta.when("matched", "update", None, {"id": "source.id"})
    table.merge(source, "target.id = source.k AND s.x = 7", [matched])
    with pytest.raises(ColumnNotFound, match="none"):
        table.merge(source, "target.id = k", [Delta.when("matched", "update", None, {"none": "1"})])
    with pytest.raises(PenstockError, match="rowid"):
        table.delete("rowid = 1")
    rows = [(row.id, row.s.x, row.s.y) for row in table.to_df().collect()]
    assert sorted(rows) == [(0, 1, "a"), (2, 1, "a"), (5, 7, "a")]


def test_values_inside_of_others_are_cast_as_spark_casts(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A fraction is cut and not rounded, in a field, a list or a map as in a column."""
    table = Delta.attach(tmp_path, spark=spark).table("main.t")
    columns = "named_struct('x', {0}, 'in', array(named_struct('y', {0}))) AS s, map({0}, {0}) AS m"
    zero = spark.sql(f"SELECT 0L AS id, 0L AS n, array(0L) AS xs, {columns.format('0L')}")
    table.append(zero)
    inside = "array(named_struct('y', -2.7D))"
    values = {"n": "1.7", "s.x": "1.7", "s.in": inside, "xs": "array(2.7D)", "m": "map(1.7, 2.5D)"}
    table.update(values)
    expected = (0, 1, [2], (1, [(-2,)]), {1: 2})
    assert [tuple(row) for row in table.to_df().collect()] == [expected]
    given = spark.sql("SELECT 0L AS id, 1L AS k")
    table.overwrite(zero)
    table.merge(given, "target.id = source.id", [Delta.when("matched", "update", None, values)])
    assert [tuple(row) for row in table.to_df().collect()] == [expected]
    more = spark.sql(
        f"SELECT 5L AS id, 1.7D AS n, array(2.7D) AS xs, {columns.format('1.7D')} UNION ALL "
        f"SELECT 0L, 1.7D, array(2.7D), {columns.format('1.7D')}"
    )
    clauses = [Delta.when("matched", "update"), Delta.when("not_matched", "insert")]
    table.merge(more, "target.id = source.id", clauses)
    expected = (0, 1, [2], (1, [(1,)]), {1: 1})
    rows = sorted((tuple(row) for row in table.to_df().collect()), key=str)
    assert rows == [expected, (5, *expected[1:])]


def test_rows_that_several_source_rows_delete(spark: SparkSession, tmp_path: Path) -> None:
    """And clauses of rows without a partner, which name nothing of the table."""
    table = Delta.attach(tmp_path, spark=spark).table("main.t")
    table.append(spark.sql("SELECT id, 'n' AS name FROM range(3)"))
    source = spark.sql("SELECT 1L AS id, 'a' AS name UNION ALL SELECT 1L, 'b'")
    on = "target.id = source.id"
    assert table.merge(source, on, [Delta.when("matched", "delete")]).change.rows_deleted == 1
    insert = Delta.when("not_matched", "insert", "target.id IS NULL")
    with pytest.raises(PenstockError, match="target"):
        table.merge(source, on, [insert])
    assert sorted(row.id for row in table.to_df().collect()) == [0, 2]
