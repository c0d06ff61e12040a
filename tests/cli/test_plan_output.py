"""How ``penstock plan`` prints ranges, jobs and estimates; and that it writes nothing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.cli.plan_output import _total
from penstock.engine.planning.estimates import Estimate
from tests.engine.planning.test_reasons import Shop, days

RANGE = ("--from", "2026-01-01", "--to", "2026-01-09")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    shop.made("days", *days(2, 4, 5))
    return shop


def plan(shop: Shop, *options: str) -> Result:
    root = str(shop.project.settings.root)
    return CliRunner().invoke(main, ["plan", "--project", root, *options])


def test_a_step_has_a_line_for_each_range(shop: Shop) -> None:
    lines = [line.split() for line in plan(shop, "days", *RANGE).stdout.splitlines()]
    assert lines[0] == ["step", "table", "strategy", "slice", "reason", "state"]
    assert lines[1][:5] == ["days", "main.days", "replace", "2026-01-01", "missing"]
    assert [" ".join(line) for line in lines[2:]] == [
        "2026-01-03 missing",
        "2026-01-06 to 2026-01-09 (4) missing",
    ]


def test_json_has_every_range(shop: Shop) -> None:
    (step,) = json.loads(plan(shop, "days", *RANGE, "--json").stdout)["steps"]
    assert [each["slices"] for each in step["ranges"]] == [
        "2026-01-01",
        "2026-01-03",
        "2026-01-06 to 2026-01-09",
    ]
    assert step["ranges"][2] == {
        "slices": "2026-01-06 to 2026-01-09",
        "first": "2026-01-06",
        "last": "2026-01-09",
        "count": 4,
        "reason": "missing",
        "why": None,
        "state": "planned",
        "until": None,
        "reader": None,
    }


def test_markdown_is_one_document(shop: Shop) -> None:
    out = plan(shop, "days", *RANGE, "--markdown", "--explain").stdout
    table, needs, jobs, total = out.rstrip().split("\n\n")
    assert table.splitlines()[:2] == [
        "| step | table | strategy | slice | reason | state |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    assert table.splitlines()[3] == "|  |  |  | 2026-01-03 | missing |  |"
    assert needs == "No input is a model's."
    assert jobs.startswith("| step | slices | jobs | rows | time |")
    assert total.startswith("6 slices")


def test_very_many_ranges_are_cut(shop: Shop) -> None:
    shop.made("days", *(f"2026-01-{day:02d}" for day in range(1, 31, 2)))
    result = plan(shop, "days", "--from", "2026-01-01", "--to", "2026-01-31")
    assert "6 slices more, see --json" in result.stdout


def test_explain_shows_jobs_and_estimates(shop: Shop) -> None:
    out = plan(shop, *RANGE, "--explain").stdout
    jobs = next(line for line in out.splitlines() if line.startswith("days ") and "slices" in line)
    assert jobs.split("  ")[-2:] == ["unknown", "unknown"]
    assert "25 slices; no past run to estimate from" in out
    found = json.loads(plan(shop, *RANGE, "--explain", "--json").stdout)["steps"][0]
    assert found["jobs"].startswith("one by one, as the partition stands outside of a WHERE")
    assert found["estimate"] == {"slices": 6, "rows": None, "seconds": None, "runs": 0}


def test_the_sum_says_what_it_leaves_out() -> None:
    known = {"a": Estimate(4, 400, 12, 2), "b": Estimate(1)}
    assert _total(known) == (
        "5 slices; about 400 rows and 12 s of work, by past runs, without 1 step of which there "
        "are none"
    )


def test_waiting_slices_say_for_what(shop: Shop) -> None:
    shop.failed("days", "2026-01-03")
    out = plan(shop, "reader", "--from", "2026-01-02", "--to", "2026-01-04").stdout
    assert "waiting (days 2026-01-03 failed)" in out


@pytest.mark.parametrize("options", [(), RANGE, ("--explain",), ("--json", "--explain", *RANGE)])
def test_a_plan_writes_nothing(shop: Shop, options: tuple[str, ...]) -> None:
    root = shop.project.settings.root
    shop.project.close()
    before = contents(root)
    assert plan(shop, *options).exit_code == 0
    assert contents(root) == before


def contents(root: Path) -> dict[str, tuple[str, int]]:
    """Return the content and the time of change of each file."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in files
    }


def test_a_saved_plan_that_moved_ends_with_4(shop: Shop, tmp_path: Path) -> None:
    root, file = str(shop.project.settings.root), str(tmp_path / "plan.json")
    assert plan(shop, "days", *RANGE, "--out", file).exit_code == 0
    shop.made("days", "2026-01-03")
    result = CliRunner().invoke(main, ["run", "--project", root, "--plan", file])
    assert result.exit_code == 4
    assert "days 2026-01-03 made meanwhile by run r1" in result.stderr
    as_json = CliRunner().invoke(main, ["run", "--project", root, "--plan", file, "--json"])
    error = json.loads(as_json.stdout.splitlines()[-1])["error"]
    assert (error["type"], len(error["data"]["moved"])) == ("PlanMoved", 1)


def test_a_saved_plan_with_nothing_to_do_runs_nothing(shop: Shop, tmp_path: Path) -> None:
    root, file = str(shop.project.settings.root), str(tmp_path / "plan.json")
    one = ("days", "--from", "2026-01-02", "--to", "2026-01-02")
    assert plan(shop, *one, "--out", file).exit_code == 0
    result = CliRunner().invoke(main, ["run", "--project", root, "--plan", file])
    assert (result.exit_code, "nothing to do" in result.output) == (0, True)


def test_a_plan_shows_what_changed_definitions_touch(shop: Shop) -> None:
    path = shop.project.settings.root / "models" / "days.sql"
    path.write_text(path.read_text().replace("SELECT", "SELECT 1 AS one,"))
    shop.made("reader", *days(4, 5))
    lines = plan(shop, "days").stdout.splitlines()
    assert lines[-2:] == [
        "changed: days; 3 slices; readers: reader (2)",
        "penstock run --changed rebuilds what these changes touch",
    ]
    assert "restated" in plan(shop, "--changed").stdout
    (change,) = json.loads(plan(shop, "days", "--json").stdout)["changes"]
    assert (change["model"], change["slices"], change["refused"]) == ("days", 3, None)
    assert plan(shop, "--changed", "whole").stdout == "Nothing is to be made.\n"
