"""A query that stops at one of its common table expressions."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.query.cte import of_cte
from penstock.model.query.query import Query, read_query
from penstock.model.values.names import Names

TEXT = """CREATE TEMP VIEW tmp AS SELECT * FROM a;
WITH x AS (SELECT * FROM b WHERE n IN (1, 2)), "y z" AS MATERIALIZED (SELECT * FROM x)
SELECT c.d FROM "y z" JOIN tmp USING (id) JOIN c USING (id)"""


def query(text: str, dialect: str) -> Query:
    found, findings = read_query(text, Path("m.sql"), names=Names(("main",)), dialect=dialect)
    assert found is not None, findings
    return found


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
@pytest.mark.parametrize(
    ("name", "tables"), [("x", ["a", "b"]), ("Y Z", ["a", "b"]), ("tmp", ["a"])]
)
def test_what_the_query_reads_up_to_there(name: str, tables: list[str], dialect: str) -> None:
    found = of_cte(query(TEXT, dialect), name)
    assert found is not None
    assert [table.table for table in found.reads] == tables
    sql = found.render({source: f"v{n}" for n, source in enumerate(found.sources)}).sql
    assert sql.rstrip("\n)").replace('"', "`").endswith(f"SELECT * FROM `{name}`") or name == "tmp"
    assert "JOIN" not in sql


@pytest.mark.parametrize("text", [TEXT, "SELECT 1 AS one", "WITH q AS (SELECT 1 AS n) FROM q"])
def test_no_such_name(text: str) -> None:
    assert of_cte(query(text, "spark"), "nosuch") is None
