"""Columns whose types Penstock changes: files of before and after, read and pruned by both."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.errors import UnsupportedFeature
from penstock.lake.lake import Lake
from penstock.lake.predicates import of_where
from tests import duck
from tests.lake.catalog.conftest import Place
from tests.lake.differential.test_types import run
from tests.lake.differential.typed import differences

pytestmark = pytest.mark.spark

# Old type, new type, two values of the old one and two that only the new one has.
CHANGES = (
    ("UTINYINT", "SMALLINT", ("0", "255"), ("-1", "300")),
    ("UTINYINT", "INTEGER", ("0", "255"), ("-1", "70000")),
    ("USMALLINT", "INTEGER", ("0", "65535"), ("-1", "70000")),
    ("USMALLINT", "BIGINT", ("0", "65535"), ("-1", "5000000000")),
    ("UINTEGER", "BIGINT", ("0", "4294967295"), ("-1", "5000000000")),
)


def test_files_of_both_types(place: Place, spark: SparkSession) -> None:
    columns = ", ".join(f"c{at} {old}" for at, (old, *_) in enumerate(CHANGES))
    rows = [", ".join(row) for row in zip(*(old + new for _, _, old, new in CHANGES), strict=True)]
    run(
        place,
        "CALL lk.set_option('data_inlining_row_limit', 0)",
        f"CREATE TABLE t({columns})",
    )
    run(place, *(f"INSERT INTO t VALUES ({row})" for row in rows[:2]))
    with Lake.attach(place.uri, spark=spark) as lake:
        for at, (_, new, *_) in enumerate(CHANGES):
            lake.sql(f"ALTER TABLE t ALTER c{at} SET DATA TYPE {new}")
        lake.sql(f"INSERT INTO t VALUES ({rows[2]})")
    last = run(place, f"INSERT INTO t VALUES ({rows[3]})")
    assert differences(place, spark, [last]) == []
    assert [problem for at in range(len(CHANGES)) for problem in _lost(place, at)] == []


def _lost(place: Place, at: int) -> list[str]:
    """Values of a column that a filter for them does not find: in DuckDB, and among our files."""
    _, new, old, more = CHANGES[at]
    found: list[str] = []
    for value in (*old, *more):
        where = f"c{at} = CAST({value} AS {new})"
        if duck.rows(place.uri, f"SELECT count(*) FROM t WHERE {where}") != [(1,)]:
            found.append(f"DuckDB: {where}")
    with Lake.attach(place.uri) as lake, lake.transaction() as transaction:
        table = transaction.table("t")
        everything = table.files()
        for number, value in enumerate((*old, *more)):
            kept = table.files(of_where(f"c{at} = {value}", zone="UTC"))
            if everything.inlined is None and everything.files[number] not in kept.files:
                found.append(f"Penstock: c{at} = {value}")
    return found


def test_what_a_table_is_partitioned_by(place: Place) -> None:
    run(
        place,
        "CREATE TABLE t(a UINTEGER, b INTEGER)",
        "ALTER TABLE t SET PARTITIONED BY (bucket(4, a), b)",
    )
    with Lake.attach(place.uri) as lake:
        with pytest.raises(UnsupportedFeature, match=r"'a' is uint32.*partitioned by.*int64"):
            lake.sql("ALTER TABLE t ALTER a SET DATA TYPE BIGINT")
        lake.sql("ALTER TABLE t ALTER b SET DATA TYPE BIGINT")
