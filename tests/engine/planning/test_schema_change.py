"""A SELECT whose columns differ from a table that keeps rows of other runs."""

from __future__ import annotations

import pytest

from penstock.engine.planning.schema_change import Difference, Fit, difference, fit_columns
from penstock.errors import SchemaMismatch
from penstock.model.script.declaration import SchemaChange
from penstock.project.project import Project
from tests import duck
from tests.engine.conftest import Make
from tests.engine.toy import rows

DAILY = """
    -- pipeline
    -- partitioned daily
    -- materialize ducklake://main/t {}
    SELECT {}
"""


def test_names_compare_without_case_and_the_managed_column_is_no_difference() -> None:
    columns = difference(["A", "new"], ["a", "old", "_wm_partition"], ["_wm_partition"])
    assert columns == Difference(("new",), ("old",))
    assert str(columns) == "new is new and old is missing"
    assert not difference(["A"], ["a"])


def test_fail_refuses_any_difference() -> None:
    with pytest.raises(SchemaMismatch, match="old is missing"):
        fit_columns(Difference((), ("old",)), SchemaChange("error", "error"), "main.t")


def test_removing_a_column_is_an_error_by_default() -> None:
    with pytest.raises(SchemaMismatch, match="old is missing") as caught:
        fit_columns(Difference((), ("old",)), SchemaChange(), "main.t")
    assert "on_schema_change=sync" in str(caught.value.hint)


def test_ignore_leaves_new_columns_out() -> None:
    assert fit_columns(
        Difference(("new",), ()), SchemaChange("ignore", "ignore"), "main.t"
    ).leave_out == ("new",)


def test_warn_says_what_is_missing() -> None:
    fit = fit_columns(Difference((), ("old",)), SchemaChange("warn", "keep"), "main.t")
    assert fit.notices == ("main.t: old is missing in the SELECT: NULL from now on",)


@pytest.mark.parametrize(
    ("change", "fit"),
    [
        (SchemaChange("allow", "allow"), Fit((), ("old",), True)),
        (SchemaChange("allow", "ignore"), Fit((), (), True)),
        (SchemaChange("ignore", "ignore"), Fit(("new",), (), False)),
        (SchemaChange("ignore", "allow"), Fit(("new",), ("old",), True)),
        (
            SchemaChange("warn", "warn"),
            Fit(
                drop=("old",),
                evolves=True,
                notices=(
                    "main.t: new is added; NULL in the rows of earlier runs",
                    "main.t: old is dropped: the SELECT lacks it",
                ),
            ),
        ),
    ],
)
def test_new_and_missing_columns_have_a_rule_each(change: SchemaChange, fit: Fit) -> None:
    assert fit_columns(Difference(("new",), ("old",)), change, "main.t") == fit


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (SchemaChange("error", "allow"), "new is new"),
        (SchemaChange("allow", "error"), "old is missing"),
    ],
)
def test_an_error_names_the_columns_of_its_rule_only(change: SchemaChange, refused: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        fit_columns(Difference(("new",), ("old",)), change, "main.t")
    assert caught.value.message == f"the SELECT's columns are not those of main.t: {refused}"


MERGED = """
    -- pipeline
    -- materialize ducklake://main/t key=a on_schema_change=warn
    SELECT {}
"""


@pytest.mark.spark
def test_a_merge_keeps_the_values_of_columns_that_its_select_lacks(make: Make) -> None:
    make({"models/t": MERGED.format("1 AS a, 2 AS b, 3 AS c")}).run()
    project = make({"models/t": MERGED.format("* FROM VALUES (1, 5), (2, 6) v(a, c)")})
    result = project.run()
    assert rows(project, "SELECT a, b, c FROM t ORDER BY a") == [(1, 2, 5), (2, None, 6)]
    (said,) = (str(notice) for notice in result.notices)
    assert "b is missing in the SELECT: NULL in new rows; rows that are updated keep" in said


@pytest.mark.spark
def test_ignore_on_a_partitioned_table(make: Make) -> None:
    make({"models/t": DAILY.format("", "1 AS a")}).run(partition="2026-01-01")
    project = make({"models/t": DAILY.format("on_schema_change=ignore", "2 AS a, 3 AS b")})
    assert project.run(partition="2026-01-02").state == "done"
    assert rows(project, "SELECT * FROM t ORDER BY a") == [(1, "2026-01-01"), (2, "2026-01-02")]


@pytest.mark.spark
def test_a_missing_column_is_null_and_said(make: Make) -> None:
    events: list[object] = []
    make({"models/t": DAILY.format("", "1 AS a, 2 AS b")}).run(partition="2026-01-01")
    refused = make({"models/t": DAILY.format("", "3 AS a")})
    assert "b is missing" in str(refused.plan(partition="2026-01-02").steps[0].fails)
    project = make({"models/t": DAILY.format("on_schema_change=warn", "3 AS a")})
    project.run(partition="2026-01-02", on_event=events.append)
    assert any("b is missing" in str(event) for event in events)
    assert rows(project, "SELECT a, b FROM t ORDER BY a") == [(1, 2), (3, None)]


def _by_duckdb(project: Project, query: str) -> list[tuple[object, ...]]:
    lake = project.settings.lakes["main"]
    return sorted(duck.rows(lake.catalog, query))


@pytest.mark.spark
def test_new_columns_are_added_and_said_and_wider_types_taken(make: Make) -> None:
    events: list[object] = []
    make({"models/t": DAILY.format("", "1 AS a")}).run(partition="2026-01-01")
    project = make({"models/t": DAILY.format("", "3000000000L AS a, 'x' AS b")})
    assert project.run(partition="2026-01-02", on_event=events.append).state == "done"
    assert any("b is added" in str(event) for event in events)
    assert rows(project, "SELECT a, b FROM t ORDER BY a") == [(1, None), (3000000000, "x")]
    assert _by_duckdb(project, "SELECT a, b FROM lk.t") == [(1, None), (3000000000, "x")]
    (table,) = (table for table in project.lake("main").tables() if table.name == "t")
    before = project.lake("main").table("t").to_df(version=table.begin_snapshot)
    assert before.columns == ["a", "_wm_partition"]


@pytest.mark.spark
def test_sync_drops_what_the_select_lacks(make: Make) -> None:
    make({"models/t": DAILY.format("key=a", "1 AS a, 2 AS b")}).run(partition="2026-01-01")
    script = DAILY.format("key=a on_schema_change=sync", "3 AS a, 4 AS c")
    project = make({"models/t": script})
    assert project.run(partition="2026-01-02").state == "done"
    expected = [(1, "2026-01-01", None), (3, "2026-01-02", 4)]
    assert rows(project, "SELECT * FROM t ORDER BY a") == expected
    assert _by_duckdb(project, "SELECT * FROM lk.t") == expected


@pytest.mark.spark
def test_a_type_that_would_lose_something_is_refused_as_it_was(make: Make) -> None:
    make({"models/t": DAILY.format("", "1 AS a")}).run(partition="2026-01-01")
    project = make({"models/t": DAILY.format("", "'x' AS a")})
    result = project.run(partition="2026-01-02")
    assert "'a' is int32 and the rows have varchar" in (result.steps[0].reason or "")
    assert rows(project, "SELECT a FROM t") == [(1,)]


@pytest.mark.spark
@pytest.mark.parametrize("policy", ["ignore", "fail"])
def test_wider_types_fail_where_the_table_may_not_change(make: Make, policy: str) -> None:
    make({"models/t": DAILY.format("", "1 AS a")}).run(partition="2026-01-01")
    script = DAILY.format(f"on_schema_change={policy}", "3000000000L AS a")
    result = make({"models/t": script}).run(partition="2026-01-02")
    assert "'a' is int32 and the rows have int64" in (result.steps[0].reason or "")


@pytest.mark.spark
def test_what_a_model_does_not_allow_is_placed_at_its_option(make: Make) -> None:
    kind = "INCREMENTAL_UNMANAGED (on_additive_change error)"
    make({"models/t": f"MODEL (name t, kind {kind});\nSELECT 1 AS a"}).run()
    text = f"MODEL (name t, kind {kind});\nSELECT 1 AS a, 2 AS b"
    error = make({"models/t": text}).run().steps[0].error
    assert isinstance(error, SchemaMismatch)
    assert error.location is not None
    assert error.location.column == text.index("on_additive_change") + 1


NESTED = """
    -- pipeline
    -- partitioned daily
    -- materialize ducklake://main/{0} {1}
    SELECT 1 AS a, {2} AS addr, array({2}) AS past
"""
POLICIES = {"sync": "sync", "failing": "fail"}


@pytest.mark.spark
def test_fields_of_structs_follow_the_rules_of_columns(make: Make) -> None:
    loads = {
        "2026-01-01": "named_struct('street', 'x', 'zip', 1)",
        "2026-01-02": "named_struct('zip', 2L, 'city', 7)",
    }
    for day, struct in loads.items():
        options = {name: f"on_schema_change={policy}" for name, policy in POLICIES.items()}
        options["merged"] = "key=a on_schema_change=sync"
        scripts = {
            f"models/{name}": NESTED.format(name, said, struct) for name, said in options.items()
        }
        same = struct.replace("2L", "2")  # as it keeps the types too
        scripts["models/ignoring"] = NESTED.format("ignoring", "on_schema_change=ignore", same)
        project = make(scripts)
        made = {each.name: each for each in project.run(day).steps}
    assert "addr.city, past.element.city are new and addr.street" in str(made["failing"].error)
    for name in ("sync", "merged"):
        assert made[name].state == "done", made[name].error
        query = f"SELECT to_json(addr), to_json(past) FROM {name} ORDER BY addr.zip"
        first, second = '{"zip":1}', '{"zip":2,"city":7}'
        assert rows(project, query) == [(first, f"[{first}]"), (second, f"[{second}]")]
    assert made["ignoring"].state == "done", made["ignoring"].error
    query = "SELECT to_json(addr), to_json(past) FROM ignoring ORDER BY addr.zip"
    first, second = '{"street":"x","zip":1}', '{"zip":2}'
    assert rows(project, query) == [(first, f"[{first}]"), (second, f"[{second}]")]
