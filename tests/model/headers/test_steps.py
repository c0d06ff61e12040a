from __future__ import annotations

import pytest

from penstock.model.headers.annotation import Annotations, parse
from penstock.model.time.partition import KINDS, PartitionSpec
from penstock.model.values.schedule import Retry


def header(text: str) -> Annotations:
    return parse(text)[0]


def warnings(text: str) -> list[str]:
    findings = parse(text)[1]
    assert all(finding.severity == "warning" for finding in findings)
    return [finding.hint or "" for finding in findings]


@pytest.mark.parametrize("word", ["pipeline", "macros"])
def test_words_that_stand_alone(word: str) -> None:
    assert header(f"-- {word}") != Annotations()
    assert header(f"-- {word} of orders") == Annotations()
    assert warnings(f"-- {word} of orders") == [f"write `-- {word}`"]


def test_libraries() -> None:
    text = "-- use f/a\n-- use g/b\n-- use f/a"
    assert header(text).use_libs == ("f/a", "g/b")
    assert warnings(text) == ["write `-- use f/a`"]
    assert warnings("-- use x") == ["write `-- use path/of/library`"]
    assert warnings("-- use a/b c") == ["write `-- use path/of/library`"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("retry 1", Retry(1)),
        ("retry 3 5s", Retry(3, "5s")),
        ("retry 3 60", Retry(3, "60")),
        ("retry +3 +60s", Retry(3, "+60s")),
        ("retry 4294967295", Retry(4294967295)),
    ],
)
def test_retry(line: str, expected: Retry) -> None:
    assert header(f"-- {line}").retry == expected
    assert warnings(f"-- {line}") == []


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("retry", "retry 3"),
        ("retry 0", "retry 1"),
        ("retry -1", "retry 3"),
        ("retry 3.5", "retry 3"),
        ("retry many", "retry 3"),
        ("retry 4294967296", "retry 4294967295"),
    ],
)
def test_retry_without_a_count_is_dropped(line: str, form: str) -> None:
    assert header(f"-- {line}").retry is None
    assert warnings(f"-- {line}") == [f"write `-- {form}`"]


def test_a_delay_that_is_no_duration_is_kept_and_reported() -> None:
    assert header("-- retry 3 delay=5s").retry == Retry(3, "delay=5s")
    assert warnings("-- retry 3 delay=5s") == ["write `-- retry 3 5s`"]


def test_the_first_retry_holds() -> None:
    assert header("-- retry 0\n-- retry 2\n-- retry 3").retry == Retry(2)


@pytest.mark.parametrize("keyword", ["freshness", "debounce"])
@pytest.mark.parametrize("duration", ["60", "1s", "5m", "2h", "7d"])
def test_durations(keyword: str, duration: str) -> None:
    found = header(f"-- {keyword} {duration}")
    assert duration in (found.freshness, found.debounce_default)
    assert warnings(f"-- {keyword} {duration}") == []


@pytest.mark.parametrize("keyword", ["freshness", "debounce"])
def test_a_wrong_duration_is_reported(keyword: str) -> None:
    assert len(warnings(f"-- {keyword} tomorrow")) == 1
    assert len(warnings(f"-- {keyword}")) == 1
    assert len(warnings(f"-- {keyword} 1h\n-- {keyword} 2h")) == 1


@pytest.mark.parametrize(
    ("line", "tag", "form"),
    [
        ("tag heavy", "heavy", None),
        (f"tag {'x' * 50}", "x" * 50, None),
        (f"tag {'x' * 51}", None, f"tag {'x' * 50}"),
        ("tag two words", None, "tag two"),
        ("tag", None, "tag heavy"),
    ],
)
def test_tags(line: str, tag: str | None, form: str | None) -> None:
    assert header(f"-- {line}").tag == tag
    assert warnings(f"-- {line}") == ([] if form is None else [f"write `-- {form}`"])


def test_the_first_tag_holds() -> None:
    assert header("-- tag a\n-- tag b").tag == "a"
    assert warnings("-- tag a\n-- tag b") == ["write `-- tag a`"]


def test_dialects() -> None:
    assert header("").dialect == "spark"
    assert header("-- dialect duckdb").dialect == "duckdb"
    assert header("-- dialect duckdb").to_dict() == {"dialect": "duckdb"}
    assert parse("-- dialect duckdb\n-- dialect duckdb")[1] == ()
    both, (finding,) = parse("-- dialect duckdb\n-- dialect spark")
    assert (both.dialect, finding.severity, finding.rule) == ("duckdb", "error", "dialect-second")


def test_an_unknown_dialect_is_an_error() -> None:
    (finding,) = parse("-- dialect DuckDB")[1]
    assert (finding.severity, finding.hint) == ("error", "write `-- dialect duckdb`")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dynamic"])
def test_time_kinds(kind: str) -> None:
    assert parse(f"-- partitioned {kind}")[0].partition == PartitionSpec(kind)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('daily tz="Europe/Paris"', PartitionSpec("daily", tz="Europe/Paris")),
        ("daily tz=Europe/Paris", PartitionSpec("daily", tz="Europe/Paris")),
        ('daily format="%Y %m %d"', PartitionSpec("daily", format="%Y %m %d")),
        ("daily tz='Europe/Paris'", PartitionSpec("daily", tz="Europe/Paris")),
        ("daily format='%Y, %m' tz=UTC", PartitionSpec("daily", tz="UTC", format="%Y, %m")),
        ('hourly start="2026-01-01"', PartitionSpec("hourly", start="2026-01-01")),
        ('dynamic key="$.a.b"', PartitionSpec("dynamic", key="$.a.b")),
        ('daily  tz="UTC"   start=2026-01-01', PartitionSpec("daily", "UTC", None, "2026-01-01")),
    ],
)
def test_options(line: str, expected: PartitionSpec) -> None:
    annotations, findings = parse(f"-- partitioned {line}")
    assert annotations.partition == expected
    assert findings == ()


@pytest.mark.parametrize(
    ("line", "column", "severity", "rule"),
    [
        ('daily timezone="UTC"', 22, "error", "partitioned-option"),
        ("daily UTC", 22, "error", "partitioned-option"),
        ('daily tz="UTC" tz="UTC"', 31, "error", "partitioned-twice"),
        ('daily tz=""', 22, "error", "partitioned-empty"),
        ('daily key="$.a"', 22, "warning", "partitioned-option"),
        ('dynamic key="$.a" tz="UTC"', 34, "warning", "partitioned-option"),
        ('daily tz="UTC', 22, "warning", "partitioned-quote"),
        ("daily tz='UTC", 22, "warning", "partitioned-quote"),
    ],
)
def test_reports(line: str, column: int, severity: str, rule: str) -> None:
    _, (finding,) = parse(f"-- partitioned {line}")
    assert (finding.location.column, finding.severity, finding.rule) == (column, severity, rule)


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("Daily", "-- partitioned daily"),
        ("dialy", "-- partitioned daily"),
        ("month", "-- partitioned monthly"),
        ("Weekly tz=UTC", "-- partitioned weekly tz=UTC"),
        ("dynamic", '-- partitioned dynamic key="$.path"'),
        ("by day", "-- partitioned daily"),
        ("", "-- partitioned daily"),
    ],
)
def test_a_lost_partition_is_an_error_with_the_nearest_form(line: str, form: str) -> None:
    annotations, findings = parse(f"-- partitioned {line}")
    assert annotations.partition is None
    assert (findings[-1].severity, findings[-1].hint) == ("error", f"write `{form}`")


def test_a_second_partition_is_an_error() -> None:
    text = "-- partitioned hours\n-- partitioned daily\n-- partitioned weekly"
    annotations, findings = parse(text)
    assert annotations.partition == PartitionSpec("daily")
    assert [(f.severity, f.location.line) for f in findings] == [("warning", 1), ("error", 3)]
