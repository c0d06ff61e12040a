from __future__ import annotations

import pytest

from penstock.model.annotations.annotation import parse
from penstock.model.time.partition import KINDS, PartitionSpec


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
