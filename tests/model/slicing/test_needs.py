"""The map from slices to slices: by kinds, through views, and what models say of it.

Tests ``model/slicing/slice_columns.py``, too (columns that say of a row which slice it is of).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.slicing.needs import edges_of, needs_findings
from penstock.model.time.needs import COMMON, EARLIER, Rule
from penstock.model.time.slice import Part
from penstock.project.project import Project
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- materialize ducklake://main/"
DAILY = "-- partitioned daily\n"
DYNAMIC = '-- partitioned dynamic key="$.t"\n'
RAW = f"{HEAD}raw\n{{of}}SELECT 1 AS x, {{day}} AS day"
OF_SLICE, OF_ANY = "'{partition}'", "'2026-01-01'"


def project_of(root: Path, of: str = DAILY, **readers: str) -> Project:
    scripts = {f"models/{name}": f"{HEAD}{name}\n{text}" for name, text in readers.items()}
    raw = RAW.format(of=of, day=OF_SLICE if of else OF_ANY)
    return Project.load(write_project(root / "p", {"models/raw": raw, **scripts}))


BOUNDED = "SELECT * FROM raw WHERE day = '{partition}'"
BY_MOMENTS = "SELECT * FROM raw WHERE day >= $partition_start AND day < $partition_end"


@pytest.mark.parametrize(
    ("raw", "mart", "rule"),
    [
        (DAILY, f"{DAILY}{BOUNDED}", Rule.MOMENTS),
        (DAILY, f"-- partitioned weekly\n{BY_MOMENTS}", Rule.MOMENTS),
        (DAILY, "SELECT * FROM raw", Rule.ALL),
        ("", "SELECT * FROM raw", Rule.ALL),
        ("", f"{DAILY}SELECT * FROM raw", Rule.TABLE),
        (DYNAMIC, f"{DYNAMIC}{BOUNDED}", Rule.SAME),
        (DYNAMIC, f"{DAILY}{BOUNDED}", Rule.ALL),
        (DAILY, f"{DYNAMIC}{BOUNDED}", Rule.ALL),
        ('-- partitioned dynamic key="$.u"\n', f"{DYNAMIC}{BOUNDED}", Rule.SAME),
    ],
)
def test_by_kinds(tmp_path: Path, raw: str, mart: str, rule: Rule) -> None:
    (edge,) = project_of(tmp_path, raw, mart=mart).edges["mart"]
    assert (edge.upstream.name, edge.need.rule, edge.need.windows) == ("raw", rule, (COMMON,))
    assert not edge.need.in_doubt


@pytest.mark.parametrize(
    ("of", "mart", "line"),
    [
        (DAILY, f"{DAILY}SELECT * FROM raw WHERE x = 1", "-- needs main.raw same"),
        (DAILY, "-- partitioned monthly\nSELECT * FROM raw WHERE x = 1",
         "-- needs main.raw lag=0d"),
        (DYNAMIC, f"{DYNAMIC}SELECT * FROM raw WHERE t = upper('{{partition}}')",
         "-- needs main.raw same"),
        (DAILY, "MODEL (name main.mart, start '2026-01-01', kind INCREMENTAL_BY_TIME_RANGE "
         "(time_column ts){});\nSELECT ts FROM raw WHERE ts BETWEEN @start_ts AND @end_ts",
         "needs (main.raw = 'lag=0d')"),
    ],
)  # fmt: skip
def test_what_is_not_bounded_needs_every_slice_and_the_warning_names_the_line(
    tmp_path: Path, of: str, mart: str, line: str
) -> None:
    head = "" if mart.startswith("MODEL") else f"{HEAD}mart\n"
    scripts = {"models/raw": RAW.format(of=of, day=OF_SLICE)}
    scripts["models/mart"] = f"{head}{mart.replace('{});', ');')}"
    root = write_project(tmp_path / "p", scripts)
    (finding,) = (each for each in Project.load(root).check() if each.rule == "needs-all")
    assert "a slice needs every slice of raw" in finding.message
    assert f"write `{line}`" in (finding.hint or "")
    head, mart = (f"{head}{line}\n", mart) if head else ("", mart.replace("{}", f", {line}"))
    (root / "models" / "mart.sql").write_text(f"{head}{mart}")
    (edge,) = Project.load(root).edges["mart"]
    assert not edge.need.in_doubt
    assert edge.need.windows == (COMMON,)


def test_a_column_that_any_slice_may_have_bounds_nothing(tmp_path: Path) -> None:
    scripts = {
        "models/raw": f"{HEAD}raw\n{DAILY}SELECT day, seen FROM ev WHERE seen = '{{partition}}'",
        "models/mart": f"{HEAD}mart\n{DAILY}SELECT * FROM raw WHERE day = '{{partition}}'",
        "models/other": f"{HEAD}other\n{DAILY}SELECT * FROM raw WHERE seen = '{{partition}}'",
    }
    project = Project.load(write_project(tmp_path / "p", scripts))
    in_doubt = {name: project.edges[name][0].need.in_doubt for name in ("mart", "other")}
    assert in_doubt == {"mart": True, "other": False}


def test_views_and_embedded_models_are_looked_through(tmp_path: Path) -> None:
    scripts = {
        "models/raw": RAW.format(of=DAILY, day=OF_SLICE),
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


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t = '{partition}'", ["eu", "es", "us", "all"]),  # the rule says the value itself
        ("substring(t, 1, 1) = substring('{partition}', 1, 1)", ["eu", "es"]),
        ("t = '{partition}' OR t = 'all'", ["eu", "all"]),
    ],
)
def test_conditions_choose_among_values(
    tmp_path: Path, condition: str, expected: list[str]
) -> None:
    head = '-- pipeline\n-- partitioned dynamic key="$.t"\n-- materialize ducklake://main/'
    scripts = {
        "models/u": f"{head}u\nSELECT '{{partition}}' AS t, 1 AS v",
        "models/r": f"{head}r\nSELECT v FROM u WHERE {condition}",
    }
    (edge,) = Project.load(write_project(tmp_path, scripts)).edges["r"]
    keeps = edge.keeps(Part("eu"))
    assert [text for text in ("eu", "es", "us", "all") if keeps(Part(text))] == expected
