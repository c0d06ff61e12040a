"""A step beside the run's own Spark session, in a thread: for sessions that have no address.

A session that is not Spark Connect's is an object of its process, so a step that needs it runs
there. A thread cannot be killed: one that takes too long is abandoned, with an exception raised in
it as soon as it runs Python again.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TextIO

from penstock.engine.python.helpers import CURRENT, Context
from penstock.engine.python.job import Job
from penstock.engine.python.perform import perform
from penstock.engine.python.process import Limits, Print, Stopped, TimedOut

_POLL = 0.1  # seconds between two looks at the clock and at the run
_GRACE = 2.0  # seconds for an abandoned thread to notice


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
    thread.join(_GRACE)


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
