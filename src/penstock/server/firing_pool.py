"""Run firings side by side, each in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from queue import Empty, SimpleQueue

from penstock.scheduler.values import Firing, FiringState
from penstock.server.firing_runner import FiringEnd, Runs


class FiringPool:
    """Runs at most so many firings at once.

    Attributes:
        slots: The number of firings that run at once.
    """

    def __init__(self, slots: int, runs: Runs, wake: Callable[[], None]) -> None:
        """Create a pool without firings.

        Args:
            slots: The number of firings that run at once.
            runs: Runs a firing.
            wake: Is called when a firing has ended.
        """
        self.slots = slots
        self._runs = runs
        self._wake = wake
        self._ends: SimpleQueue[FiringEnd] = SimpleQueue()
        self._threads: dict[str, tuple[Firing, threading.Thread]] = {}
        self._cancelled: dict[str, threading.Event] = {}

    @property
    def running(self) -> Mapping[str, Firing]:
        """Return the firings that run, by id. One that has ended stays until it is taken."""
        return {firing_id: firing for firing_id, (firing, _) in self._threads.items()}

    @property
    def free(self) -> int:
        """Return how many more firings can run."""
        return max(0, self.slots - len(self._threads))

    def start(self, firing: Firing) -> None:
        """Run a firing in a thread.

        Args:
            firing: A firing that does not run.
        """
        cancelled = threading.Event()
        thread = threading.Thread(
            target=self._run, args=(firing, cancelled), name=f"penstock-firing-{firing.id[-8:]}"
        )
        self._threads[firing.id] = firing, thread
        self._cancelled[firing.id] = cancelled
        thread.start()

    def _run(self, firing: Firing, cancelled: threading.Event) -> None:
        try:
            end = self._runs(firing, cancelled)
        except Exception as error:  # whoever takes the finished must see this one
            end = FiringEnd(
                replace(firing, state=FiringState.FAILED, reason=str(error)), None, error
            )
        self._ends.put(end)
        self._wake()

    def take_ends(self) -> list[FiringEnd]:
        """Return the firings that have ended since the last call.

        Returns:
            Their ends.
        """
        finished: list[FiringEnd] = []
        while True:
            try:
                end = self._ends.get_nowait()
            except Empty:
                return finished
            _, thread = self._threads.pop(end.firing.id)
            self._cancelled.pop(end.firing.id)
            thread.join()
            finished.append(end)

    def cancel(self, firing_id: str) -> None:
        """Stop a firing that runs. It finished when Spark has stopped its jobs.

        Args:
            firing_id: The firing. One that does not run is left alone.
        """
        if firing_id in self._cancelled:
            self._cancelled[firing_id].set()

    def wait(self, seconds: float) -> bool:
        """Wait until all firings have ended.

        Args:
            seconds: How long to wait at most.

        Returns:
            Whether all have ended.
        """
        deadline = time.monotonic() + seconds
        for _, thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for _, thread in self._threads.values())

    def drain(self, seconds: float | None) -> bool:
        """Wait until all firings have ended, and stop those that have not ended in time.

        Args:
            seconds: How long to wait before they are stopped; None for any time.

        Returns:
            Whether all ended by themselves.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        for _, thread in list(self._threads.values()):
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        late = [name for name, (_, thread) in self._threads.items() if thread.is_alive()]
        for name in late:
            self.cancel(name)
        for name in late:
            self._threads[name][1].join()
        return not late
