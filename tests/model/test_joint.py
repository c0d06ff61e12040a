"""Which queries may be asked for many slices, and the query that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.joint import NotJoint, joint_query, why_apart
from penstock.model.partition import PartitionSpec
from penstock.model.render import trial_names
from penstock.project import Project
from tests.engine.toy import write_project

DAILY = PartitionSpec("daily")


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
        "SELECT CASE WHEN a = 1 AND a = 2 OR b THEN 1 END FROM s WHERE day = '{partition}'",
        "SELECT a IS DISTINCT FROM b AS c FROM s WHERE day = $partition ORDER BY 1",
    ],
)
def test_a_condition_on_the_slice_at_the_bottom_is_enough(tmp_path: Path, query: str) -> None:
    assert why_apart(model_of(tmp_path, query)) is None


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT 1 AS a", "no condition on the partition"),
        ("SELECT a FROM s WHERE b = 1", "no condition on the partition"),
        ("SELECT a, '{partition}' AS p FROM s WHERE day = '{partition}'", "outside of the WHERE"),
        ("SELECT a FROM s WHERE day = '{partition}' LIMIT 3", "LIMIT"),
        ("SELECT a FROM s WHERE day = '{partition}' OR b", "an OR"),
        ("SELECT a FROM s WHERE NOT day = '{partition}'", "not a plain comparison"),
        ("SELECT a FROM s WHERE day = '{partition}' = b", "not a plain comparison"),
        ("SELECT a FROM s WHERE day <= '{partition}'", "does not compare"),
        ("SELECT a FROM s WHERE day = '{partition}' AND b = '{partition}'", "does not compare"),
        ("SELECT a FROM s WHERE day LIKE '{partition}' || '%'", "not a plain comparison"),
        ("SELECT a FROM s WHERE f(day) = '{partition}'", "more than columns"),
        ("SELECT a, rand() FROM s WHERE day = '{partition}'", "rand"),
        ("SELECT rank() OVER (ORDER BY a) FROM s WHERE day = '{partition}'", "a window"),
        ("WITH w AS (SELECT 1) SELECT a FROM w WHERE day = '{partition}'", "single SELECT"),
        ("SELECT a FROM s WHERE day = '{partition}' UNION SELECT 1", "single SELECT"),
        ("SELECT a FROM (SELECT * FROM s WHERE day = '{partition}') WHERE a = 1", "outside"),
        ("SELECT a FROM s WHERE day = '{partition}' GROUP BY ALL", "no plain list"),
        ("SELECT a FROM s WHERE day = '{partition}' GROUP BY a WITH ROLLUP", "no plain list"),
        ("SELECT a FROM t WHERE day = '{partition}'", "its own table"),
        ("SELECT a FROM s WHERE at >= $partition_start AND b < $partition_end", "two expressions"),
        ("SELECT a FROM s WHERE at > $partition_start AND at < $partition_end", "does not compare"),
        ("SELECT a FROM s TABLESAMPLE (5 ROWS) WHERE day = '{partition}'", "a sample"),
        ("SELECT a FROM s WHERE 'x' = '{partition}'", "has no column"),
    ],
)
def test_in_doubt_slices_are_made_one_by_one(tmp_path: Path, query: str, why: str) -> None:
    assert why in str(why_apart(model_of(tmp_path, query)))


def test_what_is_not_in_the_query(tmp_path: Path) -> None:
    query = "SELECT a FROM s WHERE day = '{partition}'"
    merge = model_of(tmp_path, query, strategy=" key=a")
    assert why_apart(merge) == "its strategy is merge"
    test = "-- data_test relationships a -> ducklake://main/t.a\n"
    assert "reads its own table" in str(why_apart(model_of(tmp_path, query, test)))


def test_values_are_texts_or_dates(tmp_path: Path) -> None:
    joint = joint_of(tmp_path, "SELECT a FROM s WHERE day = '{partition}' GROUP BY a HAVING a > 1")
    view = next(word for word in joint.sql.split() if word.startswith("penstock_source"))
    assert joint.by_value("p", ["2026-01-01", "2026-01-02"], "date") == (
        f"SELECT a , CAST(day AS STRING) AS `p` FROM {view} AS s "
        "WHERE ((day) IN (DATE '2026-01-01', DATE '2026-01-02')) "
        "GROUP BY a, CAST(day AS STRING)  HAVING a > 1"
    )
    assert "IN ('x')" in joint.by_value("p", ["x"], "string")
    with pytest.raises(NotJoint, match="day is timestamp, and not a text or a date"):
        joint.by_value("p", ["2026-01-01"], "timestamp")
    with pytest.raises(NotJoint, match="the partitions are not"):
        joint.by_value("p", ["2026-01"], "date")


def test_a_cast_to_a_date_wants_a_date(tmp_path: Path) -> None:
    joint = joint_of(tmp_path, "SELECT a FROM s WHERE day = DATE '{partition}'")
    assert joint.as_date
    with pytest.raises(NotJoint, match="not a date"):
        joint.by_value("p", ["2026-01-01"], "string")


def test_bounds_become_a_list_of_stretches(tmp_path: Path) -> None:
    query = "SELECT a FROM s WHERE at >= $partition_start AND at < $partition_end"
    text = joint_of(tmp_path, query).by_bounds("p", ["2026-01-01", "2026-01-03"], DAILY)
    assert "array('2026-01-01', NULL, '2026-01-03')" in text
    assert "DIV 86400000000L" in text
    assert "IS NOT NULL" in text


def test_a_day_of_23_hours_is_made_of_hours(tmp_path: Path) -> None:
    query = "SELECT a FROM s WHERE at >= $partition_start AND at < $partition_end"
    paris = PartitionSpec("daily", tz="Europe/Paris")
    text = joint_of(tmp_path, query).by_bounds("p", ["2026-03-28", "2026-03-29"], paris)
    assert (text.count("'2026-03-28'"), text.count("'2026-03-29'")) == (24, 23)
    assert "DIV 3600000000L" in text
