from __future__ import annotations

import pytest
from bench import report
from bench.harness import RESULTS

RESULT = {
    "when": "2026-11-20",
    "load_before": 0.12,
    "rows": 1000,
    "rounds": 5,
    "figures": [
        {"title": "Scan", "value": 1.031, "goal": 1.05, "unit": "x", "note": ""},
        {"title": "Memory", "value": 432.1, "goal": 400, "unit": "MB", "note": "of Python"},
    ],
}


def test_the_table_has_a_line_a_figure_and_says_what_was_missed() -> None:
    scan, memory = report.table([RESULT]).splitlines()[2:]
    assert scan == "| Scan | 1.03 x | 1.05 x | 1,000, 5 | 2026-11-20, 0.1 |"
    assert memory == (
        "| Memory (of Python) | 432 MB (missed) | 400 MB | 1,000, 5 | 2026-11-20, 0.1 |"
    )


def test_a_highlight_is_a_median_beside_those_of_others() -> None:
    seconds = {
        "penstock update": [0.5, 0.4, 9.0],
        "duckdb update": [0.25],
        "rewrite update": [4.0, 6.0],
    }
    result = {"program": "update_delete", "rows": 1000, "seconds": seconds}
    lines = report.highlights([result]).splitlines()
    assert lines[2:] == [
        "| update 1% of 1,000 rows | **0.50 s** "
        "| DuckDB: 0.25 s; Spark, rewriting the table: 5.00 s |"
    ]


def test_every_highlight_was_measured() -> None:
    assert len(report.highlights(report.read(RESULTS)).splitlines()) == 2 + 8


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    text = "# Title\n<!-- bench -->\nold\n<!-- /bench -->\nend\n"
    assert report.insert(text, "new") == "# Title\n<!-- bench -->\nnew\n<!-- /bench -->\nend\n"


def test_a_missing_mark_is_an_error() -> None:
    with pytest.raises(SystemExit, match="marks"):
        report.insert("# Title\n<!-- bench -->\n", "new")
