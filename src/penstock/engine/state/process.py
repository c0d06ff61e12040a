"""Which process this is, and whether another still lives: to know a killed run from a running one.

A number alone is not enough: the system uses it again.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from penstock.engine.state.records import ProcessId


def this_process() -> ProcessId:
    pid = os.getpid()
    return ProcessId(platform.node(), pid, _start_of(pid) or "")


def is_gone(process: ProcessId) -> bool:
    """True only when that is certain: a process of another host may well live."""
    if process.host != platform.node():
        return False
    return _start_of(process.pid) != process.started


def _start_of(pid: int) -> str | None:
    """When the process began, in whatever unit the system counts; None when it is gone."""
    if not Path("/proc/self/stat").exists():
        return _start_by_ps(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the command in parentheses and may hold anything: count from its end.
    rest = fields.rpartition(")")[2].split()
    return None if rest[0] in "ZX" else rest[19]


def _start_by_ps(pid: int) -> str | None:
    """On systems without /proc."""
    answer = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or None
