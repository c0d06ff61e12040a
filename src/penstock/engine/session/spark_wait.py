"""Report what a starting session waits for: at once, and again every few seconds.

A cluster's master may be down, or have no room: Spark then tries for a minute or for ever, and
logs that where nobody looks.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from penstock.events import EventSink, SparkStarted, SparkStarting, SparkWaiting

EVERY = 10.0  # seconds between two reports
_ANSWER = 2.0  # seconds in which a port is expected to answer
_PORTS = {"spark": 7077, "sc": 15002, "k8s": 443}
_ADDRESS = re.compile(r"(spark|sc|k8s)://(?:https?://)?([^/;?]+)")


@contextmanager
def told_start(master: str | None, sink: EventSink, every: float = EVERY) -> Iterator[None]:
    """Tell ``sink`` that a session starts, where it stands, and that it has started."""
    began, started = monotonic(), threading.Event()
    name = called(master)
    sink(SparkStarting(name))
    if name is not None:
        arguments = (name, sink, began, started, every)
        threading.Thread(target=_report, args=arguments, daemon=True).start()
    try:
        yield
    finally:
        started.set()
    sink(SparkStarted(monotonic() - began))


def called(master: str | None) -> str | None:
    """A master without parameters, a token among them; None for a session of this process."""
    if master is None or re.match(r"local\b", master):
        return None
    return master.partition("/;")[0]


def _report(
    master: str, sink: EventSink, began: float, started: threading.Event, every: float
) -> None:
    while not started.wait(every):
        state = standing(master)
        if not started.is_set():
            sink(SparkWaiting(master, monotonic() - began, state))


def standing(master: str) -> str:
    """Return whether the master can be reached, as far as its address says."""
    address = _ADDRESS.match(master)
    if address is None:
        return "it has not given the session its resources yet"
    silent = [each for each in address[2].split(",") if not _answers(each, _PORTS[address[1]])]
    if silent:
        return f"nothing answers at {', '.join(silent)}"
    return f"{address[2]} answers; the session is not ready yet"


def _answers(address: str, port: int) -> bool:
    host, _, own = address.rpartition(":")
    try:
        with socket.create_connection((host or own, int(own) if host else port), _ANSWER):
            return True
    except (OSError, ValueError):
        return False
