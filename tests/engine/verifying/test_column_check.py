"""Columns that models name and their queries plainly lack, found without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Lake
from penstock.engine.verifying.column_check import RULE
from penstock.errors import ModelError
from penstock.project.project import Project
from tests.engine.toy import write_project

SELECT = "SELECT 1 AS id, 'x' AS name"


def findings(root: Path, *scripts: str) -> list[tuple[str, int | None, str, str]]:
    named = {f"models/m{number}": text for number, text in enumerate(scripts)}
    with Project.load(write_project(root / "p", named)) as project:
        return [
            (each.severity, each.location.line, each.message, each.hint or "")
            for each in project.check()
        ]


@pytest.mark.parametrize(
    ("header", "line", "what"),
    [
        ("-- materialize ducklake://main/t key=nmae", 1, "key nmae"),
        ("-- materialize ducklake://main/t history key=id track=nmae", 1, "tracked column nmae"),
        ("-- partitioned daily\n-- materialize ducklake://main/t time=nmae", 2, "time column nmae"),
        ("-- materialize ducklake://main/t\n-- data_test unique nmae", 2, "tested column nmae"),
        ("-- materialize ducklake://main/t\n-- data_test accepted_values nmae = a", 2, "tested"),
        ("MODEL (name t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key nmae));", 1, "key nmae"),
        (
            "MODEL (name t, kind SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name nmae));",
            1,
            "column nmae",
        ),
        (
            "MODEL (name t, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (nmae)));",
            1,
            "tracked",
        ),
        (
            "MODEL (name t, kind FULL, partitioned_by month(nmae));",
            1,
            "column to partition by nmae",
        ),
        ("MODEL (name t, kind FULL, clustered_by nmae);", 1, "column to sort by nmae"),
        ("MODEL (name t, audits (not_null(columns := (nmae))));", 1, "tested column nmae"),
        (
            "-- materialize ducklake://main/t\n-- column nmae <- ducklake://main/x.a",
            2,
            "column nmae, whose lineage is declared",
        ),
    ],
)
def test_what_a_query_lacks(tmp_path: Path, header: str, line: int, what: str) -> None:
    found = [each for each in findings(tmp_path, f"{header}\n{SELECT}") if "the query" in each[2]]
    found = [each for each in found if "does not make" in each[2]]
    assert [(each[1], each[3]) for each in found] == [(line, "did you mean name?")]
    assert f"the query does not make the {what}" in found[0][2]


def test_columns_that_are_declared_and_made_apart(tmp_path: Path) -> None:
    for columns, said in (
        ("id INT", "the query makes name, which `columns` does not declare"),
        ("id INT, name TEXT, x INT", "column x is declared, and the query does not make it"),
    ):
        model = f"MODEL (name t, kind FULL, columns ({columns}));\n{SELECT}"
        assert [each[2] for each in findings(tmp_path, model)] == [said]
    by_time = f"MODEL (name t, kind SCD_TYPE_2_BY_TIME (unique_key id));\n{SELECT}"
    assert "does not make the column updated_at" in findings(tmp_path, by_time)[0][2]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM main.unknown",
        "SELECT count(*) FROM range(3)",
        "SELECT u.*, 1 AS x FROM range(3) JOIN main.unknown AS u ON true",
        "SELECT explode(map('a', 1))",
        "SELECT s.* FROM (SELECT named_struct('nope', 1) AS s) AS t",
        "SELECT * FROM read_csv('x.csv')",
        "SELECT * FROM (SELECT 'a' AS k, 1 AS v) PIVOT (sum(v) FOR k IN ('nope'))",
        "SELECT inline(array(struct(1 AS nope)))",
        "SELECT stack(1, 1, 2) AS (nope, b)",
        "FROM range(3) |> SELECT id AS nope",
        "SELECT x.nope FROM (SELECT 1 AS nope) AS x",
        "SELECT a AS id, * EXCEPT (a) FROM VALUES (1, 2) AS v(a, nope)",
    ],
)
def test_what_is_not_certain_is_left_to_a_run(tmp_path: Path, query: str) -> None:
    model = f"-- materialize ducklake://main/t\n-- data_test not_null nope\n{query}"
    assert not [each for each in findings(tmp_path, model) if each[0] == "error"]


def test_a_star_of_another_model_is_known(tmp_path: Path) -> None:
    reader = "-- materialize ducklake://main/u key=nmae\nSELECT * FROM t"
    made = f"-- materialize ducklake://main/t history key=id\n{SELECT}"
    made = made.replace("\n", "\n-- data_test not_null is_current\n", 1)
    found = findings(tmp_path, made, reader)
    assert [each[2] for each in found] == ["the query does not make the key nmae"]


ORDERS = """\
-- materialize ducklake://main/orders{}
SELECT 1 AS order_id, 'a' AS cust, 2 AS amount"""
REVENUE = """\
-- materialize ducklake://main/revenue
SELECT customer, sum(amount) AS revenue FROM orders GROUP BY customer"""
NO_LONGER = "orders no longer returns the column customer"


def project(root: Path, scripts: dict[str, str], *, table: str | None = None) -> Project:
    """A project whose lake has the ``table`` of an earlier definition."""
    write_project(root, {f"models/{name}": text for name, text in scripts.items()})
    if table is not None and not (root / "lake").exists():
        (root / "lake").mkdir()
        with Lake.attach(f"ducklake:sqlite:{root}/lake/meta.sqlite") as lake:
            lake.sql(f"CREATE TABLE {table}")
    return Project.load(root)


def find_broken_references(
    root: Path, scripts: dict[str, str], table: str | None = None
) -> list[str]:
    with project(root, scripts, table=table) as loaded:
        found = [each for each in loaded.check() if each.rule == RULE]
    return [f"{each.severity} {each.location.line}: {each.message}" for each in found]


OLD = "orders (order_id INT, customer VARCHAR, amount INT)"


@pytest.mark.parametrize(
    ("header", "severity"),
    [
        ("", "error"),
        (" key=order_id", "error"),
        (" append on_schema_change=sync", "error"),
        (" append on_schema_change=warn", "warning"),
        (" key=order_id on_schema_change=ignore", "warning"),
        ("\n-- partitioned daily", "error"),
        (" key=order_id history", "error"),
    ],
)
def test_a_column_that_only_the_table_still_has(tmp_path: Path, header: str, severity: str) -> None:
    scripts = {"orders": ORDERS.format(header), "revenue": REVENUE}
    found = find_broken_references(tmp_path, scripts, OLD)
    more = ": it is NULL in the rows of later runs" if severity == "warning" else ""
    assert found == [f"{severity} 2: {NO_LONGER}{more}"] * 2


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id)", "error"),
        ("INCREMENTAL_UNMANAGED (on_destructive_change ignore)", "warning"),
        ("INCREMENTAL_UNMANAGED (on_destructive_change allow)", "error"),
        ("FULL", "error"),
        ("VIEW", "error"),
        ("EMBEDDED", "error"),
    ],
)
@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_models_of_both_dialects(tmp_path: Path, kind: str, severity: str, dialect: str) -> None:
    query = ORDERS.split("\n", 1)[1]
    orders = f"MODEL (name orders, kind {kind}, dialect {dialect});\n{query}"
    revenue = "MODEL (name revenue, kind FULL, dialect {});\nSELECT o.customer FROM orders AS o"
    found = find_broken_references(
        tmp_path, {"orders": orders, "revenue": revenue.format(dialect)}, OLD
    )
    assert [each.split(" ")[0] for each in found] == [severity]
    if kind != "EMBEDDED":
        assert NO_LONGER in found[0]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders",
        "SELECT cust, order_id, _wm_partition FROM orders",
        "SELECT customer FROM orders AT (VERSION => 1)",
        "SELECT transform(array(1), customer -> customer + amount) AS a FROM orders",
        "SELECT cust AS customer FROM orders ORDER BY customer",
        "WITH o AS (SELECT cust AS customer FROM orders) SELECT customer FROM o",
        "SELECT customer FROM orders JOIN main.elsewhere USING (order_id)",
        "SELECT current_date, date_trunc('month', DATE '2026-01-01') AS m FROM orders",
        "SELECT timestampadd(HOUR, 1, now()) AS t, extract(YEAR FROM now()) AS y FROM orders",
        "SELECT customer FROM files",
        "SELECT customer FROM python",
    ],
)
def test_a_reference_that_is_not_certain_is_left_to_a_run(tmp_path: Path, query: str) -> None:
    scripts = {
        "orders": ORDERS.format("\n-- partitioned daily"),
        "files": "-- materialize ducklake://main/files append\nSELECT * FROM read_csv('x.csv')",
        "python.py": "# materialize ducklake://main/python append\ndef main():\n    return []\n",
        "reader": f"-- materialize ducklake://main/reader\n{query}",
    }
    assert not find_broken_references(tmp_path, scripts)


@pytest.mark.parametrize(
    ("query", "line", "message"),
    [
        ("SELECT *\nFROM orders WHERE customer = 'a'", 3, NO_LONGER),
        ("WITH o AS (SELECT * FROM orders)\nSELECT o.customer FROM o", 3, NO_LONGER),
        ("SELECT cust FROM orders o\nJOIN orders p USING (customer)", 3, NO_LONGER),
        ("SELECT 1 AS a FROM orders o\nJOIN main.elsewhere e ON e.x = o.customer", 3, NO_LONGER),
        ("SELECT o.colour FROM orders o", 2, "orders does not return the column colour"),
        ("SELECT colour FROM orders, seeds", 2, "nothing that the query reads has no"),
    ],
)
def test_each_place_that_names_a_column(
    tmp_path: Path, query: str, line: int, message: str
) -> None:
    scripts = {
        "orders": ORDERS.format(" append"),
        "seeds": "-- materialize ducklake://main/seeds\nSELECT 1 AS seed",
        "reader": f"-- materialize ducklake://main/reader\n{query}",
    }
    found = find_broken_references(tmp_path, scripts, OLD)
    assert found
    assert found[0].startswith(f"error {line}: {message}")


def test_a_test_of_a_relationship_names_a_column_too(tmp_path: Path) -> None:
    test = "-- data_test relationships id -> ducklake://main/orders.customer\n"
    reader = f"{test}-- materialize ducklake://main/reader\nSELECT 'a' AS id"
    found = find_broken_references(
        tmp_path, {"orders": ORDERS.format(" append"), "reader": reader}, OLD
    )
    assert found == [f"error 1: {NO_LONGER}"]
    warning = {"reader": reader.replace("customer", "customer severity=warn")}
    (found_warning,) = find_broken_references(
        tmp_path, {"orders": ORDERS.format(" append"), **warning}, OLD
    )
    assert found_warning.startswith(f"warning 1: {NO_LONGER}")


def test_a_plan_shows_what_is_gone_and_a_run_does_not_begin(tmp_path: Path) -> None:
    scripts = {"orders": ORDERS.format(" key=order_id"), "revenue": REVENUE}
    with project(tmp_path, scripts, table=OLD) as loaded:
        plan = loaded.plan()
        assert "orders: customer is no longer returned; read by revenue" in plan.notices
        fails = {step.name: str(step.fails) for step in plan.steps}
        assert f"revenue.sql:2:8: {NO_LONGER}" in fails["revenue"]
        with pytest.raises(ModelError, match=NO_LONGER):
            loaded.run()
