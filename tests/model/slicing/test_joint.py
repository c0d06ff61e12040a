"""Which queries may be asked for many slices, and the query that is.

Tests ``model/slicing/slice_column.py`` (the slice of a row as a column).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.query.render import trial_names
from penstock.model.slicing.joint import joint_query, why_apart
from penstock.model.slicing.slice_condition import SliceFilter
from penstock.model.time.partition import PartitionSpec
from penstock.project.project import Project
from tests.engine.toy import write_project

DAILY = PartitionSpec("daily")
W = "WITH w AS (SELECT * FROM s WHERE day = '{partition}') "


def model_of(root: Path, query: str, more: str = "", strategy: str = ""):  # type: ignore[no-untyped-def]
    head = f"-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/t{strategy}\n{more}"
    return Project.load(write_project(root / "p", {"models/t": head + query})).model("t")


def joint_of(root: Path, query: str):  # type: ignore[no-untyped-def]
    model = model_of(root, query)
    return joint_query(model.query.render(trial_names(model.query.sources)))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM s WHERE day = '{partition}'",
        "SELECT a FROM s WHERE b > 1 AND '{partition}' = CAST(day AS STRING)",
        "SELECT DISTINCT a FROM s WHERE to_date(at) = '{partition}'",
        "SELECT a, count(*) FROM s WHERE b BETWEEN 1 AND 2 AND day = '{partition}' GROUP BY a",
        "SELECT a FROM s WHERE at >= $partition_start AND at < $partition_end",
        "SELECT sum(a) OVER (PARTITION BY day) FROM s WHERE day = '{partition}'",
        "SELECT a FROM s JOIN (SELECT x FROM u LIMIT 1) ON x = a WHERE day = '{partition}'",
        "SELECT s.end, user, `now` FROM s WHERE day = '{partition}' AND end > 1 AND (a OR b)",
        "SELECT CASE WHEN a = 1 AND a = 2 OR b THEN 1 END FROM s WHERE day = '{partition}'",
        "SELECT a IS DISTINCT FROM b AS c FROM s WHERE day = $partition ORDER BY 1",
        "SELECT count(*), s.a AS n FROM s WHERE day = '{partition}' GROUP BY ALL",
        "SELECT rank() OVER (ORDER BY a), sum(b) OVER () FROM s WHERE day = '{partition}'",
        "WITH w AS (SELECT 1 AS a) SELECT a FROM w WHERE day = '{partition}'",
        "WITH w AS (SELECT * FROM s WHERE day = '{partition}') SELECT * FROM w WHERE a = 1",
        "SELECT a FROM (SELECT * FROM s WHERE day = '{partition}') WHERE a = 1",
        "WITH w AS (SELECT * FROM s WHERE day = '{partition}'), "
        "v(a, n) AS (SELECT a, count(*) FROM w GROUP BY a HAVING count(*) > 1) "
        "SELECT w.*, n FROM w LEFT JOIN v ON w.a = v.a OR n > 3 JOIN u USING (a)",
        "SELECT a FROM s WHERE day = '{partition}' UNION SELECT b FROM u WHERE at = '{partition}'",
        "(SELECT a FROM s WHERE day = '{partition}') EXCEPT ALL "
        "(WITH w AS (SELECT b FROM u WHERE at = '{partition}') SELECT * FROM w)",
        "WITH w AS (SELECT * FROM s WHERE day = '{partition}') SELECT count(*), e.a "
        "FROM s AS e LEFT ANTI JOIN w ON w.a = e.a WHERE e.day = '{partition}' GROUP BY e.a",
        "SELECT * EXCEPT (n) FROM (SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) AS n "
        "FROM s WHERE at >= $partition_start AND at < $partition_end) AS d WHERE n = 1",
    ],
)
def test_a_condition_on_the_slice_at_the_bottom_is_enough(tmp_path: Path, query: str) -> None:
    assert why_apart(model_of(tmp_path, query)) is None


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT 1 AS a", "no condition on the partition"),
        ("SELECT a FROM s WHERE b = 1", "no condition on the partition"),
        ("SELECT a, $partition_end AS p FROM s WHERE day = '{partition}'", "outside of a WHERE"),
        ("SELECT a FROM s WHERE day = '{partition}' LIMIT 3", "LIMIT"),
        ("SELECT a FROM s WHERE day = '{partition}' OR b", "an OR"),
        ("SELECT a FROM s WHERE day = '{partition}' AND end > 1 OR b", "an OR"),
        ("SELECT a FROM s WHERE CASE WHEN day = '{partition}' THEN end END = 1", "plain"),
        ("SELECT `rand`() AS a FROM s WHERE day = '{partition}'", "rand"),
        ("SELECT a FROM s WHERE NOT day = '{partition}'", "not a plain comparison"),
        ("SELECT a FROM s WHERE day = '{partition}' = b", "not a plain comparison"),
        ("SELECT a FROM s WHERE day <= '{partition}'", "does not compare"),
        ("SELECT a FROM s WHERE day = '{partition}' AND b = '{partition}'", "does not compare"),
        ("SELECT a FROM s WHERE day LIKE '{partition}' || '%'", "not a plain comparison"),
        ("SELECT a FROM s WHERE f(day) = '{partition}'", "more than columns"),
        ("SELECT a, rand() FROM s WHERE day = '{partition}'", "rand"),
        ("SELECT a FROM s WHERE day = '{partition}' UNION SELECT 1 FROM u", "a part of its UNION"),
        ("SELECT count(*) FROM s WHERE day = '{partition}'", "without GROUP BY"),
        ("SELECT sum(a) OVER w FROM s WHERE day = '{partition}' WINDOW w AS ()", "WINDOW"),
        ("SELECT a FROM s WHERE a IN (SELECT b FROM u WHERE day = '{partition}')", "plain"),
        (f"{W}SELECT a FROM s", "reads nothing"),
        (f"{W}SELECT a FROM w LIMIT 3", "LIMIT"),
        (f"{W}SELECT a FROM s JOIN w USING (a) WHERE s.day > '{{partition}}'", "does not compare"),
        (f"{W}SELECT a FROM s LEFT JOIN w ON s.a = w.a", "not what it is joined to"),
        (f"{W}SELECT a FROM s LEFT JOIN w ON s.a = w.a WHERE day = '{{partition}}'", "may be of"),
        (f"{W}SELECT a FROM w FULL JOIN s USING (a)", "FULL"),
        (f"{W}SELECT a FROM w JOIN w AS v USING (a) LEFT JOIN w AS x USING (a)", "joined by ON"),
        (f"{W}SELECT a FROM s WHERE a IN (SELECT a FROM w)", "reads w"),
        (f"{W}SELECT w.a FROM w JOIN s ON s.a = (SELECT max(a) FROM w)", "reads w"),
        (f"{W}SELECT struct(*) FROM w", "in a call"),
        (f"{W}SELECT a FROM w, LATERAL (SELECT 1 FROM s WHERE day = '{{partition}}')", "LATERAL"),
        (f"{W}SELECT a FROM (w JOIN u ON w.a = u.a)", "in brackets, reads w"),
        (f"{W}SELECT max(a) FROM w", "without GROUP BY"),
        (f"{W}, v AS (SELECT a FROM w UNION ALL SELECT a FROM s) SELECT a FROM v", "a part of"),
        ("WITH RECURSIVE w AS (SELECT a FROM s WHERE day = '{partition}') SELECT a FROM w", "rec"),
        ("VALUES ('{partition}')", "not made of SELECTs"),
        ("SELECT max(a) AS m, m FROM s WHERE day = '{partition}' GROUP BY ALL", "not a plain list"),
        ("SELECT max(a), NULL FROM s WHERE day = '{partition}' GROUP BY ALL", "not a plain list"),
        ("SELECT a FROM s WHERE day = '{partition}' GROUP BY a WITH ROLLUP", "not a plain list"),
        ("SELECT a FROM t WHERE day = '{partition}'", "its own table"),
        ("SELECT a FROM s WHERE at >= $partition_start AND b < $partition_end", "two expressions"),
        ("SELECT a FROM s WHERE at > $partition_start AND at < $partition_end", "does not compare"),
        ("SELECT a FROM s TABLESAMPLE (5 ROWS) WHERE day = '{partition}'", "TABLESAMPLE"),
        ("SELECT a FROM s WHERE 'x' = '{partition}'", "has no column"),
        (
            "SELECT s.a FROM s ASOF JOIN u ON s.a = u.a AND s.at >= u.at WHERE day = '{partition}'",
            "it has an ASOF JOIN",
        ),
    ],
)
def test_in_doubt_slices_are_made_one_by_one(tmp_path: Path, query: str, why: str) -> None:
    assert why in str(why_apart(model_of(tmp_path, query)))


def test_what_says_the_slice_is_quoted_as_written_or_by_its_line(tmp_path: Path) -> None:
    query = "SELECT a\nFROM s\nWHERE {} = '{{partition}}'"
    short = why_apart(model_of(tmp_path, query.format("abs(day)")))
    assert short == "what says the slice, abs(day), is more than columns, casts and texts"
    said = "what says the slice in line 6 is more than columns, casts and texts"
    assert why_apart(model_of(tmp_path, query.format(f"greatest({', '.join('abc' * 20)})"))) == said
    duckdb = model_of(tmp_path, query.format("strftime(day, '%Y')"), "-- dialect duckdb\n")
    assert why_apart(duckdb) == said.replace("6", "7")


def test_what_is_not_in_the_query(tmp_path: Path) -> None:
    query = "SELECT a FROM s WHERE day = '{partition}'"
    merge = model_of(tmp_path, query, strategy=" key=a")
    assert why_apart(merge) == "its strategy is merge"
    test = "-- data_test relationships a -> ducklake://main/t.a\n"
    assert "reads its own table" in str(why_apart(model_of(tmp_path, query, test)))


def test_values_are_texts_or_dates(tmp_path: Path) -> None:
    joint = joint_of(tmp_path, "SELECT a FROM s WHERE day = '{partition}' GROUP BY a HAVING a > 1")
    view = next(word for word in joint.sql.split() if word.startswith("penstock_source"))
    (condition,) = joint.conditions
    told = condition.by_value(["2026-01-01", "2026-01-02"], "date")
    assert joint.query("p", [told]) == (
        f"SELECT a , CAST(day AS STRING) AS `p` FROM {view} AS s "
        "WHERE ((day) IN (DATE '2026-01-01', DATE '2026-01-02')) "
        "GROUP BY a, CAST(day AS STRING)  HAVING a > 1"
    )
    assert joint.trials == (f"SELECT day AS c FROM {view} AS s",)
    assert "IN ('x')" in condition.by_value(["x"], "string").condition


def test_the_slice_goes_up_through_queries(tmp_path: Path) -> None:
    joint = joint_of(tmp_path, f"{W}SELECT * FROM w JOIN w AS v ON w.a = v.a")
    view = next(word for word in joint.sql.split() if word.startswith("penstock_source"))
    assert joint.query("p", [SliceFilter("SLICE", "MINE")]) == (
        f"WITH w AS (SELECT * , SLICE AS `penstock_slice_1` FROM {view} AS s WHERE (MINE)) "
        "SELECT * EXCEPT (w.`penstock_slice_1`, v.`penstock_slice_1`) "
        ", w.`penstock_slice_1` AS `p` FROM w JOIN w AS v ON w.a = v.a"
        " WHERE w.`penstock_slice_1` = v.`penstock_slice_1` "
    )


FILES = "read_csv('d/{partition}.csv')"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * FROM {FILES}",
        f"SELECT *, '{{partition}}' AS day, DATE '{{partition}}' AS d FROM {FILES} AS f",
        "SELECT * FROM read_json('d/' || '{partition}' || '.json')",
        "SELECT * FROM read_parquet(['a/{partition}', 'b/' || $partition])",
        f"SELECT a, count(*) AS n FROM {FILES} AS f JOIN dim USING (a) GROUP BY a",
        f"SELECT f.a FROM {FILES} AS f LEFT JOIN read_csv('e/{{partition}}.csv') AS g ON g.a = f.a",
        f"SELECT f.a FROM {FILES} AS f JOIN s ON s.a = f.a WHERE s.day = '{{partition}}'",
        f"WITH w AS (SELECT * FROM {FILES}) SELECT max(a) AS m, b FROM w GROUP BY b",
        f"SELECT a FROM {FILES} UNION ALL SELECT b FROM s WHERE day = '{{partition}}'",
        "SELECT a, '{partition}' AS p FROM s WHERE day = '{partition}'",
    ],
)
def test_files_of_slices_say_the_slice(tmp_path: Path, query: str) -> None:
    assert why_apart(model_of(tmp_path, query)) is None


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * FROM read_csv('d/all.csv')", "no condition on the partition"),
        (f"SELECT * FROM {FILES} LIMIT 3", "LIMIT"),
        ("SELECT * FROM read_csv('d/{partition}.csv', comment = '{partition}')", "an option of"),
        (f"SELECT a FROM s WHERE a IN (SELECT a FROM {FILES})", "in an expression"),
        (f"SELECT count(*) AS n FROM {FILES}", "without GROUP BY"),
        (f"SELECT a FROM s LEFT JOIN {FILES} AS f USING (a)", "not joined by ON"),
        (f"SELECT a FROM {FILES} UNION ALL SELECT a FROM s", "a part of its UNION"),
        (f"SELECT a, $partition_start AS s FROM {FILES}", "outside of a WHERE"),
        (f"SELECT a FROM {FILES} WHERE day > '{{partition}}'", "does not compare"),
        (f"SELECT input_file_name() AS f FROM {FILES}", "not the same from run to run"),
    ],
)
def test_files_of_slices_in_doubt(tmp_path: Path, query: str, why: str) -> None:
    assert why in str(why_apart(model_of(tmp_path, query)))
