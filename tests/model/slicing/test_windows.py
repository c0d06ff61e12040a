"""What a query says of the moments of its inputs, in both dialects."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.slicing.table_reads import table_reads_of
from penstock.model.slicing.windows import windows_of
from penstock.project import Project
from tests.engine.toy import write_project
from tests.model.slicing.test_joint import model_of

BOTH = ("spark", "duckdb")


def said(root: Path, query: str, dialect: str = "spark") -> list[str | None]:
    more = f"-- dialect {dialect}\n"
    found = windows_of(model_of(root, query, more).query)
    return [
        None if each is None else f"{each.column}: {each.window}"
        for windows in found.values()
        for each in windows
    ]


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
        ("day > CAST('{partition}' AS DATE) - INTERVAL 7 DAYS", "day: start -7 days to end"),
        ("day = CAST('{partition}' AS DATE) - INTERVAL '1' MONTH",
         "day: start -1 month to end -1 month"),
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
        ("SELECT other AS day FROM ev", False),
        ("SELECT day FROM ev UNION ALL SELECT day FROM ev", False),
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
