"""Objects of Spark that follow from values alone, made once a session and used again.

A column or a reader of PySpark is made by calls to the JVM, one for each part of it: the columns
that a table of twenty is written by take 250 calls, some 30 ms, which is more than the rows of a
small slice take. What is kept here is not of any DataFrame: columns that name others, readers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")
_MOST = 256  # objects of a session; those used longest ago go
_NAME = "_penstock_kept"


class Kept:
    """What one session's lakes have made, by what it was made of."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._found: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What ``make`` returned for this key; what it raises is not kept.

        Two threads may make it both, which is no harm.
        """
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                found: _T = self._found[key]
                return found
        made = make()
        with self._lock:
            self._found[key] = made
            while len(self._found) > self._most:
                self._found.popitem(last=False)
        return made


def kept_with(session: SparkSession) -> Kept:
    """What is kept for this session; it goes when the session does.

    On the session itself: a reader holds its session, so in a table beside it both would stay.
    """
    found: Kept = session.__dict__.setdefault(_NAME, Kept())
    return found
