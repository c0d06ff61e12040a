"""Processes that commit to a Delta table, without Spark, until they are done or killed."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from penstock.delta.log import load
from penstock.errors import CommitConflict
from tests.delta.tables import file, land

KILLED = -signal.SIGKILL
# What Python announces before it asks the system for it (sys.addaudithook).
_STEPS = frozenset({"open", "os.link", "os.remove", "os.mkdir", "os.rename", "os.rmdir"})


def fork(work: Callable[[], object]) -> int:
    """Start a child that does this and ends, with status 0 where nothing was raised."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def end(child: int) -> int:
    """The exit code of a child, when it has ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(step: int, below: str, work: Callable[[], object]) -> int:
    """Run ``work`` in a child that is killed before its ``step``-th use of files below a path."""

    def until_killed() -> None:
        left = step

        def count(event: str, args: tuple[Any, ...]) -> None:
            nonlocal left
            if event in _STEPS and any(below in str(arg) for arg in args):
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        work()

    return end(fork(until_killed))


def append(uri: str, writer: int, commits: int) -> None:
    """Append files, one a commit."""
    for at in range(commits):
        land(uri, None, added=(file(f"w{writer}-{at}"),))


def count_up(uri: str, commits: int) -> None:
    """Replace the file ``count-N`` by ``count-N+1``, again where another was quicker."""
    for _ in range(commits):
        while True:
            state = load(uri)
            assert state is not None
            (old,) = [f for f in state.by_key.values() if f.path.startswith("count-")]
            new = file(f"count-{int(old.path.removeprefix('count-')) + 1}")
            try:
                land(uri, state, removed=(old,), added=(new,))
            except CommitConflict:
                continue
            break
