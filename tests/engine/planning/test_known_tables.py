"""What a plan says of tables is what a run does to them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from penstock.engine.planning.plan import Plan
from penstock.engine.planning.stages import AlterColumns
from penstock.lakes.catalog.definitions.stored_sql import load_views
from penstock.project.project import Project
from tests.engine.conftest import Make

HEAD = "-- pipeline\n-- materialize ducklake://main/t {}\nSELECT {} FROM range(2)"
REPLACE, ONE = HEAD.format("", "id"), "id, 1 AS one"
SYNC, FAIL, KEYED = "key=id on_schema_change=sync", "key=id on_schema_change=fail", "key=id"
VIEW = "MODEL (name t);\nSELECT {} AS id"
DAILY = REPLACE.replace("-- mat", "-- partitioned daily\n-- mat")
HISTORY = (
    "MODEL (name t, kind SCD_TYPE_2_BY_COLUMN "
    "(unique_key id, columns (id), disable_restatement false));\n"
    "SELECT id FROM range(2)"
)
REFRESH = {"select": "t", "full_refresh": True}
#: one after the other: the script, how it is run, and the stages of its table
WALK: tuple[tuple[str, dict[str, object], tuple[str, ...]], ...] = (
    (VIEW.format(1), {}, ()),
    (VIEW.format(1), {}, ()),
    (VIEW.format(2), {}, ("replace_view",)),
    (REPLACE, {}, ("drop_view",)),
    (REPLACE.replace("2", "3"), {}, ()),
    (VIEW.format(1), {}, ("refuse",)),
    (VIEW.format(1), REFRESH, ("drop_table",)),
    (REPLACE, {}, ("drop_view",)),
    (HISTORY, {}, ("refuse",)),
    (HEAD.format(SYNC, "id"), {}, ()),
    (HEAD.format(SYNC, ONE), {}, ("alter_columns",)),
    (HEAD.format(FAIL, "id"), {}, ("refuse",)),
    (HEAD.format(KEYED, "id"), {}, ("refuse",)),
    (HEAD.format(SYNC, "id"), {}, ("alter_columns",)),
    (DAILY, {"partition": "2026-01-01"}, ("refuse",)),
    (DAILY, {"partition": "2026-01-01", **REFRESH}, ("drop_table",)),
    (HISTORY, REFRESH, ("drop_table",)),
    (HISTORY.replace("SELECT id", f"SELECT {ONE}"), {}, ("alter_columns",)),
    (HISTORY.replace("(id), ", "(id), on_destructive_change error, "), {}, ("refuse",)),
)


@dataclass(frozen=True)
class Name:
    """What has a name: its kind, the table or view itself, and its columns."""

    kind: str | None = None
    id: int = 0
    columns: frozenset[str] = frozenset()

    @classmethod
    def of(cls, project: Project) -> Name:
        catalog = project.lake("main").catalog
        table = catalog.find_table("main", "t", catalog.latest().id)
        if table is not None:
            return cls("table", table.id, frozenset(table.schema.names))
        with catalog.reading() as connection:
            views = load_views(connection, catalog.latest().id, ["t"])
        return cls("view", views[0].begin_snapshot) if views else cls()


def happened(before: Name, after: Name, state: str) -> tuple[str, ...]:
    if state == "failed":
        assert before == after
        return ("refuse",)
    if before.kind is not None and before.kind != after.kind:
        return (f"drop_{before.kind}",)
    if before.kind is not None and before.id != after.id:
        return ("drop_table" if after.kind == "table" else "replace_view",)
    is_altered = before.kind is not None and before.columns != after.columns
    return ("alter_columns",) if is_altered else ()


def staged(plan: Plan) -> tuple[str, ...]:
    return tuple(stage.name for stage in plan.steps[0].stages if stage.name != "keep_rows")


@pytest.mark.spark
def test_a_run_does_what_its_plan_says(make: Make) -> None:
    for number, (script, asked, expected) in enumerate(WALK):
        project = make({"models/t": script})
        said, before = staged(project.plan(**asked)), Name.of(project)  # type: ignore[arg-type]
        result = project.run(**asked)  # type: ignore[arg-type]
        did = happened(before, Name.of(project), result.state)
        assert (said, did) == (expected, expected), f"step {number}: {result.steps[0].reason}"


@pytest.mark.spark
def test_a_dropped_table_is_made_again(make: Make) -> None:
    project = make({"models/t": DAILY})
    assert project.run("2026-01-01").state == "done"
    project.drop("t")
    (step,) = project.plan("t", "2026-01-01", full_refresh=True).steps
    assert (step.stages, step.note) == ((), None)


@pytest.mark.spark
def test_a_query_of_all_columns_follows_its_input(make: Make) -> None:
    reader = "-- pipeline\n-- materialize ducklake://main/t key=id on_schema_change=sync\n"
    scripts = {"models/raw": "MODEL (name raw, kind FULL);\nSELECT 1 AS id"}
    scripts["models/t"] = reader + "SELECT * FROM raw"
    make(scripts).run()
    project = make({**scripts, "models/raw": scripts["models/raw"] + ", 2 AS more"})
    (step,) = project.plan("t").steps
    assert step.stages == ()
    assert [each.stages for each in project.plan().steps] == [(), (AlterColumns(("more",)),)]
    project.run()
    assert Name.of(project).columns == {"id", "more"}
