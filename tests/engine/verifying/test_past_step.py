"""What a step of a past run was made from, and why it is refused. No Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.planning.slices import RunRequest
from penstock.engine.state.records import InputRead, ReadRecord
from penstock.engine.verifying import past_step
from penstock.engine.verifying.past_step import CannotReproduce
from penstock.model.definition.model import Model
from penstock.model.project.loader import Loaded, load_models
from penstock.uuid7 import new_uuid7, uuid7_time
from tests.engine.state.builders import step_record
from tests.engine.toy import write_project

SCRIPTS = {
    "models/a": "-- pipeline\n-- materialize ducklake://main/a\nSELECT id FROM src",
    "models/days": "-- pipeline\n-- partitioned daily start=2026-01-01\n"
    "-- materialize ducklake://main/days\nSELECT '{partition}' AS day",
    "models/now": "-- pipeline\n-- materialize ducklake://main/now\nSELECT now() AS at FROM src",
    "models/rand": "-- pipeline\n-- materialize ducklake://main/rand\nSELECT rand() AS r FROM src",
    "models/view": "MODEL (name seen, kind VIEW);\nSELECT id FROM src",
    "models/hand": "-- pipeline\n-- materialize manual ducklake://main/hand\n"
    "CREATE TABLE hand(i INT)",
    "models/code.py": "# pipeline\n# materialize ducklake://main/code\n"
    "def main():\n    return []\n",
    "models/inner": "MODEL (name inner_, kind EMBEDDED);\nSELECT id FROM src",
    "models/outer": "MODEL (name outer_, kind FULL);\nSELECT id + 1 AS id FROM inner_",
}


def loaded(root: Path) -> Loaded:
    return load_models(root, lakes=("main",))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("past") / "shop", SCRIPTS)


def named(of: Loaded, name: str) -> Model:
    return next(model for model in of.models if model.name == name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("now", "now differs from run to run"),
        ("rand", "rand differs from run to run"),
        ("view", "view makes a view"),
        ("hand", "manual makes a table that the script's own statements write"),
        ("code", "declares no table that it reads"),
    ],
)
def test_what_cannot_be_repeated_is_refused(shop: Path, name: str, why: str) -> None:
    of = loaded(shop)
    with pytest.raises(CannotReproduce, match=why):
        past_step.require_repeatable(named(of, name), of)


@pytest.mark.parametrize("name", ["a", "days", "outer"])
def test_queries_of_tables_can_be_repeated(shop: Path, name: str) -> None:
    of = loaded(shop)
    past_step.require_repeatable(named(of, name), of)


def test_a_definition_is_restored_from_its_script(shop: Path, tmp_path: Path) -> None:
    then = named(loaded(shop), "a")
    edited = {**SCRIPTS, "models/a": SCRIPTS["models/a"].replace("id", "id + 1 AS id")}
    now = loaded(write_project(tmp_path / "shop", edited))
    parts = then.definition_parts
    found = past_step.model_then(now, "a", then.definition_hash, parts)
    assert (found.query.text, found.definition_hash) == (then.query.text, then.definition_hash)
    assert named(now, "a").definition_hash != then.definition_hash


def test_a_definition_with_an_embedded_query_is_restored(shop: Path, tmp_path: Path) -> None:
    then = named(loaded(shop), "outer")
    edited = {**SCRIPTS, "models/outer": SCRIPTS["models/outer"].replace("+ 1", "+ 2")}
    now = loaded(write_project(tmp_path / "shop", edited))
    found = past_step.model_then(now, "outer", then.definition_hash, then.definition_parts)
    assert "+ 1" in found.query.text
    assert found.query.embeds


def test_an_embedded_query_that_has_changed_is_that_of_then(shop: Path, tmp_path: Path) -> None:
    then = named(loaded(shop), "outer")
    other = {**SCRIPTS, "models/inner": SCRIPTS["models/inner"].replace("id", "id * 2 AS id")}
    now = loaded(write_project(tmp_path / "shop", other))
    found = past_step.model_then(now, "outer", then.definition_hash, then.definition_parts)
    assert [each.text for each in found.query.embeds.values()] == ["SELECT id FROM src"]


MACRO = "-- macros\nCREATE MACRO twice(x) AS x * {0};\n"
CALLS = {
    **SCRIPTS,
    "models/b": "-- pipeline\n-- materialize ducklake://main/b\nSELECT twice(id) AS id FROM src",
}


@pytest.mark.parametrize("attach", ["", "ATTACH 'ducklake://main' AS dl;\n\n-- why\n"])
def test_a_macro_that_has_changed_is_that_of_then(tmp_path: Path, attach: str) -> None:
    script = CALLS["models/b"].replace("SELECT", f"{attach}SELECT")

    def project(name: str, factor: int) -> Loaded:
        root = write_project(tmp_path / name, {**CALLS, "models/b": script})
        (root / "macros").mkdir()
        (root / "macros" / "lib.sql").write_text(MACRO.format(factor))
        return loaded(root)

    then, now = named(project("then", 2), "b"), project("now", 3)
    assert named(now, "b").definition_hash != then.definition_hash
    found = past_step.model_then(now, "b", then.definition_hash, then.definition_parts)
    assert found.definition_hash == then.definition_hash
    assert "2" in found.query.text


def test_what_is_no_definition_of_then_is_refused(shop: Path, tmp_path: Path) -> None:
    of = loaded(shop)
    then = named(of, "outer")
    parts = {**then.definition_parts, "setting spark.x": "0"}
    with pytest.raises(CannotReproduce, match="also differs: setting spark"):
        past_step.model_then(of, "outer", "other", parts)
    with pytest.raises(CannotReproduce, match="that of then is not recorded"):
        past_step.model_then(of, "outer", "other", {})
    with pytest.raises(CannotReproduce, match="Python code has changed"):
        past_step.model_then(of, "code", "other", {})
    with pytest.raises(CannotReproduce, match="the model does not exist any more"):
        past_step.model_then(of, "gone", "other", {})


def test_the_read_is_the_last_before_the_step_ended() -> None:
    reads = [ReadRecord(new_uuid7(), "main.a", "r1", {"main": at}) for at in (3, 5)]
    began = uuid7_time(reads[0].read_id)
    assert began is not None
    step = step_record(finished_at=began + timedelta(seconds=1))
    assert past_step.read_of(step, reads).lakes == {"main": 5}
    later = replace(reads[1], read_id="0" * 8 + "-0000-4000-8000-" + "0" * 12)  # of no time
    assert past_step.read_of(step, [later]) is later
    with pytest.raises(CannotReproduce, match="not recorded"):
        past_step.read_of(replace(step, finished_at=began - timedelta(seconds=1)), reads[:1])
    with pytest.raises(CannotReproduce, match="not recorded"):
        past_step.read_of(step, [])


def test_slices_of_one_commit_have_their_own_files() -> None:
    own = [InputRead("file", f"in/{n}.csv", size=1, time=1) for n in (1, 2)]
    reads = [ReadRecord(str(n), "main.a", "r1", {"main": 3}, (file,)) for n, file in enumerate(own)]
    assert past_step.together_with(reads[0], reads) == reads
    assert past_step.of_these_files(reads, own[:1]) is reads[0]
    assert past_step.of_these_files(reads, []) is reads[-1]


FILE = InputRead("file", "in/a.csv", size=10, time=1, hash="x")
READ = ReadRecord("1", "main.a", "r1", {}, (FILE,))


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ([], "in/a.csv that it read is gone"),
        ([replace(FILE, size=11)], "in/a.csv has changed"),
        ([replace(FILE, time=2, hash="y")], "in/a.csv has changed"),
        ([FILE, replace(FILE, name="in/b.csv")], "in/b.csv was not there"),
    ],
)
def test_other_files_are_named(now: list[InputRead], why: str) -> None:
    with pytest.raises(CannotReproduce, match=why):
        past_step.require_same_files(READ, now)


def test_files_that_are_as_they_were_and_those_elsewhere() -> None:
    assert past_step.require_same_files(READ, [replace(FILE, time=2)]) == []
    far = replace(READ, inputs=(InputRead("file", "s3://b/a.csv"),))
    assert past_step.require_same_files(far, [InputRead("file", "s3://b/a.csv")]) == [
        "s3://b/a.csv"
    ]


def test_the_plan_says_how_it_was_defined(shop: Path) -> None:
    model = named(loaded(shop), "a")
    plan = Plan((PlannedStep(model),), RunRequest(fire_time=datetime(2026, 1, 1, tzinfo=UTC)))
    text = RecordedPlan.of(plan).to_json()
    step = step_record(step="a")
    assert past_step.planned_of(text, step)[1].definition == model.definition_hash
    with pytest.raises(CannotReproduce, match="does not have it"):
        past_step.planned_of(text, step_record(step="other"))
    with pytest.raises(CannotReproduce, match="not recorded, or pruned"):
        past_step.planned_of(None, step)


def test_slices_and_states_of_steps(shop: Path) -> None:
    of = loaded(shop)
    whole, day = step_record(slice=""), step_record(slice="2026-01-01")
    assert past_step.slice_then(whole, named(of, "a")).text == ""
    assert past_step.slice_then(day, named(of, "days")).text == "2026-01-01"
    with pytest.raises(CannotReproduce, match="its slices are others now"):
        past_step.slice_then(day, named(of, "a"))
    with pytest.raises(CannotReproduce, match=r"did not make it \(failed: no\)"):
        past_step.require_made(step_record(state="failed", reason="no\nmore"))
    past_step.require_made(step_record(state="unchanged"))
