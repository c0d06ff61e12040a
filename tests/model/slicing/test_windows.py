"""Which moments of its inputs a query reads, in both dialects.

Tests ``model/slicing/comparisons.py`` (conditions) and ``model/slicing/moments.py`` (values of the
slice), too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.slicing.table_reads import table_reads_of
from penstock.model.slicing.windows import Use, windows_of
from penstock.project.project import Project
from tests.engine.toy import write_project
from tests.model.slicing.test_joint import model_of

BOTH = ("spark", "duckdb")


def said(root: Path, query: str, dialect: str = "spark") -> list[str | None]:
    """Return the bounds of each use of a source; None for one without any."""
    more = f"-- dialect {dialect}\n"
    found = windows_of(model_of(root, query, more).query)
    return [shown(use) for uses in found.values() for use in uses]


def shown(use: Use) -> str | None:
    bounds = [
        f"{each.column}: {' or '.join(map(str, each.windows))}"
        for each in use
        if each.certain and each.is_bounded
    ]
    return "; ".join(bounds) or None


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("day = '{partition}'", "day: start to end"),
        ("'{partition}' = s.Day", "day: start to end"),
        ("CAST(at AS DATE) = CAST('{partition}' AS DATE)", "at: start to end"),
        ("day IN ('{partition}')", "day: start to end"),
        ("at >= $partition_start AND at < $partition_end", "at: start to end"),
        ("$partition_end > at AND $partition_start <= at AND a = 1", "at: start to end"),
        ("at < $partition_start", "at: the beginning to start"),
        ("day <= '{partition}'", "day: the beginning to end"),
        ("day > CAST('{partition}' AS DATE) - INTERVAL 7 DAYS",
         "day: start -7 days to any later one"),
        ("NOT (day > '{partition}' OR a = 1)", "day: the beginning to end"),
        ("day = '{partition}' OR day < '{partition}'",
         "day: start to end or the beginning to start"),
        ("day IN ('{partition}', CAST('{partition}' AS DATE) - 1)",
         "day: start to end or start -1 day to end -1 day"),
        ("at BETWEEN $partition_start AND $partition_end", "at: start to end +1 microsecond"),
        ("day = CAST('{partition}' AS DATE) - INTERVAL '1' MONTH",
         "day: start -1 month to end -1 month +3 days"),
        ("day BETWEEN '{partition}' AND CAST('{partition}' AS DATE) + 2",
         "day: start to end +2 days"),
        ("at >= $partition_start - INTERVAL 90 MINUTES AND at < $partition_end",
         "at: start -5400 seconds to end"),
        ("at >= $partition_start - INTERVAL 1 DAY AND at < ($partition_end)",  # of 24 hours
         "at: start -86400 seconds to end"),
    ],
)  # fmt: skip
def test_comparisons(tmp_path: Path, condition: str, expected: str, dialect: str) -> None:
    assert said(tmp_path, f"SELECT a FROM s WHERE {condition}", dialect) == [expected]


@pytest.mark.parametrize(
    "condition",
    [
        "NOT day = '{partition}'",
        "day = '{partition}' OR a = 1",
        "day <> '{partition}'",
        "date_trunc('month', day) = '{partition}'",
        "day > concat('{partition}', 'x')",
        "day > date_add('{partition}', a)",
        "t.day = '{partition}'",
        "(SELECT max(day) FROM u) = '{partition}'",
    ],
)
def test_what_is_not_plain_says_nothing(tmp_path: Path, condition: str) -> None:
    assert said(tmp_path, f"SELECT a FROM s WHERE {condition}")[0] is None


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("WITH w AS (SELECT * FROM s) SELECT a FROM w WHERE day = '{partition}'", ["start to end"]),
        ("SELECT a FROM (SELECT day AS d, a FROM s) x WHERE d = '{partition}'", ["start to end"]),
        ("SELECT a FROM (SELECT day, lag(a) OVER (ORDER BY day) a FROM s) x "
         "WHERE day = '{partition}'", [None]),
        ("SELECT 1 FROM s JOIN s b ON s.day = b.day WHERE s.day = '{partition}'", ["start to end"]),
        ("SELECT 1 FROM s JOIN s b USING (day) WHERE b.day = '{partition}'", ["start to end"]),
        ("SELECT 1 FROM s LEFT JOIN u ON s.day = '{partition}'", [None, None]),
        ("SELECT 1 FROM s FULL JOIN u ON u.day = '{partition}'", [None, None]),
        ("SELECT 1 FROM s LEFT JOIN u ON u.day = '{partition}'", [None, "start to end"]),
        ("WITH w AS (SELECT day FROM s WHERE day = '{partition}') "
         "SELECT 1 FROM w JOIN u ON u.day = w.day", ["start to end", "start to end"]),
        ("WITH w AS (SELECT * FROM s) SELECT 1 FROM w a, w b WHERE a.day = '{partition}'",
         ["start to end", None]),
        ("SELECT sum(n) FILTER (WHERE day = '{partition}') AS n FROM s", [None]),
        ("SELECT 1 FROM s WHERE day = '{partition}' AND n IN (SELECT n FROM s)",
         ["start to end", None]),
        ("SELECT a FROM s TABLESAMPLE (5 ROWS) WHERE day = '{partition}'", [None]),
    ],
)  # fmt: skip
def test_what_bounds_a_place(
    tmp_path: Path, query: str, expected: list[str | None], dialect: str
) -> None:
    if dialect == "duckdb" and "TABLESAMPLE" in query:
        pytest.skip("DuckDB's dialect has no such sample")
    found = said(tmp_path, query, dialect)
    assert found == [each and f"day: {each}" for each in expected]


def test_each_place_of_a_source_says_its_own(tmp_path: Path) -> None:
    query = (
        "WITH w AS (SELECT * FROM s WHERE day = '{partition}') "
        "SELECT * FROM w JOIN s x ON w.a = x.a AND x.day = date_sub('{partition}', 1) "
        "WHERE EXISTS (SELECT 1 FROM s WHERE s.a = w.a)"
    )
    assert said(tmp_path, query) == ["day: start to end", "day: start -1 day to end -1 day", None]


def test_a_column_without_a_table_among_several_says_nothing(tmp_path: Path) -> None:
    query = "SELECT * FROM s JOIN u ON s.a = u.a WHERE day = '{partition}'"
    assert said(tmp_path, query) == [None, None]


def test_the_times_of_an_interval(tmp_path: Path) -> None:
    query = "SELECT * FROM s WHERE ds BETWEEN @start_ds AND @end_ds AND h = @start_hour"
    assert said(tmp_path, query) == ["ds: start to end"]
    query = "SELECT * FROM s WHERE ts >= @start_dt - INTERVAL 2 HOURS AND ts <= @end_dt"
    assert said(tmp_path, query) == ["ts: start -7200 seconds to end"]


HEAD = "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/q\n"


@pytest.mark.parametrize("kind", ["VIEW", "EMBEDDED"])
@pytest.mark.parametrize(
    ("body", "is_known"),
    [
        ("SELECT day, n + 3 AS n FROM ev", True),
        ("SELECT * FROM ev", True),
        ("SELECT e.day, n FROM ev e WHERE n > 1", True),
        ("SELECT day + 1 AS day FROM ev", False),
        ("SELECT day FROM ev UNION ALL SELECT day FROM ev", True),
        ("SELECT day, count(*) AS n FROM ev GROUP BY day", True),
        ("SELECT day, lag(n) OVER (ORDER BY day) AS n FROM ev", False),
        ("SELECT day FROM ev ORDER BY n LIMIT 3", False),
        ("SELECT max(day) AS day FROM ev GROUP BY n", False),
        ("SELECT a.day FROM ev a JOIN ev b ON a.n = b.n", False),
    ],
)
def test_a_query_that_is_looked_through_may_return_the_column_as_it_is(
    tmp_path: Path, kind: str, body: str, is_known: bool
) -> None:
    scripts = {
        "models/p": f"MODEL (name main.p, kind {kind});\n{body}",
        "models/q": f"{HEAD}SELECT * FROM p WHERE day = '{{partition}}'",
    }
    models = Project.load(write_project(tmp_path / "p", scripts)).models
    reads = [each for each in table_reads_of(models).get("q", ()) if not each.only_asked]
    assert [(read.table.table, read.columns) for read in reads] == [("ev", ("day",))] * is_known
