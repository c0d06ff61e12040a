"""The commands on a real project: what they print, and how they end.

Tests ``cli/preview.py`` (rows, and a model of another name); ``cli/run.py`` (lines, JSON, exit
codes); ``cli/snapshots.py`` (order and limit); and ``cli/sql.py`` (tables, JSON, --explain, wrong
input).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FAILING = """\
-- pipeline
-- materialize ducklake://main/broken
-- data_test accepted_values customer = ada
ATTACH 'ducklake://main' AS dl;
SELECT customer FROM dl.orders
"""
BELOW = """\
-- pipeline
-- materialize ducklake://main/below
ATTACH 'ducklake://main' AS dl;
SELECT * FROM dl.broken
"""


def penstock(project: Path, *arguments: str) -> Result:
    command, *rest = arguments
    return CliRunner().invoke(main, [command, "--project", str(project), *rest])


def as_json(project: Path, *arguments: str) -> Any:
    return json.loads(penstock(project, *arguments, "--json").stdout)


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that ``init`` makes, run once."""
    directory = tmp_path_factory.mktemp("cli") / "shop"
    CliRunner().invoke(main, ["init", str(directory)])
    assert penstock(directory, "run").exit_code == 0
    return directory


@pytest.fixture(scope="module")
def failed(shop: Path) -> Result:
    """A run of one step whose test fails, and of one that depends on it."""
    (shop / "models" / "broken.sql").write_text(FAILING)
    (shop / "models" / "below.sql").write_text(BELOW)
    result = penstock(shop, "run", "--select", "broken+")
    for name in ("broken", "below"):
        (shop / "models" / f"{name}.sql").unlink()
    return result


def test_a_run_is_lines_and_a_second_one_changes_nothing(shop: Path) -> None:
    result = penstock(shop, "run")
    assert result.exit_code == 0
    assert "orders: unchanged" in result.stdout
    assert "customers: unchanged" in result.stdout


def test_a_failed_test_shows_its_rows_and_ends_with_1(failed: Result) -> None:
    assert failed.exit_code == 1
    assert "broken failed; main.broken was not created" in failed.stdout
    assert "test accepted_values customer failed on 1 row" in failed.stdout
    assert "grace" in failed.stdout


def test_show_has_the_latest_results_of_tests(shop: Path, failed: Result) -> None:
    (shop / "models" / "broken.sql").write_text(FAILING)
    text = penstock(shop, "show", "broken", "--tests").stdout
    (check,) = as_json(shop, "show", "broken", "--tests")["tests"]
    (shop / "models" / "broken.sql").unlink()
    assert "whole table  accepted_values customer  failed" in text
    assert "AND NOT CAST(`customer` AS STRING) IN ('ada')" in text
    assert "grace" in text
    assert (check["slice"], check["result"]["severity"]) == (None, "error")
    assert check["result"]["samples"] == [{"customer": "grace"}]
    assert penstock(shop, "show", "orders", "--tests").exit_code == 0


def test_what_depends_on_a_failure_is_skipped_and_says_why(failed: Result) -> None:
    assert "below: skipped (upstream broken failed" in failed.stdout


def test_a_failed_run_is_listed_and_shown_with_its_rows(shop: Path, failed: Result) -> None:
    assert failed.exit_code == 1
    run = as_json(shop, "runs", "--failed")["runs"][0]
    assert (run["state"], run["exit_code"]) == ("failed", 1)
    assert run["steps"] == {"failed": 1, "skipped": 1}
    text = CliRunner().invoke(main, ["runs", "--project", str(shop), "show", run["run_id"]]).stdout
    assert "asked      penstock run broken+" in text
    assert "broken: missing" in text
    assert "grace" in text
    log = penstock(shop, "logs", run["run_id"]).stdout
    assert "broken: query\n    SELECT customer FROM main.orders" in log
    assert "penstock.errors.DataTestFailed: 1 of 1 data tests failed" in log
    assert "broken: starting" in text


def test_a_run_as_json_is_events_then_the_result(shop: Path) -> None:
    lines = penstock(shop, "run", "orders", "--force", "--json").stdout.splitlines()
    *events, last = [json.loads(line) for line in lines]
    began = [event["event"] for event in events[:3]]
    assert began == ["SparkStarting", "SparkStarted", "RunStarted"]
    assert events[-1]["event"] == "RunFinished"
    (step,) = last["result"]["steps"]
    assert (step["name"], step["state"], step["error"]) == ("orders", "unchanged", None)


def test_status_as_json(shop: Path) -> None:
    orders = next(
        status for status in as_json(shop, "status")["models"] if status["model"] == "orders"
    )
    assert orders["strategy"] == "merge"
    assert orders["slices"][0]["state"] == "materialized"
    assert orders["slices"][0]["rows"] == 3


def test_status_of_one_model_has_its_tests(shop: Path) -> None:
    text = penstock(shop, "status", "orders").stdout
    assert "orders makes main.orders (merge)" in text
    assert "3/3" in text


def test_show_names_columns_tests_and_inputs(shop: Path) -> None:
    text = penstock(shop, "show", "customers").stdout
    assert "reads     main.orders" in text
    assert "spent     decimal" in text
    assert "unique customer" in text


def test_snapshots_are_newest_first_and_limited(shop: Path) -> None:
    ids = [snapshot["id"] for snapshot in as_json(shop, "snapshots", "--limit", "2")["snapshots"]]
    assert len(ids) == 2
    assert ids[0] > ids[1]


def test_sql_prints_a_table_or_json(shop: Path) -> None:
    query = "SELECT order_id, amount FROM main.orders ORDER BY order_id"
    assert penstock(shop, "sql", query).stdout.splitlines() == [
        "order_id  amount",
        "       1   12.50",
        "       2    8.00",
        "       3   30.25",
    ]
    assert as_json(shop, "sql", query, "--limit", "1") == {
        "schema_version": 1,
        "columns": [
            {"name": "order_id", "type": "int"},
            {"name": "amount", "type": "decimal(10,2)"},
        ],
        "rows": [[1, "12.50"]],
        "more": True,
    }


def test_sql_says_what_it_would_read(shop: Path) -> None:
    query = "SELECT order_id FROM main.orders WHERE order_id > 3 AND length(customer) > 1"
    said = penstock(shop, "sql", query, "--explain").stdout
    assert "files: 0 of 2" in said
    assert "chosen by: order_id > 3" in said
    (table,) = as_json(shop, "sql", query, "--explain")["tables"]
    assert (table["name"], table["files"], table["of_files"]) == ("main.orders", 0, 2)
    assert table["unused"] == ["LENGTH(customer) > 1"]


def test_preview_writes_nothing(shop: Path) -> None:
    before = as_json(shop, "snapshots")
    assert as_json(shop, "preview", "customers")["rows"] == [["ada", 2, "42.75"]]
    assert as_json(shop, "snapshots") == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status", "order"), "did you mean 'orders'?"),
        (("run", "--select", "order"), "did you mean 'orders'?"),
        (("run", "--arg", "nothing=1"), "no script has an argument 'nothing'"),
        (("snapshots", "--lake", "maim"), "did you mean 'main'?"),
        (("sql", "SELECT * FROM main.order"), "query:1:15: error: table "),
        (("sql", "VACUUM main.orders"), "query:1:1: error: VACUUM is not supported"),
        (("sql", ""), "the query is empty"),
        (
            ("sql", "SELECT nope FROM main.orders"),
            "query:1:8: error: column 'nope' does not exist in main.orders",
        ),
        (("preview", "order"), "did you mean 'orders'?"),
    ],
)
def test_wrong_input_is_one_message_and_ends_with_2(
    arguments: tuple[str, ...], said: str, shop: Path
) -> None:
    result = penstock(shop, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_an_error_of_spark_has_its_place_and_no_stack(shop: Path) -> None:
    result = penstock(shop, "sql", "SELECT 1 / (order_id - 1) FROM main.orders")
    assert result.exit_code == 1
    assert "Division by zero" in result.stderr
    assert "org.apache" not in result.stderr


def test_check_as_json_lists_models_and_findings(shop: Path) -> None:
    assert as_json(shop, "check") == {
        "schema_version": 1,
        "models": ["customers", "orders"],
        "diagnostics": [],
    }


def test_check_as_json_lists_errors_too(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    CliRunner().invoke(main, ["init", str(shop)])
    (shop / "models" / "bad.sql").write_text(
        "-- pipeline\n-- materialize ducklake://main/t APPEND\nSELECT 1"
    )
    result = penstock(shop, "check", "--json")
    (document,) = json.loads(result.stdout)["diagnostics"]
    assert (document["severity"], document["location"]["line"]) == ("error", 2)
    assert result.exit_code == 2
