"""Paths in messages are relative to the project, wherever the command runs. No Spark."""

from __future__ import annotations

from pathlib import Path

import click
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.cli.paths import local, remember, with_local_paths
from penstock.events import Event, Notice, StepFinished
from tests.engine.toy import write_project

BROKEN = "-- pipeline\n-- materialize ducklake://main/t append=true\nSELECT 1 AS x"


def test_the_places_of_errors_and_the_file_of_a_model(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {"models/sub/broken": BROKEN})
    result = CliRunner().invoke(main, ["check", "--project", str(root)])
    assert result.stderr.startswith("models/sub/broken.sql:2:")
    as_json = CliRunner().invoke(main, ["check", "--json", "--project", str(root)])
    assert str(root / "models" / "sub" / "broken.sql") in as_json.stdout
    write_project(root, {"models/sub/broken": BROKEN.replace("append=true", "append")})
    shown = CliRunner().invoke(main, ["show", "sub/broken", "--project", str(root)])
    assert "file      models/sub/broken.sql\n" in shown.stdout


def test_only_paths_below_the_project_change() -> None:
    with click.Context(main):
        remember(Path("/work/shop"))
        assert local("/work/shop/models/a.sql:1:2: wrong") == "models/a.sql:1:2: wrong"
        assert local("file '/work/shop/data/x.csv'") == "file 'data/x.csv'"
        for other in (
            "/old/work/shop/a",
            "/work/shopping/a",
            "in /work/shop",
            "s3://b/work/shop/a",
        ):
            assert local(other) == other
    assert local("/work/shop/models/a.sql") == "/work/shop/models/a.sql"


def test_what_a_run_tells_people_has_relative_paths() -> None:
    told: list[Event] = []
    with click.Context(main):
        remember(Path("/work/shop"))
        sink = with_local_paths(told.append)
    sink(Notice("/work/shop/seeds/a.csv: 3 values are NULL"))
    sink(StepFinished("a", "failed", 1.0, reason="/work/shop/models/a.sql:3: no"))
    assert told == [
        Notice("seeds/a.csv: 3 values are NULL"),
        StepFinished("a", "failed", 1.0, reason="models/a.sql:3: no"),
    ]
