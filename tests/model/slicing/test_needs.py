"""The map from slices to slices: by kinds, through views, and what models say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.slicing.needs import edges_of, needs_findings
from penstock.model.time.needs import COMMON, EARLIER, Rule
from penstock.project import Project
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- materialize ducklake://main/"
DAILY = "-- partitioned daily\n"
DYNAMIC = '-- partitioned dynamic key="$.t"\n'
RAW = f"{HEAD}raw\n{{of}}SELECT 1 AS x, '2026-01-01' AS day"


def project_of(root: Path, of: str = DAILY, **readers: str) -> Project:
    scripts = {f"models/{name}": f"{HEAD}{name}\n{text}" for name, text in readers.items()}
    return Project.load(write_project(root / "p", {"models/raw": RAW.format(of=of), **scripts}))


@pytest.mark.parametrize(
    ("raw", "mart", "rule"),
    [
        (DAILY, DAILY, Rule.MOMENTS),
        (DAILY, "-- partitioned weekly\n", Rule.MOMENTS),
        (DAILY, "", Rule.ALL),
        ("", "", Rule.ALL),
        ("", DAILY, Rule.TABLE),
        (DYNAMIC, DYNAMIC, Rule.SAME),
        (DYNAMIC, DAILY, Rule.TABLE),
        (DAILY, DYNAMIC, Rule.TABLE),
        ('-- partitioned dynamic key="$.u"\n', DYNAMIC, Rule.TABLE),
    ],
)
def test_by_kinds(tmp_path: Path, raw: str, mart: str, rule: Rule) -> None:
    project = project_of(tmp_path, raw, mart=f"{mart}SELECT * FROM raw")
    (edge,) = project.edges["mart"]
    assert (edge.upstream.name, edge.need.rule, edge.need.windows) == ("raw", rule, (COMMON,))


def test_views_and_embedded_models_are_looked_through(tmp_path: Path) -> None:
    scripts = {
        "models/raw": RAW.format(of=DAILY),
        "models/v": "MODEL (name main.v, kind VIEW);\nSELECT * FROM raw",
        "models/e": "MODEL (name main.e, kind EMBEDDED);\nSELECT * FROM v",
        "models/mart": f"{HEAD}mart\n{DAILY}SELECT * FROM e WHERE day = '{{partition}}'",
    }
    project = Project.load(write_project(tmp_path / "p", scripts))
    (edge,) = project.edges["mart"]
    assert (edge.upstream.name, edge.through) == ("raw", ("v",))


def test_a_model_that_reads_itself_needs_what_was_before(tmp_path: Path) -> None:
    text = f"{DAILY}-- column n bigint\nSELECT max(n) + 1 AS n FROM mart"
    (edge,) = project_of(tmp_path, mart=text).edges["mart"]
    assert (edge.is_self, edge.need.windows) == (True, (EARLIER,))


def test_an_earlier_snapshot_is_no_input(tmp_path: Path) -> None:
    project = project_of(tmp_path, mart=f"{DAILY}SELECT * FROM raw VERSION AS OF 3")
    assert project.edges["mart"] == ()


@pytest.mark.parametrize(
    ("raw", "mart", "message"),
    [
        (DAILY, f"{DAILY}-- needs other lag=1d\nSELECT * FROM raw", "reads no such table"),
        (DAILY, f"{DAILY}-- needs ext all\nSELECT * FROM raw JOIN ext USING (day)", None),
        (DAILY, f"{DAILY}-- needs ext none\nSELECT * FROM raw JOIN ext USING (day)", None),
        (DAILY, f"{DAILY}-- needs ext lag=1d\nSELECT * FROM raw, ext", "no model makes it"),
        (DAILY, f"{DAILY}-- needs ext same\nSELECT * FROM raw, ext", "no model makes it"),
        (DAILY, "-- partitioned weekly\n-- needs raw same\nSELECT * FROM raw", "other slices"),
        ("", f"{DAILY}-- needs raw same\nSELECT * FROM raw", "has no slices"),
        ("", f"{DAILY}-- needs raw lag=1d\nSELECT * FROM raw", "a lag is of slices by time"),
        (DAILY, f"{DAILY}-- needs raw lag=1d\nSELECT * FROM raw", None),
    ],
)
def test_what_a_model_says_is_checked(
    tmp_path: Path, raw: str, mart: str, message: str | None
) -> None:
    models = project_of(tmp_path, raw, mart=mart).models
    found = [each.message for each in needs_findings(models, edges_of(models))]
    assert len(found) == (message is not None)
    assert message is None or message in found[0]
