"""Changes of tables that others made, by the transaction of a lake: their files, names and vectors.

Tests ``delta/changes.py``, ``delta/version_commit.py`` and ``delta/version_catalog.py``.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import Delta
from penstock.delta.actions import Add, DeletionVector, Protocol, lines
from penstock.delta.log_files import commit_path, put_if_absent
from penstock.errors import ColumnNotFound, PenstockError
from tests.delta.oracles import by_delta_rs, by_duckdb, rows_of, sort
from tests.delta.tables import metadata, schema_text
from tests.delta.test_fixtures import EXPECTED, FIXTURES, NOT_CHANGED, NOT_READ, NOT_WRITTEN
from tests.delta.test_vectors import INLINE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
