"""Kill a busy writer at random moments, again and again; then look at what it leaves.

    python -m tests.lakes.killed.moments --times 200 [--catalog postgres] [--seed 1]

The lake must open after each kill, hold what was committed and nothing else for DuckDB and for
Penstock, and maintenance must find the files that no commit has registered, and only those.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tests import postgres
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential import places
from tests.lakes.killed import acts
from tests.lakes.killed.acts import ACTS, Rows
from tests.lakes.killed.steps import balance

_NAMES = ("append", "append", "append", "delete", "delete", "replace", "create", "alter")
_LONGEST = 0.2  # seconds that a writer lives once it is at its last commit
_STUCK = 120.0  # seconds after which a writer that gets nowhere is a problem, and ended


def busy(place: Place, log: Path, seed: int, first: int) -> None:
    """Commit until killed. Each line of the log: what is tried, its number, on which snapshot."""
    chance = random.Random(seed)
    with place.open() as catalog, log.open("a") as lines:
        for at in range(first, first + 10_000):
            name = chance.choice(_NAMES)
            lines.write(json.dumps([name, at, catalog.latest().id]) + "\n")
            lines.flush()
            ACTS[name][0](catalog, at)


def kill_once(place: Place, log: Path, seed: int, commits: int, wait: float) -> int:
    """How the writer ended. It is killed ``wait`` seconds after it has begun so many commits.

    Raises TimeoutError, with the writer ended, when it does not begin them.
    """
    first = len(log.read_text().splitlines()) if log.exists() else 0
    pid = os.fork()
    if pid == 0:
        try:
            busy(place, log, seed, first)
        finally:
            os._exit(1)
    until = time.monotonic() + _STUCK
    while not log.exists() or len(log.read_text().splitlines()) < first + commits:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError(f"a writer did not begin {commits} commits in {_STUCK:.0f} s")
        time.sleep(0.005)
    time.sleep(wait)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def landed(log: Path, latest: int, before: Rows) -> Rows:
    """The rows after all that was tried, as far as there is a snapshot of it."""
    tried = [json.loads(line) for line in log.read_text().splitlines()]
    bases = [base for _, _, base in tried[1:]] + [latest]
    for (name, at, base), then in zip(tried, bases, strict=True):
        if then > base:
            before = ACTS[name][1](before, at)
    return before


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalog", choices=("sqlite", "postgres", "duckdb"), default="sqlite")
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)
    server = postgres.server() if options.catalog == "postgres" else nullcontext("")
    with server as conninfo, tempfile.TemporaryDirectory(prefix="killed-") as folder:
        home = places.make(options.catalog, Path(folder) / "lake", conninfo)
        place, log = Place(home.uri, home.data_path), Path(folder) / "log"
        before = acts.begin(place)
        problems = []
        for at in range(options.times):
            commits, wait = chance.randrange(1, 6), chance.random() * _LONGEST
            code = kill_once(place, log, chance.randrange(2**32), commits, wait)
            if code != -signal.SIGKILL:
                problems.append(f"writer {at} ended by itself with {code}")
            latest = acts.latest(place)  # it opens
            if at % 20 == 19 or at == options.times - 1:
                problems += balance(acts.duckdb_says(place), landed(log, latest, before))
        rows = sorted(landed(log, acts.latest(place), before))
        code = subprocess.run(
            [sys.executable, "-m", "tests.lakes.killed.after", place.uri, place.data_path],
            input=json.dumps(rows).encode(),
            check=False,
        ).returncode
        problems += ["after: see above"] if code else []
        print(f"{options.times} kills, {latest} snapshots", *problems, sep="\n", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
