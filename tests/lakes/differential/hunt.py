"""Look for sequences that Penstock reads otherwise than DuckDB, for as long as one likes.

    python -m tests.lakes.differential.hunt --seconds 3600 --seed 1 --failures FOLDER

Each batch of lakes is read together. What fails is reduced to the statements that matter and
written to the folder as a script, which `replay` takes and which may become a case of the tests.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.lakes.differential import generate
from tests.lakes.differential.compare import Finding, compare
from tests.lakes.differential.record import Effort, Recording
from tests.lakes.differential.replay import Bench, bench, report
from tests.lakes.differential.script import CATALOGS, WRITERS, Script

EFFORT = Effort(midway=2, last=14)
_SECONDS_TO_REDUCE = 120


def check(
    room: Bench, scripts: Sequence[Script], places: Iterator[tuple[str, str]], effort: Effort
) -> list[tuple[Recording, list[Finding]]]:
    """Run each script in the next place (a catalog and a writer); what was found of each."""
    recordings: list[Recording] = []
    try:
        for script, (kind, writer) in zip(scripts, places, strict=False):
            recordings.append(room.record(script, kind, writer, effort))
        findings = compare(room.spark, recordings)
    finally:
        for recording in recordings:
            recording.drop()
    return [(each, [f for f in findings if f.recording is each]) for each in recordings]


def reduced(room: Bench, recording: Recording) -> tuple[Recording, list[Finding]] | None:
    """The same with every statement left out that need not be there; ``None`` if it passes now."""
    deadline = time.monotonic() + _SECONDS_TO_REDUCE
    place = (recording.home.kind, recording.writer)

    def attempt(script: Script) -> tuple[Recording, list[Finding]] | None:
        result = check(room, [script], iter([place]), Effort())[0]
        return result if result[1] else None

    best = attempt(recording.script)
    size = len(recording.script.statements) // 2
    while best is not None and size > 0 and time.monotonic() < deadline:
        smaller = None
        statements = best[0].script.statements
        for start in range(0, len(statements), size):
            fewer = statements[:start] + statements[start + size :]
            head = [line for line in recording.script.text.splitlines() if line.startswith("--")]
            text = "\n".join([*head, *(f"{each.text};" for each in fewer)]) + "\n"
            smaller = attempt(replace(best[0].script, text=text, statements=fewer))
            if smaller is not None or time.monotonic() > deadline:
                break
        if smaller is None:
            size //= 2
        best = smaller or best
    return best


def write(folder: Path, recording: Recording, findings: Sequence[Finding]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    script = recording.script
    path = folder / f"{hashlib.sha256(script.text.encode()).hexdigest()[:10]}.sql"
    why = "".join(f"-- | {line}\n" for line in str(findings[0]).splitlines())
    where = f"-- catalogs: {recording.home.kind}\n-- writers: {recording.writer}\n"
    path.write_text(f"{why}{where}{script.text}")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--failures", type=Path, required=True)
    parser.add_argument("--catalog", choices=CATALOGS, action="append")
    parser.add_argument("--writer", choices=WRITERS, action="append")
    options = parser.parse_args(arguments)
    places = itertools.cycle(
        itertools.product(options.catalog or CATALOGS, options.writer or WRITERS)
    )
    started, tried, failed = time.monotonic(), 0, 0
    with bench() as room:
        for seed in itertools.count(options.seed):
            if time.monotonic() - started > options.seconds:
                break
            results = check(room, generate.scripts(options.batch, seed), places, EFFORT)
            tried += len(results)
            for recording, findings in results:
                if findings:
                    failed += 1
                    best = reduced(room, recording) or (recording, findings)
                    print(write(options.failures, *best), report(*best), sep="\n", flush=True)
            rate = (time.monotonic() - started) / max(tried, 1)
            print(f"seed {seed}: {tried} tried, {failed} failed, {rate:.1f} s each", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
