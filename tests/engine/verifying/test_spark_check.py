"""``check --spark``: queries analysed against the schemas that are known, before anything runs."""

from __future__ import annotations

import pytest

from penstock.errors import Diagnostic
from penstock.events import Notice
from tests.engine.conftest import Make

pytestmark = pytest.mark.spark

RAW = "-- materialize ducklake://main/raw\nSELECT 1 AS id, 'a' AS name"


def found(findings: tuple[Diagnostic, ...]) -> list[tuple[str, str, str, int | None]]:
    return [(f.severity, f.rule, str(f.location.path)[-5:], f.location.line) for f in findings]


def test_every_query_is_analysed_and_none_runs(make: Make) -> None:
    scripts = {
        "models/raw": RAW,
        "models/a": "-- materialize ducklake://main/a\n-- partitioned daily\n-- $n (int)\n"
        "SELECT id,\n  nmae, $n AS n FROM raw WHERE name = '{partition}'",
        "models/b": "-- materialize ducklake://main/b key=id,x\n-- data_test unique nope\n"
        "-- data_test tests/t\nSELECT id, count(*) AS n FROM raw GROUP BY id",
        "models/c": "-- materialize ducklake://main/c append\nSELECT max(i) + 1 AS i FROM c",
        "models/d": "-- materialize ducklake://main/d\nSELECT * FROM a",
        "models/e": "-- materialize ducklake://main/e\nSELECT * FROM elsewhere",
        "models/f": "-- materialize ducklake://main/f\n-- $p (text)\nSELECT * FROM read_csv($p)",
        "models/g": "-- materialize ducklake://main/g\nSELECT x.id FROM (FROM raw |> SET id = 2) x",
        "tests/t": "SELECT * FROM b\nWHERE gone > 1",
    }
    project = make(scripts)
    rules = ["sparks-own", "missing-table"]
    assert [f.rule for f in project.check()] == [*rules, "column", "column", "column-reference"]
    assert found(project.check(spark=True))[1:] == [
        ("warning", "missing-table", "e.sql", 2),
        ("error", "column-reference", "a.sql", 5),
        ("error", "column", "b.sql", 1),
        ("error", "column", "b.sql", 2),
        ("warning", "not-analysed", "d.sql", 2),
        ("warning", "not-analysed", "e.sql", 2),
        ("warning", "not-analysed", "f.sql", 3),
        ("error", "spark", "t.sql", 2),
    ]
    assert project.status("raw")[0].state == "missing"
    assert not (project.settings.root / "lake").exists()


def test_what_a_lake_has_is_known_too(make: Make) -> None:
    made = make({"models/raw": RAW})
    assert made.run().state == "done"
    project = make(
        {
            "models/raw": RAW.replace(" AS name", " AS title"),
            "models/a": "-- materialize ducklake://main/a\nSELECT title FROM raw",
            "models/b": "-- materialize ducklake://main/b\nSELECT name FROM raw",
            "models/c": "-- materialize ducklake://main/c\nSELECT id FROM raw AT (VERSION => 1)",
        }
    )
    assert found(project.check(spark=True)) == [("error", "column-reference", "b.sql", 2)]


def test_a_description_of_no_column_is_a_warning(make: Make) -> None:
    script = "MODEL (name t, kind FULL, column_descriptions (A = 'x', b = 'y'));\nSELECT 1 AS a"
    project = make({"models/t": script})
    (finding,) = project.check(spark=True)
    said = "column_descriptions describes b, which the table does not have"
    assert (finding.severity, finding.message) == ("warning", said)
    assert (finding.location.line, finding.location.column) == (1, 27)
    events: list[object] = []
    project.run(on_event=events.append)
    assert [each.message for each in events if isinstance(each, Notice)] == [said]
