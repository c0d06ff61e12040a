"""A model that reads its own table: before its first run the table is empty."""

from __future__ import annotations

import pytest

from penstock.errors import QueryFailed
from tests.engine.conftest import Make
from tests.engine.toy import rows

pytestmark = pytest.mark.spark

OWN = "-- materialize ducklake://main/t{}\n"
SOURCE = "VALUES (1, DATE '2026-01-01'), (2, DATE '2026-01-02') AS v(id, day)"


def test_a_counter_counts_from_its_first_run(make: Make) -> None:
    text = OWN.format(" append") + "SELECT coalesce(max(n), 0) + 1 AS n FROM t"
    project = make({"models/t": text})
    assert project.preview("t").collect() == [(1,)]
    for _ in range(3):
        assert project.run().state == "done"
    assert rows(project, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]
    assert project.preview("t").collect() == [(4,)]
    assert project.run(select=["t"], full_refresh=True).state == "done"
    assert rows(project, "SELECT n FROM t") == [(1,)]


@pytest.mark.parametrize(
    ("header", "query"),
    [
        ("", f"SELECT * FROM {SOURCE} WHERE id > (SELECT coalesce(max(id), 0) FROM t)"),
        ("", f"SELECT v.* FROM {SOURCE} LEFT ANTI JOIN t USING (id)"),
        ("", f"SELECT id, day FROM t UNION SELECT * FROM {SOURCE}"),
        ("", f"SELECT * FROM t UNION SELECT id, day FROM {SOURCE}"),
        ("", f"WITH old AS (FROM t) SELECT coalesce(v.id, o.id) AS id, v.day FROM {SOURCE}"
             " FULL JOIN old o ON o.id = v.id"),
        ("-- column id INTEGER\n-- column day DATE\n", f"TABLE t UNION SELECT * FROM {SOURCE}"),
    ],
)  # fmt: skip
def test_its_columns_are_those_of_the_query(make: Make, header: str, query: str) -> None:
    df = make({"models/t": OWN.format("") + header + query}).preview("t")
    assert df.dtypes == [("id", "int"), ("day", "date")]


def test_its_partition_is_a_column(make: Make) -> None:
    text = OWN.format("") + (
        "-- partitioned dynamic key=$.p\n"
        "SELECT count(*) AS n, '{partition}' AS p FROM t WHERE _wm_partition <> '{partition}'"
    )
    project = make({"models/t": text})
    for value in ("a", "b"):
        assert project.run(partition=value).state == "done"
    assert rows(project, "SELECT p, n FROM t ORDER BY p") == [("a", 0), ("b", 1)]


@pytest.mark.parametrize(
    ("header", "query", "message", "hint"),
    [
        ("", "SELECT * FROM t", "the type of its columns", "-- column name BIGINT"),
        ("", "SELECT max(n) AS n FROM t", "the type of n is not known", "-- column name BIGINT"),
        ("", "SELECT coalesce(max(n), 0.5) + 1.5 AS n FROM t", "the type of n", "-- column"),
        ("", f"SELECT * FROM t UNION SELECT * FROM {SOURCE}", "number of columns", "-- column"),
        ("-- column m INT\n", "SELECT 1 AS n FROM t", "declared, and the query", "it makes n"),
        ("-- column n DATE\n", "SELECT 1 AS n, max(n) FROM t", "makes it int", "or cast"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_asked_for(
    make: Make, header: str, query: str, message: str, hint: str
) -> None:
    with pytest.raises(QueryFailed) as raised:
        make({"models/t": OWN.format("") + header + query}).preview("t")
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    assert raised.value.location is not None
