"""How long Spark's own jobs ran, from the monitoring API of its web page (Spark's public way)."""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Iterable
from datetime import datetime
from typing import Any

Interval = tuple[float, float]  # seconds since the epoch, begin and end


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


class Jobs:
    """The jobs of the one application whose page is at ``port``."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1/applications"
        self._application = self._get("")[0]["id"]

    def intervals(self) -> list[Interval]:
        """Every job's interval. Waits until none is running: the page lags a little."""
        for _ in range(100):
            jobs = self._get(f"/{self._application}/jobs")
            if all(job.get("completionTime") for job in jobs):
                return [
                    (_seconds(job["submissionTime"]), _seconds(job["completionTime"]))
                    for job in jobs
                ]
            time.sleep(0.1)
        raise RuntimeError("Spark's jobs did not end within 10 s")

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self._base + path, timeout=10) as answer:
            return json.load(answer)


def _seconds(text: str) -> float:
    """An instant as the API writes it, ``2026-01-31T10:00:00.123GMT``."""
    return datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp()


def covered(window: Interval, jobs: Iterable[Interval]) -> float:
    """Seconds of the window in which at least one job ran: the length of the union."""
    total, reached = 0.0, window[0]
    for begin, end in sorted(jobs):
        fresh = max(begin, reached)
        reached = max(reached, min(end, window[1]))
        total += max(0.0, reached - fresh)
    return total
