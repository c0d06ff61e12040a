"""Look for sequences that Penstock writes otherwise than it should, for as long as one likes.

    python -m tests.lakes.differential.written.hunt --seconds 3600 --seed 1 --failures FOLDER
    python -m tests.lakes.differential.written.hunt --replay FILE.sql ...

What fails is reduced to the steps that matter and written to the folder as a script, which may
become a case of the tests. A finding on DuckDB's side is tried once more with all steps run by
DuckDB: what it gets wrong in its own lakes, too, is not ours. Its feeds of merged or flushed files
are known to be wrong; Penstock's are compared all the same.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.duckdb_process import DuckDBError
from tests.lakes.differential import places
from tests.lakes.differential.replay import Bench
from tests.lakes.differential.script import CATALOGS
from tests.lakes.differential.written import generate, judge
from tests.lakes.differential.written.altering import transactions
from tests.lakes.differential.written.judge import Finding
from tests.lakes.differential.written.play import Played, play
from tests.lakes.differential.written.script import Script, load
from tests.quick import quick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_TO_REDUCE = 120


class Room:
    """What playing needs; closed together."""

    def __init__(self, stack: ExitStack, folder: Path, spark: SparkSession) -> None:
        self._bench = Bench(stack, folder, spark)
        self._folder = folder
        self._count = 0

    def play(self, script: Script, kind: str, limit: int | None) -> Played:
        self._count += 1
        return play(
            self._bench.spark,
            self._bench.duckdb("1.5.5"),
            script,
            kind,
            self._folder / f"lake{self._count}",
            postgres=self._bench.postgres() if kind == "postgres" else None,
            limit=limit,
            watching=self._bench.duckdb("1.5.5", "watching"),
        )

    def check(
        self,
        scripts: Sequence[Script],
        kinds: Iterator[str],
        limit: int | None = None,
        ours: int | None = None,
    ) -> list[tuple[Played, list[Finding]]]:
        """Play each in the next catalog; DuckDB is asked ``limit`` questions, Penstock ``ours``."""
        played: list[Played] = []
        try:
            for script, kind in zip(scripts, kinds, strict=False):
                try:
                    played.append(self.play(script, kind, limit))
                except DuckDBError as error:
                    if not str(error).startswith("FATAL"):
                        raise
                    print(f"{script.name} is left out, DuckDB ended itself: {error}", flush=True)
            findings = judge.findings(self._bench.spark, played, ours)
        finally:
            for each in played:
                places.drop(each.home)
        return [(each, self._ours([f for f in findings if f.played is each])) for each in played]

    def _ours(self, findings: Sequence[Finding]) -> list[Finding]:
        """Without what DuckDB gets wrong on its own, and what Penstock says of changes to tables
        whose rows DuckDB got wrong so."""
        theirs = [each for each in findings if self.is_theirs(each)]
        tables = {
            each.question.span.table_id
            for each in theirs
            if each.question is not None and each.question.what == "rows"
        }
        return [
            each
            for each in findings
            if each not in theirs
            and not (
                each.question is not None
                and each.question.what == "changes"
                and each.question.span.table_id in tables
            )
        ]

    def is_theirs(self, finding: Finding) -> bool:
        """Whether DuckDB finds the same wrong where it has written everything itself.

        What DuckDB reads may be wrong in another way each time; of what Penstock reads it has to
        find the very same.
        """
        if finding.question is None or any(s.by == "other" for s in finding.played.script.steps):
            return False
        changes = finding.question.what == "changes"
        if changes and (finding.who == "Penstock" or finding.played.script.compacts):
            # docs/history.md has what DuckDB 1.5.5 says of merged and flushed files
            return finding.who == "DuckDB"
        steps = tuple(
            each if each.by == "model" else each.for_duckdb for each in finding.played.script.steps
        )
        script = replace(finding.played.script, steps=steps)
        try:
            played = self.play(script, finding.played.home.kind, None)
        except DuckDBError:  # it has ended itself
            return False
        try:
            there = judge.of_duckdb(played)
        finally:
            places.drop(played.home)
        if finding.who == "DuckDB":
            return any(each.kind == finding.kind for each in there)
        return any(each.problem.replace("DuckDB", finding.who) == finding.problem for each in there)


@contextmanager
def room(spark: SparkSession | None = None) -> Iterator[Room]:
    """With the given session, or with one of its own that ends with it."""
    with (
        tempfile.TemporaryDirectory(prefix="written-", ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        if spark is None:
            spark = _session()
            stack.callback(spark.stop)
        stack.enter_context(quick(spark))
        yield Room(stack, Path(folder), spark)


def _session() -> SparkSession:
    from penstock.engine.session.spark import start_session
    from penstock.settings.config import SparkSettings

    conf = {
        "spark.driver.memory": "1g",
        "spark.buffer.pageSize": "1m",
        # Code that runs once is not worth a second compiler; without it the room for code is small.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    }
    return start_session(SparkSettings(master="local[1]", conf=conf), "penstock-written")


def reduced(at: Room, played: Played, findings: Sequence[Finding]) -> list[Finding]:
    """The findings of the same kind of the smallest script that has them."""
    deadline = time.monotonic() + _SECONDS_TO_REDUCE
    kinds = {each.kind for each in findings}

    def attempt(script: Script) -> list[Finding]:
        ((_, findings),) = at.check([script], iter([played.home.kind]))
        return [each for each in findings if each.kind in kinds]

    best = list(findings)
    size = len(played.script.steps) // 2
    while size > 0 and time.monotonic() < deadline:
        smaller: list[Finding] = []
        script = best[0].played.script
        for start in range(0, len(script.steps), size):
            fewer = script.steps[:start] + script.steps[start + size :]
            smaller = attempt(replace(script, steps=fewer))
            if smaller or time.monotonic() > deadline:
                break
        if not smaller:
            size //= 2
        best = smaller or best
    return best


def write(folder: Path, findings: Sequence[Finding]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    script, kind = findings[0].played.script, findings[0].played.home.kind
    notes = tuple(f"-- | {line}" for line in str(findings[0]).splitlines())
    text = replace(script, notes=notes, catalogs=(kind,)).text
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:10]}.sql"
    path.write_text(text)
    return path


def report(played: Played, findings: Sequence[Finding]) -> str:
    lines = [f"{played.script.name} on {played.home.kind}: {len(played.answers)} answers"]
    lines += [f"  refused: {step}\n    {said[:300]}" for step, said in played.refused]
    lines += [f"  failed on both: {step}\n    {said[:200]}" for step, said in played.failed]
    lines += ["  " + str(each).replace("\n", "\n  ") for each in findings]
    return "\n".join(lines)


def replay(at: Room, files: Sequence[Path], catalogs: Sequence[str]) -> int:
    failed = 0
    for path in files:
        script = load(path)
        for kind in catalogs or script.catalogs:
            for played, findings in at.check([script], iter([kind])):
                failed += bool(findings)
                print(report(played, findings), flush=True)
    return 1 if failed else 0


def hunt(at: Room, options: argparse.Namespace) -> int:
    kinds = itertools.cycle(options.catalog or CATALOGS)
    by = [each.split(",") for each in options.by] or [generate.OURS, generate.MIXED]
    started, tried, failed, refused = time.monotonic(), 0, 0, 0
    seconds: Counter[str] = Counter()
    for seed in itertools.count(options.seed):
        if time.monotonic() - started > options.seconds:
            break
        make = transactions.scripts if options.altering else generate.scripts
        for played, findings in at.check(make(options.batch, seed, by), kinds, 30, 8):
            tried += 1
            refused += len(played.refused)
            seconds.update(Counter(played.seconds))
            if options.verbose:
                print(report(played, findings), flush=True)
            if findings:
                failed += 1
                best = findings if options.whole else reduced(at, played, findings)
                path = write(options.failures, best)
                print(path, path.read_text(), report(best[0].played, best), sep="\n", flush=True)
        rate = (time.monotonic() - started) / max(tried, 1)
        print(
            f"seed {seed}: {tried} tried, {failed} failed, {refused} statements refused, "
            f"{rate:.1f} s each",
            flush=True,
        )
        slowest = sorted(seconds.items(), key=lambda each: -each[1])[:12]
        print("  " + ", ".join(f"{what} {s:.0f} s" for what, s in slowest), flush=True)
    return 1 if failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--failures", type=Path)
    parser.add_argument("--catalog", choices=CATALOGS, action="append", default=[])
    parser.add_argument("--by", action="append", default=[], help="sql,methods,duckdb")
    parser.add_argument("--altering", action="store_true", help="alter in transactions")
    parser.add_argument("--whole", action="store_true", help="do not reduce")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--replay", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    if not options.replay and not options.failures:
        parser.error("--failures or --replay")
    with room() as at:
        if options.replay:
            return replay(at, options.replay, options.catalog)
        return hunt(at, options)


if __name__ == "__main__":
    sys.exit(main())
