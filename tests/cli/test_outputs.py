"""Commands print what the files in ``outputs`` hold: tables, Markdown and JSON, byte for byte.

``PENSTOCK_RECORD_OUTPUTS=1`` writes the files. No Spark: `make_shop` writes the lake and its state.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.cli.run_ending import print_ending
from penstock.engine.results import CheckResult, RunResult, StaleSlices, StepResult
from penstock.errors import Diagnostic, Location, ModelError, QueryFailed
from penstock.events import Notice
from tests.cli.test_json import make_shop

OUTPUTS = Path(__file__).with_name("outputs")
COMMANDS = {
    "status": "status",
    "status-json": "status --json",
    "status-markdown": "status --markdown",
    "status-model": "status days",
    "status-model-json": "status days --json",
    "status-model-markdown": "status orders --markdown",
    "status-range": "status --from 2026-11-01 --to 2026-11-04",
    "status-grid": "status days --grid --from 2026-11-01 --to 2026-11-04",
    "status-failed": "status --failed",
    "status-fail-on": "status --fail-on missing --from 2026-11-01 --to 2026-11-04",
    "show": "show orders",
    "show-json": "show orders --json",
    "show-days": "show days",
    "show-tests": "show orders --tests",
    "show-tests-json": "show orders --tests --json",
    "show-schema-history": "show orders --schema-history",
    "show-schema-history-json": "show orders --schema-history --json",
    "runs": "runs",
    "runs-json": "runs --json",
    "runs-environments": "runs --all-environments",
    "runs-show": "runs show r1",
    "runs-show-json": "runs show r1 --json",
    "why": "why days 2026-11-01",
    "why-json": "why days 2026-11-01 --json",
    "snapshots": "snapshots",
    "snapshots-json": "snapshots --json",
    "environments": "environments",
    "environments-json": "environments --json",
    "plan": "plan --from 2026-11-01 --to 2026-11-04",
    "plan-json": "plan --from 2026-11-01 --to 2026-11-04 --json",
    "plan-markdown": "plan --from 2026-11-01 --to 2026-11-04 --markdown",
    "plan-explain": "plan --from 2026-11-01 --to 2026-11-04 --explain",
    "plan-explain-json": "plan --from 2026-11-01 --to 2026-11-04 --explain --json",
    "plan-refresh-json": "plan --select days --partition 2026-11-02 --full-refresh --json",
    "restate": "restate days --from 2026-11-01 --to 2026-11-01 --dry-run",
    "restate-json": "restate days --from 2026-11-01 --to 2026-11-01 --dry-run --json",
    "lineage": "lineage orders",
    "lineage-json": "lineage orders --json",
    "render": "render days --partition 2026-11-02",
    "render-json": "render days --partition 2026-11-02 --json",
    "check-json": "check --json",
    "sql": 'sql "SELECT * FROM orders"',
    "sql-json": 'sql "SELECT * FROM orders" --json',
    "sql-csv": 'sql "SELECT * FROM orders" --format csv',
    "sql-markdown": 'sql "SELECT * FROM orders" --format markdown',
    "maintain": "maintain expire-snapshots --older-than '2100-01-01' --dry-run",
    "maintain-json": "maintain expire-snapshots --older-than '2100-01-01' --dry-run --json",
    "error-json": "status orers --json",
    "usage-error-json": "status --frm x --json",
    "bad-value-json": "snapshots --limit many --json",
}
# What differs from one process to the next: times, durations, processes and places.
_VARYING = (
    (re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d\d:\d\d)?"), "TIME"),
    (re.compile(r"\b[\d,.]+ min \d\d s\b|\b[\d,.]+ s\b"), "DURATION"),
    (re.compile(r'(?<="seconds": )[\d.]+'), "DURATION"),
    (re.compile(r'(?<="pid": )\d+|(?<=, pid )\d+'), "PID"),
    (re.compile(rf"\b{re.escape(platform.node())}\b"), "HOST"),
)
# Their columns are as wide as what differs.
_OF_OTHER_WIDTHS = frozenset({"runs", "runs-environments", "runs-show", "maintain", "snapshots"})


def normalized(text: str, name: str, root: Path) -> str:
    """Replace what differs from one process to the next."""
    text = text.replace(str(root), "ROOT").replace(str(Path.home()), "HOME")
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return re.sub(" {2,}", "  ", text) if name in _OF_OTHER_WIDTHS else text


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shop(tmp_path_factory.mktemp("outputs"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_its_file_holds(
    name: str, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    ended = CliRunner().invoke(main, shlex.split(COMMANDS[name]), prog_name="penstock")
    text = normalized(f"exit code {ended.exit_code}\n{ended.output}", name, shop)
    require_recorded(name, text)


def require_recorded(name: str, text: str) -> None:
    path = OUTPUTS / f"{name}.txt"
    if os.environ.get("PENSTOCK_RECORD_OUTPUTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_result_of_a_run_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    check = CheckResult("not_null id", False, 2, ({"id": None, "at": date(2026, 11, 1)},))
    where = Location("/srv/shop/models/a.sql", 3, 4)
    refused = QueryFailed("no \u202e column", hint="write id", location=where, data={"n": {1}})
    unread = ModelError([Diagnostic("error", "no key", where, "name one", "key")])
    steps = (
        StepResult("a", "main.a", "merge", "2026-11-01", "failed", 1.5, None, None, (check,)),
        StepResult("b", "main.b", "replace", None, "failed", reason="no", error=refused),
        StepResult("c", "main.c", "replace", None, "failed", error=unread),
        StepResult("d", "main.d", "replace", None, "done", 2.0, 7, 3),
    )
    stale = (StaleSlices("d", 2, "penstock run --changed"),)
    result = RunResult("r", "failed", None, steps, 3.25, (Notice("late", "d"),), stale)
    print_ending(result, {}, as_json=True)
    require_recorded("run-result", capsys.readouterr().out)
