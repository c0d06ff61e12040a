"""UUIDs of version 7, which begin with the time at which they were made (RFC 9562, 5.7)."""

from __future__ import annotations

import datetime as dt
import re
import secrets
import threading
import time
import uuid
from collections.abc import Callable

_UUID7 = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(?![0-9a-f])"
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def new_uuid7() -> str:
    """Make one: 48 bits of milliseconds, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    return str(uuid.UUID(int=value | 0b10 << 62 | secrets.randbits(62)))


class Uuid7Sequence:
    """UUIDs of version 7, each greater than those that were made before it. Threads may share it.

    The 12 bits behind the time count what is made within a millisecond.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        """Create a sequence.

        Args:
            clock: Returns nanoseconds. It may go back.
        """
        self._clock = clock
        self._count = 0  # milliseconds, then 12 bits
        self._lock = threading.Lock()

    def __call__(self) -> str:
        """Return the next one."""
        with self._lock:
            self._count = max(self._clock() // 1_000_000 << 12, self._count + 1)
            milliseconds, number = divmod(self._count, 1 << 12)
        value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | number << 64
        return str(uuid.UUID(int=value | 0b10 << 62 | secrets.randbits(62)))


def uuid7_time(path: str) -> dt.datetime | None:
    """Return when the oldest version 7 UUID in the names of a path was made; ``None`` without any.

    Both DuckDB and Penstock name each file, or the directory of one write, by such a UUID. Those
    in ``column=value`` directories are the user's values.
    """
    names = (name for name in path.split("/") if "=" not in name)
    texts = [text for name in names for text in _UUID7.findall(name)]
    times = [uuid.UUID(text).int >> 80 for text in texts]
    return None if not times else _EPOCH + dt.timedelta(milliseconds=min(times))
