"""docs/json.md tells the truth: what each command prints with ``--json`` has the shape shown there.

No Spark: the lake and its state are written here, and the events of a run are made.

Tests ``project/reader.py`` and ``project/states.py`` (everything that is asked of a
project).
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from penstock.cli.main import COMMANDS, main
from penstock.cli.output import json_line
from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.planning.restate import Restated
from penstock.engine.results import CheckResult, ColumnInfo, RunResult, StepResult
from penstock.engine.state.store import State
from penstock.engine.verifying.unit_tests import UnitTestResult
from penstock.errors import QueryFailed
from penstock.events import SCHEMA_VERSION, Event, Notice
from penstock.project.project import Project
from penstock.rendering.wire import plain, to_json, versioned
from penstock.scheduler.simulation import PlayedRow
from penstock.scheduler.values import Pause
from penstock.server.backfill_store import Backfill
from penstock.server.opening import open_agenda
from penstock.server.tokens import TokenStore
from tests.engine.state.builders import publication, run_record, step_record
from tests.engine.toy import write_project
from tests.server import agenda

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
SCRIPTS = {
    "models/orders": """
-- pipeline
-- materialize ducklake://main/orders key=order_id
-- data_test not_null customer
SELECT order_id, customer FROM raw_orders
""",
    "models/days": """
-- pipeline
-- partitioned daily start="2026-11-01"
-- materialize ducklake://main/days
SELECT '{partition}' AS day
""",
}
MADE = datetime(2026, 11, 3, 2, 30, tzinfo=UTC)  # when the first of the slices was over
COLUMNS = (ColumnInfo("order_id", "int32"), ColumnInfo("customer", "varchar"))


def make_shop(directory: Path) -> Path:
    """A project whose models have run, as far as its lake and its state say."""
    root = write_project(directory / "shop", SCRIPTS)
    with Project.load(root) as project:
        lake = project.lake("main")
        lake.sql("CREATE TABLE raw_orders (order_id INT, customer VARCHAR)")
        lake.sql("CREATE TABLE orders (order_id INT, customer VARCHAR)")
        lake.sql("CREATE TABLE days (day VARCHAR, _wm_partition VARCHAR)")
        lake.sql("INSERT INTO orders VALUES (1, 'ada')")
        lake.sql("INSERT INTO days VALUES ('2026-11-01', '2026-11-01')")
        state = State(lake.catalog)
        days: dict[str, Any] = {"from_": "2026-11-01", "to": "2026-11-01", "fire_time": MADE}
        plan = RecordedPlan.of(project.plan("days", **days)).to_json()
        state.begin_run(run_record(plan=plan, user="ann"))
        failed = CheckResult("not_null customer", False, 1, ({"order_id": 2},), "warn", "SELECT 1")
        for name, slice_, checks in (("orders", "", (failed,)), ("days", "2026-11-01", ())):
            model = project.model(name)
            state.begin_step(step_record(step=name, target=f"main.{name}", slice=slice_))
            made = publication(
                step=name,
                target=f"main.{name}",
                slice=slice_,
                strategy=model.strategy.name,
                definition_hash=model.definition_hash,
                columns=COLUMNS,
                checks=checks,
                rows=1,
                at=MADE,
            )
            state.confirm(made, lake.catalog.latest().id)
        state.end_run("r1", "done", 0)
    return root


def fill_agenda(root: Path) -> None:
    """What `penstock serve` and people have recorded: of each kind one."""
    with Project.load(root) as project:
        store = open_agenda(project.context)
        store.pause(Pause("orders", MADE, MADE, "repairs", "ann"))
        store.add_backfill(Backfill("b1", "days", "2026-11-01", "2026-11-02", MADE, user="ann"))
        sent = agenda.event("message:signup/k1", payload={"tenant": "acme"})
        made = agenda.decide(sent, agenda.firing("f1", backfill="b1"))
        waits = agenda.firing("f2", key="acme", backfill="b1")
        assert store.record([sent], replace(made, firings=(*made.firings, waits)), fence=None)
        assert store.claim_firings(["f1"])
        TokenStore(store.catalog).create("signup", "ann")


def blocks(page: str) -> list[tuple[str, str]]:
    """The command above a document of JSON, or the section that it stands in; and the document."""
    found: list[tuple[str, str]] = []
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        title, _, rest = section.partition("\n")
        pieces = re.findall(r"```(sh|json)\n(.*?)\n```", rest, re.S)
        for number, (kind, text) in enumerate(pieces):
            before = pieces[number - 1] if number else ("", "")
            if kind == "json":
                found.append((before[1] if before[0] == "sh" else title, text))
    return found


BLOCKS = blocks(PAGE.read_text())


def shape(value: Any) -> Any:
    """What a document is made of: names, and the kinds of values; of a list those of the first."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return type(value).__name__


def fits(shown: Any, real: Any) -> bool:
    """Whether two shapes are the same, but for what is null, an empty list or names of data."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return shown.keys() == real.keys() and all(fits(shown[k], real[k]) for k in shown)
    if isinstance(shown, list) and isinstance(real, list):
        return not (shown and real) or fits(shown[0], real[0])
    return (
        "NoneType" in {str(shown), str(real)} or {shown, real} <= {"int", "float"} or shown == real
    )


def test_each_command_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_shop(tmp_path)
    fill_agenda(root)
    monkeypatch.chdir(root)
    commands = [(line, text) for line, text in BLOCKS if "--json" in line]
    assert len(commands) >= 18
    bad, text_of_bad = Path("models/bad.sql"), SCRIPTS["models/orders"].replace("key=", "kee=")
    for line, text in commands:
        if line.startswith("penstock check"):
            bad.write_text(text_of_bad.strip())
        printed = CliRunner().invoke(main, shlex.split(line)[1:]).stdout
        bad.unlink(missing_ok=True)
        shown, real = shape(json.loads(text)), shape(json.loads(printed))
        assert fits(shown, real), f"{line}\n{shown}\n{real}"


def test_the_events_and_the_result_of_a_run_are_as_the_page_shows() -> None:
    text = dict(BLOCKS)["penstock run"]
    *events, result = [json.loads(line) for line in text.splitlines()]
    by_name = {event.__name__: event for event in get_args(Event)}
    for event in events:
        assert event.pop("schema_version") == SCHEMA_VERSION
        made = json.loads(json_line(by_name[event.pop("event")](**event)) or "")
        assert made.keys() - {"schema_version", "event"} == event.keys()
    check = CheckResult("c", True, 0)
    step = StepResult("a", "main.a", "merge", None, "done", checks=(check,))
    done = RunResult("r", "done", None, (step,), 1.0, (Notice("x"),))
    real = versioned({"result": done.document})
    assert fits(shape(result), shape(json.loads(to_json(real))))
    failed = replace(step, error=QueryFailed("no"))
    error = RunResult("r", "failed", None, (failed,), 1.0).document
    assert list(error["steps"][0]["error"]) == ["type", "message", "hint", "location", "data"]


def test_what_needs_spark_has_the_fields_of_its_values() -> None:
    restated = json.loads(dict(BLOCKS)["penstock restate"])
    made = versioned({"models": [Restated("a", "main.a", None, 1)]})
    assert fits(shape(restated), shape(plain(made)))
    (test,) = json.loads(dict(BLOCKS)["penstock test"])["tests"]
    assert list(test) == [field.name for field in fields(UnitTestResult)]


def test_a_simulation_has_the_fields_of_its_rows() -> None:
    text = next(text for line, text in BLOCKS if line.startswith("penstock serve"))
    (row,) = json.loads(text)["firings"]
    assert list(row) == [field.name for field in fields(PlayedRow)]


def test_the_page_has_every_command_and_every_event() -> None:
    page = PAGE.read_text()
    assert set(COMMANDS) - {"init"} == set(re.findall(r"^## penstock (\S+)", page, re.M))
    assert [name for name in get_args(Event) if f"`{name.__name__}`" not in page] == []
