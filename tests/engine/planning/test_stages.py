"""What becomes of a table before its model writes to it. No Spark, no catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.engine.planning.stages import (
    EMPTY,
    FULL_REFRESH,
    AlterColumns,
    DropTable,
    DropView,
    KeepRows,
    Refuse,
    ReplaceView,
    Stage,
    TableFacts,
    as_dict,
    column_stage,
    read_stage,
    table_stages,
)
from penstock.engine.state.records import SliceRecord
from penstock.model.definition.model import Model
from penstock.project.project import Project
from tests.engine.state.builders import publication
from tests.engine.toy import write_project

WHOLE = "-- pipeline\n-- materialize ducklake://main/t {}\nSELECT 1 AS id"
DAILY = WHOLE.format("").replace("-- mat", "-- partitioned daily\n-- mat")
MANUAL = "-- pipeline\n-- materialize manual ducklake://main/t\nCREATE TABLE t AS SELECT 1 AS id"
VIEW = "MODEL (name t);\nSELECT 1 AS id"
HISTORY = "MODEL (name t, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (id)));\nSELECT 1 AS id"
REPLACE, APPEND, MERGE = (WHOLE.format(each) for each in ("", "append", "key=id"))


def model_of(folder: Path, script: str) -> Model:
    return Project.load(write_project(folder / "p", {"models/t": script})).model("t")


def record(strategy: str = "replace", slice_: str = "", slicing: str = "") -> SliceRecord:
    made = publication(target="main.t", slice=slice_, strategy=strategy, slicing=slicing, keys=())
    return made.record(1, 1)


def facts(kind: str, known: Sequence[SliceRecord] = (), rows: int = 3) -> TableFacts:
    own = ("id",) if all(each.slice == "" for each in known) else ("id", "_wm_partition")
    return TableFacts(
        kind, own, count=lambda _: rows, records=lambda _: known, is_recorded=lambda _: bool(known)
    )


def decided(
    folder: Path, script: str, known: TableFacts, rebuild: str | None = None
) -> tuple[Stage, ...]:
    own = next((each for each in known.records(None) if each.slice == ""), None)
    return table_stages(model_of(folder, script), known, own, rebuild=rebuild)


DAY = record(slice_="2026-01-01", slicing="daily")
NAMED = "3 rows"
DAYS = "1 slice of `partitioned daily` (2026-01-01)"


@pytest.mark.parametrize(
    ("script", "known", "rebuild", "expected"),
    [
        (REPLACE, TableFacts(), None, ()),
        (REPLACE, TableFacts(), FULL_REFRESH, ()),
        (REPLACE, facts("table", [record()]), None, ()),
        (REPLACE, facts("table", [record()]), FULL_REFRESH, (DropTable(FULL_REFRESH, NAMED),)),
        (REPLACE, facts("table"), FULL_REFRESH, (DropTable(FULL_REFRESH),)),
        (DAILY, facts("table", [DAY]), FULL_REFRESH, (DropTable(FULL_REFRESH, DAYS),)),
        (REPLACE, facts("view", [record("view")]), None, (DropView(),)),
        (REPLACE, facts("view"), FULL_REFRESH, (DropView(),)),
        (REPLACE, facts("table", [DAY], rows=0), None, (DropTable(EMPTY),)),
        (MANUAL, facts("table", [DAY]), None, ()),
        (MANUAL, facts("table", [DAY]), FULL_REFRESH, (DropTable(FULL_REFRESH, DAYS),)),
        (VIEW, facts("view", [record("view")]), None, (ReplaceView(),)),
        (VIEW, facts("view"), FULL_REFRESH, (ReplaceView(),)),
        (VIEW, facts("table", [record()]), FULL_REFRESH, (DropTable(FULL_REFRESH, NAMED),)),
        (
            APPEND,
            facts("table", [record()]),
            None,
            (KeepRows("the SELECT's rows are added to 3 rows made by replace"),),
        ),
        (MERGE, facts("table", [record()]), None, ()),
    ],
)
def test_what_becomes_of_a_table(
    tmp_path: Path,
    script: str,
    known: TableFacts,
    rebuild: str | None,
    expected: tuple[Stage, ...],
) -> None:
    assert decided(tmp_path, script, known, rebuild) == expected


@pytest.mark.parametrize(
    ("script", "known", "said"),
    [
        (REPLACE, facts("table"), "holds 3 rows that no run has written"),
        (REPLACE, facts("table", [DAY]), f"holds {DAYS}, and the model is now not partitioned"),
        (DAILY, facts("table", [record()]), "holds 3 rows, and the model is now `partitioned"),
        (REPLACE, facts("table", [record("append")]), "replace would leave only what the SELECT"),
        (REPLACE, facts("view"), "is a view, and t makes a table of that name"),
        (VIEW, facts("view"), "is a view that no run made"),
        (VIEW, facts("table", [record()]), "is a table, and t makes a view of that name"),
        (HISTORY, facts("table", [record()]), "is not a history: it has no column valid_from"),
        (MERGE.replace("key=id", "key=k"), facts("table", [record()]), "has no column k, so none"),
    ],
)
def test_what_would_lose_rows_is_refused(
    tmp_path: Path, script: str, known: TableFacts, said: str
) -> None:
    (stage,) = decided(tmp_path, script, known)
    assert isinstance(stage, Refuse)
    assert said in stage.why
    assert "full-refresh" in (stage.hint or "")
    assert stage.error(model_of(tmp_path, script)).location is not None


def test_a_view_as_it_was_made_stays(tmp_path: Path) -> None:
    model = model_of(tmp_path, VIEW)
    known = replace(record("view"), definition_hash=model.definition_hash)
    assert table_stages(model, facts("view", [known]), known) == ()


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("on_schema_change=sync", AlterColumns(("more",), ("old",))),
        ("on_schema_change=ignore", None),
    ],
)
def test_columns_follow_the_models_rule(
    tmp_path: Path, option: str, expected: Stage | None
) -> None:
    model = model_of(tmp_path, WHOLE.format(f"key=id {option}"))
    known = replace(facts("table"), columns=("id", "old"))
    assert column_stage(model, ["ID", "more"], known) == expected


def test_columns_that_the_model_does_not_allow_are_refused(tmp_path: Path) -> None:
    model = model_of(tmp_path, WHOLE.format("key=id on_schema_change=fail"))
    stage = column_stage(model, ["id", "more"], facts("table"))
    assert isinstance(stage, Refuse)
    assert "more is new" in stage.why


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (DropTable(FULL_REFRESH, DAYS), f"drops the table (full refresh): {DAYS}"),
        (DropTable(EMPTY), f"drops the table ({EMPTY})"),
        (DropView(), "drops the view of that name"),
        (ReplaceView(), "replaces the view"),
        (AlterColumns(("a", "b"), ("c",)), "adds a, b and drops c"),
        (AlterColumns(dropped=("c",)), "drops c"),
        (KeepRows("rows stay"), "rows stay"),
        (Refuse("no", "hint", "kind", {"slices": ["a"]}), "no"),
    ],
)
def test_stages_are_plain_as_json_and_as_text(stage: Stage, text: str) -> None:
    assert read_stage(json.loads(json.dumps(as_dict(stage)))) == stage
    assert str(stage) == text
