"""``penstock show --tests``: which results, in which order. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.cli.show import print_tests, selected
from penstock.engine.results import CheckResult, RecordedCheck
from penstock.errors import ArgumentError

AT = datetime(2026, 1, 2, tzinfo=UTC)
CHECKS = tuple(
    RecordedCheck(day, "r1", AT, CheckResult(name, failures == 0, failures, (), severity, "SELECT"))
    for day, name, failures, severity in (
        ("2026-01-01", "unique id", 0, "error"),
        ("2026-01-01", "not_null id", 2, "warn"),
        ("2026-01-02", "unique id", 3, "error"),
    )
)


def test_failures_come_first_then_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    print_tests(CHECKS)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[3] for line in lines[1:4]] == ["failed", "warned", "passed"]
    assert lines[5] == "unique id on 2026-01-02"


def test_results_of_a_slice_and_those_that_did_not_pass() -> None:
    assert selected(CHECKS, None, failed=True) == CHECKS[1:]
    assert selected(CHECKS, "2026-01-01", failed=True) == CHECKS[1:2]
    with pytest.raises(ArgumentError, match="2026-01-03") as caught:
        selected(CHECKS, "2026-01-03", failed=False)
    assert caught.value.hint in {"did you mean '2026-01-01'?", "did you mean '2026-01-02'?"}
