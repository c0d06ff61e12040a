"""The line ``needs``, and the property of MODEL that says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.model.headers.annotation import parse
from penstock.model.time.needs import Rule
from penstock.project.project import Project
from tests.engine.toy import write_project


@pytest.mark.parametrize(
    ("line", "asset", "text"),
    [
        ("needs raw.orders lag=7d", "raw.orders", "lag=7d"),
        ("needs ducklake://main/raw.orders all", "ducklake://main/raw.orders", "all"),
        ("needs orders same", "orders", "same"),
    ],
)
def test_a_line_names_a_table_and_what_is_needed(line: str, asset: str, text: str) -> None:
    annotations, findings = parse(f"-- {line}")
    (found,) = annotations.needs
    assert (found.asset, found.text, findings) == (asset, text, ())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("needs orders",), "it names a table"),
        (("needs orders 7d",), "what is needed is lag=7d, same, all or none"),
        (("needs orders all", "needs orders none"), "already"),
    ],
)
def test_other_lines_are_errors(lines: tuple[str, ...], message: str) -> None:
    _, (finding,) = parse("\n".join(f"-- {line}" for line in lines))
    assert finding.severity == "error"
    assert message in finding.message


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    header = (
        "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/a\n-- needs raw lag=2d"
    )
    model = (
        "MODEL (name main.b, kind INCREMENTAL_BY_TIME_RANGE (time_column day), "
        "start '2026-01-01', needs (raw = 'lag=2d'));\nSELECT day FROM raw "
        "WHERE day BETWEEN @start_ds AND @end_ds"
    )
    scripts = {"models/a": f"{header}\nSELECT * FROM raw", "models/b": model}
    project = Project.load(write_project(tmp_path / "p", scripts))
    a, b = (project.model(name).input_needs for name in ("a", "b"))
    assert a == b
    ((table, need),) = a
    assert (str(table), need.rule, need.said) == ("main.raw", Rule.MOMENTS, "lag=2d")


def test_a_lake_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    header = "-- pipeline\n-- materialize ducklake://main/a\n-- needs nope.raw.x all\nSELECT 1 AS x"
    with pytest.raises(ModelError, match="nope"):
        Project.load(write_project(tmp_path / "p", {"models/a": header}))
