"""Run a step in Python: in a process of its own, or in a thread.

The process is the first of a group, which is killed when the step is over, when it takes too long,
when the run is cancelled, and (on its own) when the run is gone: nothing that it started is left.

A session that is not Spark Connect's is an object of its process, so a step that needs it runs
there, in a thread. A thread cannot be killed: one that takes too long is abandoned, with an
exception raised in it as soon as it runs Python again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import IO, Any, TextIO

from penstock.engine.python.helpers import CURRENT, Context
from penstock.engine.python.job import Job, of_line, perform, to_line

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
    """Return what the step was done with: its last message. ``answer`` answers what it asks
    meanwhile.

    ``{"ended": code}`` for a process that ended before ``main`` returned. Raises TimedOut, Stopped.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = _start(job, theirs)
        pumps = [_pump(process.stdout, "stdout", say), _pump(process.stderr, "stderr", say)]
        try:
            done = _talk(ours, job, answer, limits, process)
        finally:
            code = _end(process)
            for pump in pumps:
                pump.join(_GRACE)
    return {"ended": code} if done is None else done


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
        with stream:
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
) -> Mapping[str, Any] | None:
    """Its last message; None where it ends without one."""
    with contextlib.suppress(OSError):  # it has ended already
        link.sendall(f"{job.to_json()}\n".encode())
    for line in _lines(link, limits, process):
        message: Mapping[str, Any] = of_line(line.decode())
        if message["ask"] == "done":
            return message
        link.sendall(to_line(answer(message)).encode())
    return None


def _lines(
    link: socket.socket, limits: Limits, process: subprocess.Popen[bytes]
) -> Iterator[bytes]:
    """Yield what the process says, until it ends. Raises TimedOut, Stopped."""
    ends_at = None if limits.timeout is None else time.monotonic() + limits.timeout
    waiting, closed = b"", False
    while not _has_exited(process) or (not closed and select.select([link], [], [], 0)[0]):
        if limits.cancelled():
            raise Stopped
        if ends_at is not None and time.monotonic() > ends_at:
            raise TimedOut
        if closed:
            time.sleep(_POLL)
        elif select.select([link], [], [], _POLL)[0]:
            try:
                read = link.recv(1 << 16)
            except ConnectionError:
                read = b""
            closed = not read
            *lines, waiting = (waiting + read).split(b"\n")
            yield from lines


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Asked without reaping it: its number, which is its group's, stays its own."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def _end(process: subprocess.Popen[bytes]) -> int:
    """Kill what is left of the group; the exit code of the first."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    if process.stdin is not None:
        process.stdin.close()
    return code


_THREAD_GRACE = 2.0  # seconds for an abandoned thread to notice


def run_thread(job: Job, context: Context, say: Print, limits: Limits) -> Mapping[str, Any]:
    """Return what the step was done with. Raises TimedOut, Stopped."""
    done: list[Mapping[str, Any]] = []

    def work() -> None:
        CURRENT.set(context)
        with _heard(say):
            done.append(perform(job, context))

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    ends_at = None if limits.timeout is None else time.monotonic() + limits.timeout
    while thread.is_alive():
        thread.join(_POLL)
        if limits.cancelled() and thread.is_alive():
            _abandon(thread)
            raise Stopped
        if ends_at is not None and time.monotonic() > ends_at and thread.is_alive():
            _abandon(thread)
            raise TimedOut
    return done[0]


def _abandon(thread: threading.Thread) -> None:
    assert thread.ident is not None, "it was started"
    number, kind = ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, kind)
    thread.join(_THREAD_GRACE)


@contextmanager
def _heard(say: Print) -> Iterator[None]:
    """Hand what this thread prints to ``say``, a line at a time."""
    with _LOCK:
        for name in ("stdout", "stderr"):
            if not isinstance(getattr(sys, name), _Stream):
                setattr(sys, name, _Stream(name, getattr(sys, name)))
    me = threading.get_ident()
    _HEARD[me] = _Listener(say)
    try:
        yield
    finally:
        listener = _HEARD.pop(me)
        for name in ("stdout", "stderr"):
            listener.flush(name)
        with _LOCK:
            if not _HEARD:
                for name in ("stdout", "stderr"):
                    stream = getattr(sys, name)
                    if isinstance(stream, _Stream):
                        setattr(sys, name, stream.through)


class _Listener:
    """Lines of one thread; ``say`` may print itself, which passes through."""

    def __init__(self, say: Callable[[str, str], None]) -> None:
        self._say = say
        self._waiting = {"stdout": "", "stderr": ""}
        self.speaks = False

    def write(self, name: str, text: str) -> None:
        *lines, self._waiting[name] = (self._waiting[name] + text).split("\n")
        for line in lines:
            self._speak(name, line)

    def flush(self, name: str) -> None:
        if self._waiting[name]:
            line, self._waiting[name] = self._waiting[name], ""
            self._speak(name, line)

    def _speak(self, name: str, line: str) -> None:
        self.speaks = True
        try:
            self._say(name, line)
        finally:
            self.speaks = False


_HEARD: dict[int, _Listener] = {}
_LOCK = threading.Lock()


class _Stream:
    """A stream of the process, but for the threads that are heard."""

    def __init__(self, name: str, through: TextIO) -> None:
        self._name = name
        self.through = through

    def write(self, text: str) -> int:
        listener = _HEARD.get(threading.get_ident())
        if listener is None or listener.speaks:
            return self.through.write(text)
        listener.write(self._name, text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.through, name)
