"""Readers of tables that others write wait where external_models.yaml says how fresh these must be.

Tests ``unmade_reads`` of ``model/slicing/table_reads.py``, too.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.planning.plan import Plan
from penstock.project.project import Project
from tests import duck
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- materialize ducklake://main/"
DAILY = "-- partitioned daily start=2026-01-01\n"
SCRIPTS = {
    "models/total": f"{HEAD}total\nSELECT count(*) AS n FROM events",
    "models/above": f"{HEAD}above\nSELECT n FROM total",
    "models/day": f"{HEAD}day\n{DAILY}SELECT id FROM events WHERE ds = '{{partition}}'",
    "models/month": f"{HEAD}month\n-- partitioned monthly\nSELECT count(*) AS n FROM day",
    "models/free": f"{HEAD}free\n-- needs main.events none\nSELECT count(*) AS n FROM events",
    "models/seen": "MODEL (name main.seen, kind VIEW);\nSELECT * FROM events",
    "models/through": f"{HEAD}through\nSELECT id FROM seen",
    "models/line": "MODEL (name main.line, start '2026-01-01', kind INCREMENTAL_BY_TIME_RANGE "
    "(time_column ds));\nSELECT id, ds FROM events WHERE ds BETWEEN @start_ds AND @end_ds",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A lake with a table of others, and a view of theirs."""
    root = write_project(tmp_path / "p", SCRIPTS)
    (root / "external_models.yaml").write_text("- name: events\n  fresh: 36h\n")
    (root / "lake").mkdir()
    with duck.attach(f"ducklake:sqlite:{root}/lake/meta.sqlite", root / "lake/data") as lake:
        lake.execute("CREATE TABLE events AS SELECT 1 AS id, '2026-01-01' AS ds")
        lake.execute("CREATE VIEW theirs AS SELECT * FROM events")
    return root


def plan_of(root: Path, later: timedelta, **asked: Any) -> Plan:
    with Project.load(root) as project:
        return project.plan(fire_time=datetime.now(UTC) + later, **asked)


def waits(plan: Plan) -> dict[str, str]:
    return {step.name: why for step in plan.steps for why in step.waits.values()}


def test_readers_wait_for_a_table_that_is_too_old(root: Path) -> None:
    assert waits(plan_of(root, timedelta(hours=35))) == {}
    plan = plan_of(root, timedelta(hours=37))
    found = waits(plan)
    assert set(found) == {"total", "day", "through", "line", "month"}
    assert found["total"].startswith("main.events last changed 20")
    assert found["total"].endswith(" UTC (fresh: 36h)")


def test_allow_missing_says_what_is_lacking(root: Path) -> None:
    plan = plan_of(root, timedelta(hours=37), allow_missing=True)
    assert waits(plan) == {}
    (total,) = (step for step in plan.steps if step.name == "total")
    assert all("(fresh: 36h)" in why for why in total.without.values())


def test_slices_that_were_over_when_it_last_changed_do_not_wait(root: Path) -> None:
    today = datetime.now(UTC).date()
    days = [str(today + timedelta(days=n)) for n in range(-2, 2)]
    asked = {"select": ["day", "line"], "from_": days[0], "to": days[-1]}
    plan = plan_of(root, timedelta(days=30), **asked)
    day, line = plan.steps
    assert [str(each) for each in day.slices if each not in day.waits] == days[:2]
    assert [str(each) for each in line.slices if each not in line.waits] == [
        f"{days[0]} to {days[1]}"
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("theirs", "main.theirs is a view, which has no age (fresh: 1d)"),
        ("nothing", "main.nothing does not exist (fresh: 1d)"),
    ],
)
def test_what_cannot_be_dated(root: Path, name: str, why: str) -> None:
    (root / "external_models.yaml").write_text(f"- name: {name}\n  fresh: 1d\n")
    (root / "models" / "total.sql").write_text(f"{HEAD}total\nSELECT count(*) AS n FROM {name}")
    assert waits(plan_of(root, timedelta()))["total"] == why


def test_snapshots_that_are_gone(root: Path) -> None:
    with duck.attach(f"ducklake:sqlite:{root}/lake/meta.sqlite", root / "lake/data") as lake:
        lake.execute("COMMENT ON TABLE events IS 'a table'")
        lake.execute("CALL ducklake_expire_snapshots('lk', older_than => now())")
    assert (
        "has not changed in the snapshots that are kept"
        in waits(plan_of(root, timedelta()))["total"]
    )


@pytest.mark.parametrize("way", ["plain", "partition", "range", "behind", "force", "upstream"])
def test_a_project_in_which_no_model_reads_another(root: Path, way: str) -> None:
    for path in (root / "models").glob("*"):
        if path.stem not in {"total", "day"}:
            path.unlink()
    now = datetime.now(UTC)
    last = str((now + timedelta(hours=37)).date())
    first = str(now.date() - timedelta(days=3))
    asked: dict[str, Any] = {} if way == "plain" else {way: True}
    if way == "partition":
        asked = {"partition": last}
    if way == "range":
        asked = {"from_": first, "to": last}
    found = waits(plan_of(root, timedelta(hours=37), **asked))
    assert set(found) == {"total", "day"}
    assert found["day"].startswith("main.events last changed 20")
