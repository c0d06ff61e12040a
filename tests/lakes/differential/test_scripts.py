"""Each script of ``scripts/``: what DuckDB reads of the lake that it leaves, Penstock reads too.

All scripts that were asked for run first, and are then read together: a Spark job of fifty tables
takes as long as three of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from tests import duckdb_process, postgres
from tests.lakes.differential import replay
from tests.lakes.differential.compare import Finding, compare
from tests.lakes.differential.record import Effort, Recording
from tests.lakes.differential.script import Script, load

pytestmark = pytest.mark.spark

_FOLDER = Path(__file__).parent / "scripts"
# Catalogs differ in their queries, not in the answers: most run on one. `replay` runs on all, and
# asks every question.
_EFFORT = Effort(1, 2)


@dataclass(frozen=True)
class Run:
    script: Script
    catalog: str
    writer: str

    def __str__(self) -> str:
        return f"{self.script.name}-{self.catalog}-{self.writer}"


def _runs() -> Iterator[Any]:
    for path in sorted(_FOLDER.rglob("*.sql")):
        script = load(path)
        marks = [pytest.mark.xfail(reason=script.xfail, strict=True)] if script.xfail else []
        for writer in script.writers:
            for catalog in script.catalogs:
                more = [pytest.mark.postgres] if catalog == "postgres" else []
                run = Run(script, catalog, writer)
                if _repeats(run):
                    more.append(pytest.mark.extended)
                yield pytest.param(run, marks=[*marks, *more], id=str(run))


def _repeats(run: Run) -> bool:
    """Tell whether the newer version writes the same: of the older one its own forms remain."""
    is_older = run.writer != run.script.writers[0]
    return is_older and run.script.name not in {"compaction", "delete_files"}


@dataclass(frozen=True)
class Result:
    recording: Recording
    findings: list[Finding]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[dict[str, Result]]:
    """By the text of the run, for all runs that this session of pytest collected."""
    wanted = [
        cast(Run, item.callspec.params["run"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "results" in item.fixturenames
    ]
    with replay.bench(spark) as room:
        recorded = {
            str(run): room.record(run.script, run.catalog, run.writer, _EFFORT)
            for run in wanted
            if _why_not(run) is None
        }
        findings = compare(spark, recorded.values())
        yield {
            name: Result(recording, [each for each in findings if each.recording is recording])
            for name, recording in recorded.items()
        }
        for recording in recorded.values():
            recording.drop()


def _why_not(run: Run) -> str | None:
    no_server = postgres.why_not() if run.catalog == "postgres" else None
    return no_server or duckdb_process.why_not(run.writer)


@pytest.mark.parametrize("run", list(_runs()))
def test_penstock_reads_what_duckdb_reads(run: Run, results: dict[str, Result]) -> None:
    reason = _why_not(run)
    if reason is not None:
        pytest.skip(reason)
    result = results[str(run)]
    if not run.script.errors_allowed:
        assert result.recording.errors == []
    if result.findings:
        pytest.fail(replay.report(result.recording, result.findings), pytrace=False)
