"""Old records and logs of runs go; what says how things are stays. No Spark.

Tests ``engine/state/run_history.py``, ``cli/state.py`` and ``project/maintaining.py`` as well.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner
from sqlalchemy import Connection, func, select

from penstock.cli.main import main
from penstock.engine.results import CheckResult
from penstock.engine.running.prune import prune
from penstock.engine.state import run_history
from penstock.engine.state.run_history import Removed
from penstock.engine.state.run_log import log_of
from penstock.engine.state.tables import CHECK, RUN, SLICE, STEP
from penstock.errors import CatalogLocked
from penstock.settings.retention import Keep, Retention
from tests.engine.planning.test_reasons import Shop
from tests.engine.state.builders import START, at, publication, run_record, step_record

NOW = START + timedelta(days=10)
KEEP = Retention(records=Keep(None, 2))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Five runs: the first makes two days, the others one of these again; the last goes on."""
    shop = Shop(tmp_path)
    shop.state.end_run("r1", "done", 0)
    check = CheckResult("c", True, 0)
    for number in range(2, 7):
        run_id, began = f"r{number}", at(number)
        shop.state.begin_run(run_record(run_id, started_at=began, plan="{}"))
        for day in ("2026-01-01", "2026-01-02") if number == 2 else ("2026-01-01",):
            key = {"step": "days", "target": "main.days", "slice": day}
            shop.state.begin_step(step_record(run_id, started_at=began, **key))
            made = publication(run_id, at=began, checks=(check,), **key)
            shop.state.confirm(made, number)
        if number < 6:
            shop.state.end_run(run_id, "done", 0)
    return shop


def numbers(shop: Shop) -> dict[str, int]:
    def ask(connection: Connection) -> dict[str, int]:
        return {
            table.name.removeprefix("penstock_"): connection.execute(
                select(func.count()).select_from(table)
            ).scalar_one()
            for table in (RUN, STEP, CHECK, SLICE)
        }

    return shop.state.read(ask, dict[str, int]())


def test_the_latest_of_each_slice_stays(shop: Shop) -> None:
    assert numbers(shop) == {"run": 6, "step": 6, "check": 6, "slice": 2}
    found = prune({"main": shop.catalog}, KEEP, now=NOW)
    # The run r2 is the last that made the second day: it stays, without its plan.
    assert found.lakes == {"main": Removed(runs=3, steps=3, tests=3)}
    assert numbers(shop) == {"run": 3, "step": 3, "check": 3, "slice": 2}
    kept = shop.state.run("r2")
    assert kept is not None
    assert kept.plan is None
    assert prune({"main": shop.catalog}, KEEP, now=NOW).lakes["main"].steps == 0


def test_by_age(shop: Shop) -> None:
    old = Retention(records=Keep(9.9 * 86_400, None))
    assert prune({"main": shop.catalog}, old, now=START).lakes["main"] == Removed()
    assert prune({"main": shop.catalog}, old, now=NOW).lakes["main"].steps == 4
    running = shop.state.run("r6")
    assert running is not None


def test_a_dry_run_counts_and_removes_nothing(shop: Shop) -> None:
    before = numbers(shop)
    found = prune({"main": shop.catalog}, KEEP, dry_run=True, now=NOW)
    assert found.lakes["main"].steps == 3
    assert numbers(shop) == before


def test_a_publication_stays_below_a_later_failure(shop: Shop) -> None:
    key = ("r7", "days", "2026-01-02")
    shop.state.begin_run(run_record("r7", started_at=at(9)))
    shop.state.begin_step(
        step_record("r7", started_at=at(9), step="days", target="main.days", slice="2026-01-02")
    )
    shop.state.end_step(key, "failed", "no")
    prune({"main": shop.catalog}, Retention(records=Keep(None, 1)), now=NOW)
    assert shop.project.status("days")[0].slices[1].state == "failed"
    assert shop.state.run("r2") is not None


def test_what_fails_is_named_once_and_the_rest_goes(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Locked:
        """A catalog that can be read only."""

        reading = shop.catalog.reading

        def writing(self) -> NoReturn:
            raise CatalogLocked("another process holds it")

    monkeypatch.setattr(run_history, "BATCH", 1)
    (tmp_path / "0.jsonl").write_text("")
    (tmp_path / "1.jsonl").mkdir()
    retention = Retention(tmp_path, Keep(None, 0), KEEP.records)
    catalogs: Any = {"locked": Locked(), "main": shop.catalog}
    found = prune(catalogs, retention, now=NOW)
    assert found.lakes["main"].runs == 3
    assert found.failures[0] == "lake locked: another process holds it"
    assert len(found.failures) == 2
    assert found.logs == 1
    assert "3 runs, 1 logs" in repr(found)


def test_a_run_removes_a_few_at_its_end(shop: Shop) -> None:
    def ask(connection: Connection) -> list[str]:
        return run_history.old_runs(connection, Keep(None, 2), NOW, 2)

    assert shop.state.read(ask, list[str]()) == ["r1", "r2"]


def test_it_is_a_command(shop: Shop) -> None:
    root = shop.project.settings.root
    (root / "penstock.toml").write_text(
        (root / "penstock.toml").read_text() + 'keep_runs = 2\nkeep = "none"\n'
    )
    log = log_of(root / ".penstock" / "logs", "00000000-0001-7")
    log.parent.mkdir(parents=True)
    log.write_text("")

    def state(*arguments: str) -> Any:
        done = CliRunner().invoke(main, ["state", *arguments, "--project", str(root)])
        assert done.exit_code == 0, done.output
        return done.stdout

    shown = json.loads(state("prune", "--dry-run", "--json"))
    assert shown["lakes"]["main"]["steps"] == 3
    assert shown["logs"] == 1
    text = state("prune")
    assert "lake main: 3 runs, 3 steps, 3 test results removed" in text
    assert "1 log removed" in text
