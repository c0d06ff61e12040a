from __future__ import annotations

import pytest

from penstock.model.annotations.annotation import Annotations, parse


@pytest.mark.parametrize(
    ("line", "severity", "form"),
    [
        ("pipelines", "warning", "pipeline"),
        ("Pipeline", "warning", "pipeline"),
        ("pipeline:", "warning", "pipeline"),
        ("materialized ducklake://m/t", "error", "materialize ducklake://m/t"),
        ("Materialize ducklake://m/t append", "error", "materialize ducklake://m/t append"),
        ("materialise ducklake", "error", "materialize ducklake"),
        ("partition daily", "error", "partitioned daily"),
        ("partitionned weekly tz=UTC", "error", "partitioned weekly tz=UTC"),
        ("data-test unique id", "error", "data_test unique id"),
        ("data_tests f/tests/x", "error", "data_test f/tests/x"),
        ("freshnes 1h", "warning", "freshness 1h"),
        ("Retry 3", "warning", "retry 3"),
        ("ON schedule", "warning", "on schedule"),
        ("On ducklake://m/t", "warning", "on ducklake://m/t"),
        ("columns a <- ducklake://m/t.c", "warning", "column a <- ducklake://m/t.c"),
    ],
)
def test_a_keyword_nearly_right(line: str, severity: str, form: str) -> None:
    annotations, (finding,) = parse(f"-- {line}")
    assert annotations == Annotations()
    assert (finding.severity, finding.hint) == (severity, f"did you mean `-- {form}`?")


@pytest.mark.parametrize(
    "line",
    [
        "columns are taken as they are",
        "partition by day, later",
        "one row per order",
        "users of this table",
        "Materialized each night by the scheduler",
        "retries are cheap",
        "tags and colours",
        "data tests follow",
        "pipelines run at night",
        "",
    ],
)
def test_prose_stays_prose(line: str) -> None:
    assert parse(f"-- {line}") == (Annotations(), ())


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("materialize ducklake://m/t", "error"),
        ("partitioned daily", "error"),
        ("data_test unique id", "error"),
        ("pipeline", "warning"),
        ("on schedule", "warning"),
        ("column a <- ducklake://m/t.c", "warning"),
    ],
)
def test_an_annotation_below_the_code(line: str, severity: str) -> None:
    annotations, (finding,) = parse(f"SELECT 1;\n-- {line}")
    assert annotations == Annotations()
    assert (finding.severity, finding.location.line) == (severity, 2)


@pytest.mark.parametrize(
    "line", ["Materializes ducklake://m/u at night", "Partitioned daily by the clock of the port"]
)
@pytest.mark.parametrize("code", ["", "SELECT 1\n"])
def test_it_is_harmless_where_the_header_has_the_keyword(line: str, code: str) -> None:
    text = f"-- materialize ducklake://m/t\n-- partitioned daily\n{code}-- {line}"
    assert "error" not in {finding.severity for finding in parse(text)[1]}


@pytest.mark.parametrize(
    "line", ["on the other hand", "use a/b", "tag x", "column of text", "note"]
)
def test_prose_below_the_code(line: str) -> None:
    assert parse(f"SELECT 1\n-- {line}")[1] == ()


@pytest.mark.parametrize(
    ("text", "reports"),
    [
        ("/* pipeline */", 1),
        ("/*\n * pipeline\n * materialize ducklake://m/t\n */\nSELECT 1", 1),
        ("/* copyright of someone */\nSELECT 1", 0),
        ("SELECT 1 /* pipeline */", 0),
    ],
)
def test_block_comments(text: str, reports: int) -> None:
    findings = parse(text)[1]
    assert [finding.rule for finding in findings] == ["block-comment"] * reports
