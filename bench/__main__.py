"""Run every benchmark, each in a process of its own, then write the figures into the pages.

Flags are handed to each program: ``python -m bench --rounds 3``.
"""

from __future__ import annotations

import subprocess
import sys

from bench import report


def main() -> None:
    failed = [name for name in report.PROGRAMS if not _run(name)]
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; the pages are as they were")
    report.main()


def _run(name: str) -> bool:
    print(f"== {name}", flush=True)
    command = [sys.executable, "-m", f"bench.{name}", *sys.argv[1:]]
    return subprocess.run(command, check=False).returncode == 0


if __name__ == "__main__":
    main()
