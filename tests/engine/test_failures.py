"""What goes wrong in a step: one message with its place, and the table as it was.

Tests ``engine/running/attempt.py`` (the transaction of an attempt that fails) and
``engine/running/step.py`` (retries and ways to end).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from penstock.errors import DataTestFailed, NotFound, PenstockError, QueryFailed
from penstock.events import Event, Notice, StepProgress
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

pytestmark = pytest.mark.spark

HEAD = "-- pipeline\n-- materialize ducklake://main/t\n"


def failure(make: Make, text: str) -> PenstockError:
    (failed,) = make({"models/t": text}).run().steps
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.reason == str(failed.error)
    return failed.error


@pytest.mark.parametrize(
    ("query", "line", "column", "said"),
    [
        ("SELECT a,\n  nope AS b\nFROM VALUES (1) AS v(a)", 4, 3, "`nope` cannot be resolved"),
        ("SELECT\n  CAST('boom' AS INT) AS b", 4, 3, "boom"),
        ("SELECT 1 AS a,\n  1 / (id - id) AS b FROM range(3)", 4, 3, "Division by zero"),
        ("SELECT no_such_function(1) AS a", 3, 8, "no_such_function"),
        ("SELECT * FROM\n  read_csv('gone.csv')", 4, 3, "file gone.csv does not exist"),
        ("SELECT * FROM\n  gone", 4, 3, "table main.gone does not exist"),
        ("SELECT 1 AS _WM_PARTITION", 3, 1, "which Penstock writes itself"),
    ],
)
def test_a_failing_query_is_placed(
    make: Make, query: str, line: int, column: int, said: str
) -> None:
    error = failure(make, HEAD + query)
    assert said in error.message
    assert "\n" not in error.message
    assert error.location is not None
    assert (error.location.line, error.location.column) == (line, column)
    assert str(error.location.path).endswith("models/t.sql")


def test_an_upstream_that_never_ran_is_named_with_its_model(make: Make) -> None:
    made = HEAD.replace("/t", "/mart.{}")
    scripts = {
        "models/marts/x": made.format("x") + "SELECT 1 AS a",
        "models/t": HEAD + "SELECT * FROM main.mart.x",
        "models/u": made.format("u")
        + "-- data_test relationships a -> ducklake://main/mart.x.a\nSELECT 1 AS a",
    }
    project = make(scripts)
    hint = "run it first: penstock run --select +marts/x"
    assert [step.error and step.error.hint for step in project.run(select=["t", "u"]).steps] == [
        hint,
        hint,
    ]
    asks: tuple[Callable[[], object], ...] = (
        lambda: project.preview("t"),
        lambda: project.sql("SELECT * FROM main.mart.X"),
    )
    for ask in asks:
        with pytest.raises(NotFound) as error:
            ask()
        assert error.value.hint == hint


def test_a_malformed_row_is_never_null(make: Make) -> None:
    project = make({"models/t": HEAD + "SELECT * FROM read_csv('x.csv', columns = {'a': 'INT'})"})
    (project.settings.root / "x.csv").write_text("a\n1\nseven\n")
    (failed,) = project.run().steps
    assert "seven" in str(failed.error)
    assert "x.csv" in str(failed.error)


def test_names_in_a_message_are_the_users(make: Make) -> None:
    scripts = {
        "models/s": HEAD.replace("/t", "/s") + "SELECT 1 AS a",
        "models/t": HEAD + "SELECT explode(s.a) AS b FROM s",
    }
    failed = step(make(scripts).run(), "t")
    assert "penstock_" not in str(failed.error)


FAILING = """
    -- pipeline
    -- materialize ducklake://main/t
    -- data_test unique id
    -- data_test not_null name
    -- data_test accepted_values name = a,b
    SELECT * FROM VALUES {} AS v(id, name)
"""


def test_failing_tests_leave_the_table_and_show_samples(make: Make) -> None:
    make({"models/t": FAILING.format("(1, 'a'), (2, 'b')")}).run()
    project = make({"models/t": FAILING.format("(1, 'a'), (1, NULL), (2, 'z'), (3, 'y')")})
    (failed,) = project.run().steps
    assert isinstance(failed.error, DataTestFailed)
    outcomes = [(check.name, check.passed, check.failures) for check in failed.checks]
    assert outcomes == [
        ("unique id", False, 1),
        ("not_null name", False, 1),
        ("accepted_values name", False, 2),
    ]
    assert failed.checks[0].samples == ({"id": 1, "occurrences": 2},)
    assert failed.checks[1].samples == ({"id": 1, "name": None},)
    assert rows(project, "SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "b")]
    status = project.status("t")[0]
    assert (status.state, status.slices[0].tests, status.slices[0].tests_failed) == ("failed", 3, 3)
    assert (status.slices[0].rows, status.slices[0].snapshot_id) == (2, 1)


def test_samples_are_twenty_at_most(make: Make) -> None:
    text = HEAD + "-- data_test not_null b\nSELECT id, CAST(NULL AS INT) AS b FROM range(50)"
    (failed,) = make({"models/t": text}).run().steps
    assert failed.checks[0].failures == 50
    assert len(failed.checks[0].samples) == 20


def test_a_test_of_a_wrong_column_is_placed(make: Make) -> None:
    error = failure(make, HEAD + "-- data_test unique idd\nSELECT 1 AS id")
    assert "did you mean 'id'" in str(error)
    assert error.location is not None
    assert error.location.line == 3


GRAPH = {
    "models/bad": HEAD.replace("/t", "/bad") + "SELECT CAST('boom' AS INT) AS a",
    "models/below": HEAD.replace("/t", "/below") + "SELECT * FROM bad",
    "models/deeper": HEAD.replace("/t", "/deeper") + "SELECT * FROM below",
    "models/other": HEAD.replace("/t", "/other") + "SELECT 1 AS a",
}


def test_only_what_depends_on_a_failure_is_skipped(make: Make) -> None:
    result = make(GRAPH).run()
    assert {step.name: step.state for step in result.steps} == {
        "bad": "failed",
        "below": "skipped",
        "deeper": "skipped",
        "other": "done",
    }
    assert (result.state, result.exit_code) == ("failed", 1)
    assert str(step(result, "deeper").reason).startswith("upstream bad failed: ")
    assert "boom" in str(step(result, "deeper").reason)


def test_a_failing_query_is_tried_again_and_a_failing_test_is_not(make: Make) -> None:
    events: list[object] = []
    retry = HEAD + "-- retry 2 0s\n"
    make({"models/t": retry + "SELECT CAST('boom' AS INT) AS a"}).run(on_event=events.append)
    assert sum("tries again" in str(event) for event in events) == 2
    events.clear()
    text = retry + "-- data_test unique a\nSELECT * FROM VALUES (1), (1) AS v(a)"
    make({"models/t": text}).run(on_event=events.append)
    make({"models/t": retry + "SELECT nope"}).run(on_event=events.append)
    assert not any("tries again" in str(event) for event in events)


def test_a_step_that_another_writer_was_quicker_than_is_done_anew(make: Make) -> None:
    """Another run would wait for the slice: `engine/running/test_two_runs.py`."""
    project = make({"models/t": HEAD + "-- $n (int) = 1\nSELECT $n AS n"})
    project.run()
    events: list[Event] = []

    def race(event: Event) -> None:
        events.append(event)
        if event == StepProgress("t", "publishing") and events.count(event) == 1:
            project.lake("main").sql("UPDATE t SET n = 3")

    assert project.run(args={"n": 2}, on_event=race).state == "done"
    assert rows(project, "SELECT n FROM t") == [(2,)]
    assert [
        event for event in events if isinstance(event, Notice) and "retried, as" in event.message
    ]


def test_spark_that_went_away_is_said(make: Make) -> None:
    def gone(event: Event) -> None:
        if event == StepProgress("t", "writing"):
            raise ConnectionRefusedError(111, "Connection refused")  # as py4j does then

    (failed,) = make({"models/t": HEAD + "SELECT 1 AS a"}).run(on_event=gone).steps
    assert "the connection to Spark is lost" in str(failed.error)
    assert "spark.driver.memory" in str(failed.error)


def test_nothing_staged_stays_behind(make: Make) -> None:
    project = make({"models/t": FAILING.format("(1, 'z')")})
    project.run()
    data = project.settings.root / "lake" / "data"
    assert list(data.rglob("*.parquet")) == []


def test_before_the_start_the_partitioned_step_is_skipped_and_the_run_succeeds(make: Make) -> None:
    daily = HEAD.replace("-- mat", '-- partitioned daily start="2030-01-01"\n-- mat')
    scripts = {"models/t": daily + "SELECT '{partition}' AS a"}
    scripts["models/other"] = GRAPH["models/other"]
    result = make(scripts).run(fire_time=datetime(2026, 1, 1, tzinfo=UTC))
    assert (result.state, result.exit_code) == ("done", 0)
    assert step(result, "other").state == "done"
    assert (step(result, "t").state, step(result, "t").reason) == ("skipped", "before start")


def test_query_failed_is_the_error(make: Make) -> None:
    assert isinstance(failure(make, HEAD + "SELECT nope"), QueryFailed)


def test_a_bad_input_file_is_the_users_file(make: Make) -> None:
    head = "-- pipeline\n-- materialize ducklake://main/{}\n"
    read = "SELECT * FROM read_{0}('{1}.{0}', columns = {{'a': 'INTEGER', 'b': 'VARCHAR'}})"
    scripts = {"models/rows": head.format("rows") + read.format("csv", "semi")}
    scripts["models/bad"] = head.format("bad") + read.format("csv", "bad")
    scripts["models/parquet"] = head.format("parquet") + "SELECT * FROM read_parquet('bad.csv')"
    scripts["models/array"] = head.format("array") + "SELECT * FROM read_json('array.json')"
    project = make(scripts)
    root = project.settings.root
    (root / "semi.csv").write_text("a;b\n1;x\n")
    (root / "bad.csv").write_text("a,b\n1,x\ntwo,y\n")
    (root / "array.json").write_text('[\n{"a": 1},\n{"a": 2}\n]')
    result = project.run()
    assert (step(result, "rows").rows, step(result, "array").rows) == (1, 2)
    bad, parquet = (step(result, name).error for name in ("bad", "parquet"))
    assert "bad.sql:3:15: bad.csv, line 3: 'two' is not of its column's type" in str(bad)
    assert "parquet.sql:3:15: bad.csv: this is not a Parquet file" in str(parquet)
    assert "snapshot" not in f"{bad}{parquet}"
    with pytest.raises(QueryFailed, match=r"bad.sql:3:15: bad.csv, line 3"):
        project.preview_rows("bad")
    with pytest.raises(QueryFailed, match=r"query:1:15: bad.csv, line 3"):
        project.query(read.format("csv", "bad"))


def test_a_test_that_only_warns_publishes_the_rows_whatever_is_wrong_with_it(make: Make) -> None:
    tests = (
        "relationships id -> ducklake://main/nowhere.id severity=warn",
        "relationships id -> ducklake://main/s.nope severity=warn",
        "not_null nope severity=warn",
        "expression (1 / (id - 1)) > 0 severity=warn",
        "not_null id",
    )
    lines = "".join(f"-- data_test {test}\n" for test in tests)
    scripts = {
        "models/s": "-- materialize ducklake://main/s\nSELECT 1 AS id",
        "models/t": f"{lines}-- materialize ducklake://main/t\nSELECT 1 AS id",
    }
    project = make(scripts)
    published = step(project.run(), "t")
    assert (published.state, published.rows) == ("done", 1)
    assert [check.outcome for check in published.checks] == [*["warned"] * 4, "passed"]
    assert "nowhere" in str(published.checks[0].samples)
