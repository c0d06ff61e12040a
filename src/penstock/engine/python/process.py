"""A step in a process of its own, from the side of the run.

The process is the first of a group, which is killed when the step is over, when it takes too long,
when the run is cancelled, and (by itself) when the run is gone: nothing that it started is left.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from penstock.engine.python.job import Job, of_line, to_line

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Print = Callable[[str, str], None]  # a stream's name, and a line of it
_POLL = 0.1  # seconds between two looks at the clock and at the run
_GRACE = 2.0  # seconds for the last lines of a killed process to arrive


class TimedOut(Exception):
    """The step ran past its timeout and was stopped."""


class Stopped(Exception):
    """The run was cancelled, and the step with it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``timeout`` in seconds, None for none. ``cancelled`` is asked again and again."""

    timeout: float | None
    cancelled: Callable[[], bool]


def run_process(job: Job, answer: Answer, say: Print, limits: Limits) -> Mapping[str, Any]:
    """What the step was done with: its last message. ``answer`` answers what it asks meanwhile.

    ``{"ended": code}`` for a process that ended before ``main`` returned. Raises TimedOut, Stopped.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = _start(job, theirs)
        pumps = [_pump(process.stdout, "stdout", say), _pump(process.stderr, "stderr", say)]
        try:
            return _talk(ours, job, answer, limits, process)
        finally:
            _end(process)
            for pump in pumps:
                pump.join(_GRACE)


def _start(job: Job, link: socket.socket) -> subprocess.Popen[bytes]:
    number = link.fileno()
    return subprocess.Popen(
        [sys.executable, "-P", "-u", "-m", "penstock.engine.python.child", str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(number,),
        cwd=job.root,
        start_new_session=True,
    )


def _pump(stream: IO[bytes] | None, name: str, say: Print) -> threading.Thread:
    """A thread that says each line of a stream as it comes."""
    assert stream is not None, "it is a pipe"

    def lines() -> None:
        for line in stream:
            say(name, line.decode("utf-8", errors="backslashreplace").rstrip("\r\n"))

    thread = threading.Thread(target=lines, daemon=True)
    thread.start()
    return thread


def _talk(
    link: socket.socket,
    job: Job,
    answer: Answer,
    limits: Limits,
    process: subprocess.Popen[bytes],
) -> Mapping[str, Any]:
    ends_at = None if limits.timeout is None else time.monotonic() + limits.timeout
    with contextlib.suppress(OSError):  # it has ended already
        link.sendall(f"{job.to_json()}\n".encode())
    waiting = b""
    while True:
        if limits.cancelled():
            raise Stopped
        if ends_at is not None and time.monotonic() > ends_at:
            raise TimedOut
        if not select.select([link], [], [], _POLL)[0]:
            continue
        with contextlib.suppress(ConnectionError):
            waiting += (read := link.recv(1 << 16))
            if not read:
                return {"ended": process.wait()}
        *lines, waiting = waiting.split(b"\n")
        for line in lines:
            message: Mapping[str, Any] = of_line(line.decode())
            if message["ask"] == "done":
                return message
            link.sendall(to_line(answer(message)).encode())


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole group, whose number the process keeps until it is waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    else:  # the others of its group, if there are any
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
