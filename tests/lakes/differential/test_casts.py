"""Casts to types that Spark lacks, beside DuckDB's own.

Tests ``sql/duckdb/casts.py``, ``lakes/reading/conversions/casts.py``.
"""

from __future__ import annotations

import duckdb
import pytest
from pyspark.errors import PySparkException

from penstock.errors import PenstockError
from penstock.lakes.lake import Lake
from tests import duck

pytestmark = pytest.mark.spark

ID = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
SAME = [
    *("255::UTINYINT", "CAST('12' AS UTINYINT)", "' 1e2 '::UTINYINT", "'1.6'::UTINYINT"),
    *("(1.5)::UTINYINT", "(2.5)::UTINYINT", "CAST(-0.4 AS UTINYINT)", "255.4::UTINYINT"),
    *("2.5::DOUBLE::USMALLINT", "3.5::DOUBLE::USMALLINT", "NULL::UINTEGER", "max(x)::UINTEGER"),
    *("'18446744073709551615'::UBIGINT", "(-5)::HUGEINT", "2.5::DOUBLE::HUGEINT"),
    *("CAST('12345678901234567890123456789012345678' AS UHUGEINT)", f"'{ID}'::UUID", "NULL::UUID"),
]
NEITHER = [
    *(
        "300::UTINYINT",
        "(-1)::UINTEGER",
        "255.5::UTINYINT",
        "'x'::UINTEGER",
        "'x'::UUID",
        "1::UUID",
    ),
    *("'18446744073709551616'::UBIGINT", "'nan'::DOUBLE::UTINYINT", "DATE '2020-01-01'::UINTEGER"),
    *("TIMESTAMP '2020-01-01 00:00:00'::UBIGINT", "'inf'::DOUBLE::HUGEINT"),
]


def test_casts_are_those_of_duckdb(lake: Lake) -> None:
    table = "(SELECT 1 AS x) t"
    query = f"SELECT {', '.join(f'{cast} AS c{at}' for at, cast in enumerate(SAME))} FROM {table}"
    known = duck.connect().execute(query).fetchall()
    assert [tuple(map(_shown, row)) for row in lake.sql(query).collect()] == [
        tuple(map(_shown, row)) for row in known
    ]


@pytest.mark.parametrize("cast", NEITHER)
def test_what_neither_casts(lake: Lake, cast: str) -> None:
    with pytest.raises(duckdb.Error):
        duck.connect().execute(f"SELECT {cast}").fetchall()
    with pytest.raises((PenstockError, PySparkException)):  # as it is analysed, or as it runs
        lake.sql(f"SELECT {cast} AS c").collect()


def test_casts_in_statements(lake: Lake) -> None:
    """Beyond 2**53 a double is another number in Spark's decimals: an error, no wrong value."""
    lake.sql("CREATE TABLE t(k UINTEGER, u UUID)")
    lake.sql(f"INSERT INTO t SELECT id::UINTEGER, '{ID}'::UUID FROM range(3)")
    lake.sql("UPDATE t SET k = (k + 10)::UINTEGER WHERE k = '2'::UTINYINT")
    lake.sql("DELETE FROM t WHERE k = CAST('1' AS UTINYINT)")
    assert sorted(row.k for row in lake.table("t").to_df().collect()) == [0, 12]
    lake.sql("CREATE TABLE c AS SELECT k::UTINYINT AS k, u::UUID AS u FROM t")
    kinds = [row.column_type for row in lake.sql("DESCRIBE c").collect()]
    assert kinds == ["SMALLINT", "VARCHAR"]
    with pytest.raises(PenstockError, match="cast a decimal or a text"):
        lake.sql("INSERT INTO t SELECT 1e20::DOUBLE::UHUGEINT, NULL")


def _shown(value: object) -> str:
    return str(value)
