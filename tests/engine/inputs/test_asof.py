"""ASOF JOINs in models, against DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.inputs.asof import estimate, with_asof
from penstock.errors import QueryFailed
from penstock.model.query.query import read_query
from penstock.model.query.render import RenderedQuery
from penstock.model.values.asset import Names
from penstock.project.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Row = tuple[int | None, ...]
KEYED = "ON l.k = r.k AND l.t {} r.t"
JOINS = (  # the kind, the condition
    *(("LEFT", KEYED.format(operator)) for operator in (">=", ">", "<=", "<")),
    ("", "ON r.t <= l.t + 1 AND r.k = l.k AND r.v <> 2"),
    ("LEFT", "ON l.v > 1 AND r.t >= l.t"),
    ("LEFT", "USING (k, t)"),
)
_VALUES = st.none() | st.integers(0, 4)
_ROWS = st.tuples(_VALUES, _VALUES, _VALUES)


def rendered(text: str) -> RenderedQuery:
    query, findings = read_query(text, Path("m.sql"), names=Names(("main",)))
    assert query is not None, findings
    return query.render({source: source.table.table for source in query.tables})


def planned(session: SparkSession, text: str, searched: int = 0) -> tuple[str, list[str]]:
    """The right side is searched in arrays if it has no more bytes, and sorted without."""
    made, notices = with_asof(session, rendered(text), {}, calls_macros=False, searched=searched)
    return made.sql, [notice.message for notice in notices]


def put(
    session: SparkSession, oracle: duckdb.DuckDBPyConnection, name: str, rows: list[Row]
) -> None:
    session.createDataFrame(rows, "k int, t int, v int").createOrReplaceTempView(name)
    oracle.execute(f"CREATE OR REPLACE TABLE {name} (k int, t int, v int)")
    if rows:
        oracle.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    left=st.lists(_ROWS, max_size=8),
    # DuckDB takes any row of those of one time.
    right=st.lists(_ROWS, max_size=10, unique_by=lambda row: row[1]),
)
def test_the_rows_are_those_of_duckdb(
    spark: SparkSession, left: list[Row], right: list[Row]
) -> None:
    with duckdb.connect() as oracle:
        put(spark, oracle, "l", left)
        put(spark, oracle, "r", right)
        wanted, made = [], []
        for number, (kind, condition) in enumerate(JOINS):
            columns = "l.k AS lk, l.t AS lt, l.v AS lv, r.k AS rk, r.t AS rt, r.v AS rv"
            text = f"SELECT {number} AS n, {columns} FROM l ASOF {kind} JOIN r {condition}"
            wanted += oracle.sql(text).fetchall()
            made.append(planned(spark, text)[0])
    rows = spark.sql(" UNION ALL ".join(f"({text})" for text in made)).collect()
    assert sorted(map(str, map(tuple, rows))) == sorted(map(str, wanted))


@pytest.fixture(scope="module")
def versions(spark: SparkSession) -> SparkSession:
    spark.sql("SELECT 1 AS id, 'a' AS k, 5 AS at").createOrReplaceTempView("o")
    many = "VALUES ('a', 5, 'x', 1), ('a', 5, 'y', 0), ('a', 9, 'z', 3), (NULL, 1, 'n', 4)"
    spark.sql(f"SELECT * FROM {many} AS d(k, at, tier, w)").createOrReplaceTempView("d")
    return spark


@pytest.mark.parametrize(
    ("join", "rows"),
    [
        (
            "LEFT JOIN r ON l.k = r.k AND l.t >= r.t",
            [(1, 5, 8), (1, 9, 8), (1, 2, None), (1, None, None), (2, 5, None), (None, 5, None)],
        ),
        ("JOIN r ON l.t < r.t AND r.v > 6", [(1, 2, 9)]),
    ],
)
def test_a_small_right_side_is_searched(spark: SparkSession, join: str, rows: list[Row]) -> None:
    left = [(1, 5), (1, 9), (1, 2), (1, None), (2, 5), (None, 5)]
    right = [(1, 5, 7), (1, 5, 8), (1, 3, 9), (None, 4, 1), (1, None, 2)]
    spark.createDataFrame(left, "k int, t int").createOrReplaceTempView("l")
    spark.createDataFrame(right, "k int, t int, v int").createOrReplaceTempView("r")
    text = f"SELECT l.k, l.t, v FROM l ASOF {join}"
    ways = [planned(spark, text, searched=searched) for searched in (0, 1 << 63)]
    assert ["get(a, p" in sql for sql, _ in ways] == [False, True]
    for sql, _ in ways:
        assert sorted(map(str, map(tuple, spark.sql(sql).collect()))) == sorted(map(str, rows))
    assert ways[1][1] == []


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Project [a#1], Statistics(sizeInBytes=1760.5 KiB)\n+- x", 1760.5 * 1024),
        ("LocalRelation [a#1], Statistics(sizeInBytes=16.0 B, rowCount=1)", 16),
        ("Project, Statistics(sizeInBytes=1.2E+40 B)", 1.2e40),
        ("nothing", float("inf")),
    ],
)
def test_estimates_of_spark(text: str, size: float) -> None:
    assert estimate(text) == size


def test_one_shuffle_that_carries_what_is_used(versions: SparkSession) -> None:
    text = "SELECT o.id, d.tier FROM o ASOF JOIN d ON o.k = d.k AND o.at >= d.at WHERE o.id > 0"
    sql, notices = planned(versions, text)
    plan = versions.sql(f"EXPLAIN {sql}").collect()[0][0]
    assert notices == []
    assert plan.count("Exchange") == 1
    assert "AsOfJoin" not in plan
    assert "`w`" not in sql
    assert [tuple(row) for row in versions.sql(sql).collect()] == [(1, "y")]


def test_instants_and_wall_times_compare_as_in_spark(spark: SparkSession) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone is not None
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:  # an hour that is skipped, and one that comes twice
        left = [
            "2026-03-29 00:59:00Z",
            "2026-03-29 01:30:00Z",
            "2026-10-25 00:30:00Z",
            "2026-10-25 01:30:00Z",
        ]
        right = ["2026-03-29 01:59", "2026-03-29 02:30", "2026-10-25 02:30", "2026-10-25 03:00"]
        spark.createDataFrame([(t,) for t in left], "t string").selectExpr(
            "CAST(t AS TIMESTAMP) AS t"
        ).createOrReplaceTempView("l")
        spark.createDataFrame([(t,) for t in right], "t string").selectExpr(
            "CAST(t AS TIMESTAMP_NTZ) AS t"
        ).createOrReplaceTempView("r")
        sql, notices = planned(spark, "SELECT l.t, r.t AS v FROM l ASOF LEFT JOIN r ON l.t >= r.t")
        assert all("in one task" in said for said in notices)
        plain = "SELECT l.t, max(r.t) FROM l LEFT JOIN r ON l.t >= r.t GROUP BY l.t"
        found, wanted = (sorted(map(tuple, spark.sql(q).collect())) for q in (sql, plain))
        assert found == wanted
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("o ASOF JOIN d ON o.k = d.k AND o.at >= d.at AND d.w <> o.id", "another way"),
        ("o ASOF JOIN d ON o.id = d.k AND o.at >= d.at", "compares int with string"),
        ("o ASOF JOIN d ON o.at <= d.at", "in one task"),
    ],
)
def test_notices(versions: SparkSession, text: str, notice: str) -> None:
    (said,) = planned(versions, f"SELECT o.id FROM {text}")[1]
    assert notice in said


def test_using_that_has_no_plan(versions: SparkSession) -> None:
    with pytest.raises(QueryFailed, match="left side has no columns w") as caught:
        planned(versions, "SELECT o.id\nFROM o ASOF JOIN d USING (w, at)")
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (2, 8)


def test_in_a_model(make: Callable[..., Project]) -> None:
    """In DuckDB's dialect, twice in a query, with a misspelt column placed."""
    text = """
        -- materialize ducklake://main/priced
        -- dialect duckdb
        WITH d AS (FROM (VALUES ('a', 1, 'old'), ('a', 4, 'new')) AS v(k, "at", tier))
        SELECT o.id, d.tier, later.{} AS next
        FROM (VALUES (1, 'a', 2), (2, 'a', 5)) AS o(id, k, "at")
        ASOF LEFT JOIN d USING (k, "at")
        ASOF LEFT JOIN d AS later ON later.k = o.k AND later."at" > o."at"
    """
    with pytest.raises(QueryFailed, match="teir"):
        make({"models/priced": text.format("teir")}).preview("priced")
    project = make({"models/priced": text.format("tier")})
    project.run()
    rows = project.sql("SELECT * FROM priced ORDER BY id").collect()
    assert [tuple(row)[:3] for row in rows] == [(1, "old", "new"), (2, "new", None)]


def test_the_first_day_of_a_member_of_a_history_by_days(make: Callable[..., Project]) -> None:
    """The state of a day is valid from its end: docs/models.md has this condition."""
    history = """
        MODEL (name main.members, start '2026-01-01', end '2026-01-02', kind SCD_TYPE_2_BY_COLUMN
            (unique_key id, columns *, invalidate_hard_deletes true, batch_size 1));
        SELECT id FROM VALUES (1, DATE '2026-01-01'), (1, DATE '2026-01-02'),
            (2, DATE '2026-01-02') AS v(id, day) WHERE day = @start_date
    """
    reader = """
        MODEL (name main.{dialect}, kind FULL, dialect {dialect});
        SELECT f.day, m.valid_from, late.valid_from AS late
        FROM (VALUES (2, DATE '2026-01-01'), (2, DATE '2026-01-02')) AS f(id, day)
        ASOF LEFT JOIN members AS m ON f.id = m.id AND f.day + INTERVAL 1 DAY >= m.valid_from
        ASOF LEFT JOIN members AS late ON f.id = late.id AND f.day >= late.valid_from
    """
    dialects = ("spark", "duckdb")
    readers = {f"models/{each}": reader.format(dialect=each) for each in dialects}
    project = make({"models/members": history, **readers})
    project.run().raise_for_status()
    for dialect in dialects:
        rows = project.sql(f"SELECT * FROM {dialect} ORDER BY day").collect()
        assert [str(row.valid_from) for row in rows] == ["None", "2026-01-03 00:00:00"]
        assert {row.late for row in rows} == {None}
