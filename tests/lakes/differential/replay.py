"""Replay scripts: DuckDB runs them, Penstock reads what they leave, differences are printed.

    python -m tests.lakes.differential.replay FILE.sql ... [--catalog sqlite] [--writer 1.4.4]

Without options each script runs on the catalogs and writers that it names. Ends with 1 when
anything differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests import postgres
from tests.duckdb_process import DuckDBProcess, why_not
from tests.lakes.differential.compare import Finding, compare
from tests.lakes.differential.record import Effort, Recording, record
from tests.lakes.differential.script import CATALOGS, WRITERS, Script, load
from tests.quick import quick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Bench:
    """What replaying needs: servers start when first needed and are closed together."""

    def __init__(self, stack: ExitStack, folder: Path, spark: SparkSession) -> None:
        self.spark = spark
        self._stack, self._folder = stack, folder
        self._processes: dict[tuple[str, str], DuckDBProcess] = {}
        self._postgres: str | None = None
        self._count = 0

    def duckdb(self, version: str, role: str = "") -> DuckDBProcess:
        """The process of a version; another one for each role."""
        key = version, role
        if key not in self._processes:
            process = self._processes[key] = DuckDBProcess(version)
            self._stack.callback(process.close)
        return self._processes[key]

    def postgres(self) -> str:
        if self._postgres is None:
            self._postgres = self._stack.enter_context(postgres.server())
        return self._postgres

    def record(
        self, script: Script, kind: str, writer: str, effort: Effort | None = None
    ) -> Recording:
        self._count += 1
        return record(
            self.duckdb(writer),
            script,
            kind,
            self._folder / f"lake{self._count}",
            postgres=self.postgres() if kind == "postgres" else None,
            effort=effort,
        )


@contextmanager
def bench(spark: SparkSession | None = None) -> Iterator[Bench]:
    """With the session passed in, or one of its own that ends with it."""
    with (
        tempfile.TemporaryDirectory(prefix="replay-", ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        if spark is None:
            spark = session()
            stack.callback(spark.stop)
        stack.enter_context(quick(spark))
        yield Bench(stack, Path(folder), spark)


def session() -> SparkSession:
    from penstock.engine.session.spark import start_session
    from penstock.settings.config import SparkSettings

    # Each join holds at least one page until the job ends, and a job has dozens of joins.
    pages = {"spark.buffer.pageSize": "1m"}
    conf = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1", **pages}
    return start_session(SparkSettings(master="local[1]", conf=conf), "penstock-replay")


def report(recording: Recording, findings: Sequence[Finding]) -> str:
    """What there is to say of one script, in lines."""
    script = recording.script
    count = sum(len(frozen.readings) for frozen in recording.frozen)
    failed = [each for frozen in recording.frozen for each in frozen.readings if each.error]
    head = f"{script.name} on {recording.home.kind}, written by {recording.writer}: "
    lines = [f"{head}{count} comparisons, {len(findings)} differ"]
    lines += [f"  failed in DuckDB: {s.text[:200]}\n    {e[:300]}" for s, e in recording.errors]
    lines += [f"  not read by DuckDB: {each}\n    {str(each.error)[:300]}" for each in failed]
    lines += ["  " + str(finding).replace("\n", "\n  ") for finding in findings]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--catalog", choices=CATALOGS, action="append")
    parser.add_argument("--writer", choices=WRITERS, action="append")
    options = parser.parse_args(arguments)
    differing = 0
    with bench() as room:
        for path in options.files:
            script = load(path)
            for writer in options.writer or script.writers:
                if (reason := why_not(writer)) is not None:
                    print(f"{script.name} is not written by {writer}: {reason}")
                    continue
                for kind in options.catalog or script.catalogs:
                    started = time.monotonic()
                    recording = room.record(script, kind, writer)
                    findings = compare(room.spark, [recording])
                    differing += bool(findings)
                    print(report(recording, findings), f"({time.monotonic() - started:.1f} s)")
                    recording.drop()
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
