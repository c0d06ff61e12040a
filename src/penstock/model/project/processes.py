"""Read very many new scripts in several processes, one for each core.

The processes are forks, so that they have the project as it is and hand back bytes alone. Threads
and macOS do not go with forks: there, and where a process ends early, the caller reads the rest.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
FEWEST = 50  # scripts of a process: it takes longer to start than to read fewer


def pack_in_processes(
    items: Sequence[T], pack: Callable[[T], tuple[str, bytes] | None]
) -> dict[str, bytes]:
    """Pack items in several processes.

    Args:
        items: What is to be packed.
        pack: Returns the key and the bytes of an item; None for one that cannot be packed.

    Returns:
        The bytes by their keys. Nothing where there are too few items, or a single core.
    """
    count = min(_count_cores(), len(items) // FEWEST)
    can_fork = sys.platform == "linux" and threading.active_count() == 1
    if count < 2 or not can_fork:
        return {}
    from multiprocessing import get_context  # late: most projects read few new scripts

    context = get_context("fork")
    packed: dict[str, bytes] = {}
    workers = []
    for number in range(count):
        receiver, sender = context.Pipe(duplex=False)
        arguments = (sender, items[number::count], pack)
        worker = context.Process(target=_send_packed, args=arguments, daemon=True)
        worker.start()
        sender.close()
        workers.append((worker, receiver))
    for worker, receiver in workers:
        with suppress(EOFError):  # it ended early: the caller reads what it had
            packed |= receiver.recv()
        worker.join()
    return packed


def _send_packed(
    sender: Connection, items: Sequence[T], pack: Callable[[T], tuple[str, bytes] | None]
) -> None:
    sender.send(dict(pair for item in items if (pair := pack(item)) is not None))
    sender.close()


def _count_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
