"""Rows of INSERT in types that Spark has no form of: queries, and geometries as text."""

from __future__ import annotations

import pytest

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.conftest import table_of

pytestmark = pytest.mark.spark

QUERIES = (
    "SELECT 1, 12345678901234567890123BD, 5, '2026-01-01 00:00:00.123456789', '10:00:00.5'",
    "SELECT 2, 2.5, 3.5D, TIMESTAMP_NTZ '2026-01-01 00:00:00.123456', '23:59:59'",
    "SELECT 3, '-7', '2.5', DATE '2026-01-01', NULL",
    "SELECT 4, 2.5D, NULL, NULL, '00:00:00'",
)


@pytest.mark.parametrize("limit", [10, 0], ids=["inlined", "in files"])
def test_queries_into_types_that_spark_does_not_write(lake: Lake, limit: int) -> None:
    columns = "k INT, h HUGEINT, u UHUGEINT, n TIMESTAMP_NS, t TIME"
    lake.sql(f"CREATE TABLE h ({columns})", dialect="duckdb")
    lake.set_option("data_inlining_row_limit", limit)
    for query in QUERIES:
        lake.sql(f"INSERT INTO h {query}")
    read = duck.rows(lake.catalog.uri, "SELECT COLUMNS(*)::VARCHAR FROM h")
    huge = "12345678901234567890123" if limit else "12345678901234567741440"  # files have doubles
    assert read == [
        ("1", huge, "5", "2026-01-01 00:00:00.123456789", "10:00:00.5"),
        ("2", "3", "4", "2026-01-01 00:00:00.123456", "23:59:59"),
        ("3", "-7", "3", "2026-01-01 00:00:00", None),
        ("4", "2", None, None, "00:00:00"),
    ]


LINE = "LINESTRING (0 0, 1.5 2)"
WRONG = {
    "SELECT 1, 1, -1, NULL": (SchemaMismatch, "not within 0"),
    "SELECT 1, 1, 1, TIMESTAMP_NTZ '2300-01-01 00:00:00'": (SchemaMismatch, "1677 to 2262"),
    "SELECT id, id, id, NULL FROM range(100001)": (UnsupportedFeature, "more than 100,000 rows"),
}


def test_queries_that_are_refused(lake: Lake) -> None:
    lake.sql("CREATE TABLE h (k INT, h HUGEINT, u UHUGEINT, n TIMESTAMP_NS)", dialect="duckdb")
    for query, (kind, words) in WRONG.items():
        with pytest.raises(kind, match=words):
            lake.sql(f"INSERT INTO h {query}")


def test_geometries_as_text(lake: Lake) -> None:
    lake.sql("CREATE TABLE g (k INT, g GEOMETRY)", dialect="duckdb")
    lake.sql("INSERT INTO g VALUES (1, 'POINT(1 2)'), (2, NULL), (3, :line)", {"line": LINE})
    read = duck.rows(lake.catalog.uri, "SELECT k, ST_AsText(g) FROM g")
    assert read == [(1, "POINT (1 2)"), (2, None), (3, LINE)]
    (point,) = table_of(lake.sql("SELECT g FROM g WHERE k = 1"))
    assert bytes(point[0]).hex() == "0101000000000000000000f03f0000000000000040"
    for text in ("POINT Z (1 2 3)", "POINT EMPTY", "somewhere"):
        with pytest.raises(UnsupportedFeature, match="no geometry of two dimensions"):
            lake.sql(f"INSERT INTO g VALUES (4, '{text}')")
