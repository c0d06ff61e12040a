"""Kill clients of a warm server, and now and then the server, at moments of chance:
``python -m tests.engine.session.warm_kills --kills 60``, in ``.venv-connect``.

Beside each client that is killed another one asks for a number. It must get it, from the server of
before; after the server itself was killed, the next command has another one.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from penstock.engine.session.warm import end_server
from penstock.engine.session.warm_files import ServerPlace, ServerRecord
from tests.engine.session.test_warm_process import PHASE, RUN, SLOW, TOML, _wait_for
from tests.engine.toy import write_project

_OF_SERVERS = 10  # each so many kills one is of the server


def penstock(root: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, *arguments, "--warm", "--project", str(root)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def servers(root: Path) -> list[tuple[ServerPlace, ServerRecord]]:
    places = [ServerPlace(path) for path in root.parent.glob("penstock-spark-*/*")]
    return [(each, record) for each in places if (record := each.record())]


def ask(root: Path, number: int) -> subprocess.Popen[str]:
    return penstock(root, "sql", f"SELECT count(*) FROM range({number})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    kills, chance = parser.parse_args().kills, random.Random(7)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="warm-kills-") as folder:
        os.environ["TMPDIR"] = folder
        root = write_project(Path(folder) / "shop", SLOW)
        with (root / "penstock.toml").open("a") as file:
            file.write(TOML)
        for number in range(1, kills + 1):
            wrong = killed(root, chance, number)
            bad += wrong is not None
            print(f"{number}: {wrong or 'as it should be'}", flush=True)
        for place, record in servers(root):
            end_server(place, record)
    print(f"{kills} kills, {bad} wrong")
    raise SystemExit(1 if bad else 0)


def killed(root: Path, chance: random.Random, number: int) -> str | None:
    """Kill one process, and return what was wrong with the others."""
    first = ask(root, number)
    said = first.communicate(timeout=120)[0]
    if first.returncode or str(number) not in said:
        return f"a client without a kill: {first.returncode} {said[-2000:]}"
    ((_, server),) = servers(root)
    victim = penstock(root, "run", "slow", "--force", "--json")
    if number % _OF_SERVERS == 0:
        _wait_for(victim, PHASE)  # one that has not joined yet would start another
        os.kill(server.pid, signal.SIGKILL)
        said = victim.communicate(timeout=120)[0]
        return None if victim.returncode == 1 else f"of the server: {victim.returncode} {said}"
    time.sleep(chance.uniform(0, 5))
    other = ask(root, 1_000_000 + number)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    said = other.communicate(timeout=120)[0]
    if other.returncode or str(1_000_000 + number) not in said:
        return f"the other client: {other.returncode} {said[-800:]}"
    ((_, now),) = servers(root)
    return None if now.pid == server.pid else "the server is another one"


if __name__ == "__main__":
    main()
