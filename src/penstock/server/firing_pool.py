"""Run firings concurrently, each in its own thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from queue import Empty, SimpleQueue

from penstock.scheduler.values import Firing, FiringState
from penstock.server.firing_runner import FiringEnd, Runs

_INTERRUPT_INTERVAL = 0.2  # seconds between two interruptions of Spark


class FiringPool:
    """Runs firings up to a number of slots.

    Attributes:
        slots: The maximum number of concurrent firings.
    """

    def __init__(self, slots: int, run: Runs, wake: Callable[[], None]) -> None:
        """Create a pool without firings.

        Args:
            slots: The maximum number of concurrent firings.
            run: Runs a firing.
            wake: Called when a firing has ended, to start the next round of the service.
        """
        self.slots = slots
        self._run_firing = run
        self._wake = wake
        self._ends: SimpleQueue[FiringEnd] = SimpleQueue()
        self._threads: dict[str, tuple[Firing, threading.Thread]] = {}
        self._cancelled: dict[str, threading.Event] = {}

    @property
    def running(self) -> Mapping[str, Firing]:
        """Return the running firings, by id. An ended firing stays until `take_ends` returns it."""
        return {firing_id: firing for firing_id, (firing, _) in self._threads.items()}

    @property
    def free(self) -> int:
        """Return the number of free slots."""
        return max(0, self.slots - len(self._threads))

    def start(self, firing: Firing) -> None:
        """Run a firing in a new thread.

        Args:
            firing: The firing. It must not be running.
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
            end = self._run_firing(firing, cancelled)
        except Exception as error:  # a thread that fails must also report the end of its firing
            end = FiringEnd(
                replace(firing, state=FiringState.FAILED, reason=str(error)), None, error
            )
        self._ends.put(end)
        self._wake()

    def take_ends(self) -> list[FiringEnd]:
        """Return and remove the firings that have ended since the last call.

        Returns:
            The ends of the firings.
        """
        firing_ends: list[FiringEnd] = []
        while True:
            try:
                end = self._ends.get_nowait()
            except Empty:
                return firing_ends
            _, thread = self._threads.pop(end.firing.id)
            self._cancelled.pop(end.firing.id)
            thread.join()
            firing_ends.append(end)

    def cancel(self, firing_id: str) -> None:
        """Cancel a running firing. It publishes nothing more, and ends with its jobs in Spark.

        Args:
            firing_id: The id of the firing. A firing that does not run is ignored.
        """
        if firing_id in self._cancelled:
            self._cancelled[firing_id].set()

    def wait(self, seconds: float) -> bool:
        """Wait until all firings have ended.

        Args:
            seconds: The maximum wait.

        Returns:
            Whether all firings have ended.
        """
        return not self._wait_for_threads(seconds)

    def drain(self, seconds: float | None, interrupt: Callable[[], None] = lambda: None) -> bool:
        """Wait until all firings have ended, and cancel those that have not ended in time.

        Args:
            seconds: The time until they are cancelled; None for no limit.
            interrupt: Stops all jobs in Spark. It is called until the firings have ended, because a
                firing may have been about to start a job.

        Returns:
            False if a firing was cancelled.
        """
        late_ids = self._wait_for_threads(seconds)
        for firing_id in late_ids:
            self.cancel(firing_id)
        while self._wait_for_threads(_INTERRUPT_INTERVAL if late_ids else 0.0):
            interrupt()
        return not late_ids

    def _wait_for_threads(self, seconds: float | None) -> list[str]:
        """Wait for the ends of all threads, and return the ids of firings that still run."""
        deadline = None if seconds is None else time.monotonic() + seconds
        for _, thread in list(self._threads.values()):
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return [key for key, (_, thread) in self._threads.items() if thread.is_alive()]
