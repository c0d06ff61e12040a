"""A Spark session as the lake uses it: its settings, when it starts, and cached objects.

PySpark creates a column or a reader by calls to the JVM, one for each part: the expressions to
write a table of twenty columns take 250 calls, some 30 ms, which is more than the rows of a small
slice take. Objects that depend on values alone are cached with the session.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import EnvironmentMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark logs every error with a query context a second time, as JSON with a Java stack.
_SECOND_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
SparkSource = Callable[[], "SparkSession"]

# Runtime settings, of plain sessions and of Spark Connect alike.
_SETTINGS: Mapping[str, str] = {
    # The format identifies columns by field id, so a renamed column is still the same column.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # A file without ids that is not registered under a name mapping must fail, not read as NULL.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # The default, INT96, is unreadable for others and has no statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Dates before 1582 mean the same in DuckDB, which knows the Gregorian calendar only.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # Above this many paths Spark starts a job to list them: 25 s instead of 1.7 s for 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # Merges keep their source and matches for seconds only: compressing them costs more CPU than it
    # saves memory (a tenth of a merge of 1M rows into 10M).
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Above this many bytes Arrow rows are sent to the executors: as a relation of the plan each
    # rule of the optimizer walks through them (500,000 of 16 bytes: 2.2 s of one core instead of
    # 0.9 s, broadcast). Smaller ones, the usual case, stay in the plan, which saves a job.
    "spark.sql.execution.arrow.localRelationThreshold": "256k",
    # The catalog knows the files; a missing one is an error, never fewer rows.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}


def prepare(spark: SparkSession, more: Mapping[str, str] | None = None) -> SparkSession:
    """Set what the lake needs on ``spark`` and return it. Done once when a lake first uses it.

    ``more`` are settings of this lake alone, as its store's.
    """
    quiet()
    for key, value in {**_SETTINGS, **(more or {})}.items():
        spark.conf.set(key, value)
    return spark


def quiet() -> None:
    """Keep errors out of PySpark's own log: ours say what they say, and it adds a Java stack."""
    from pyspark.logger import PySparkLogger

    for logger in _SECOND_LOGGERS:
        PySparkLogger.getLogger(logger).setLevel("CRITICAL")


def session_zone(spark: SparkSession) -> str:
    """The time zone in which the session reads times without one."""
    return str(spark.conf.get("spark.sql.session.timeZone") or "UTC")


def is_connect(session: SparkSession) -> bool:
    """Return whether the session is one of Spark Connect: its plans are analysed by the server, and
    again at each action, with the temporary views that there are then.
    """
    return "connect" in type(session).__module__


@dataclass(frozen=True, slots=True)
class Starter:
    """A function that returns a session, and one that says whether a session is still to be started
    that will have only Spark's own functions.
    """

    session: SparkSource
    is_plain: Callable[[], bool]

    def __call__(self) -> SparkSession:
        return self.session()


class _Source:
    """Returns the prepared session, which is requested when it is first needed."""

    def __init__(
        self, spark: SparkSession | SparkSource | None, more: Callable[[], Mapping[str, str]]
    ) -> None:
        self._spark = spark
        self._more = more
        self._prepared: SparkSession | None = None

    @property
    def is_started(self) -> bool:
        return self._prepared is not None

    @property
    def is_plain(self) -> bool:
        return isinstance(self._spark, Starter) and self._spark.is_plain()

    def __call__(self) -> SparkSession:
        if self._prepared is None:
            # A session has no __call__; a function that starts one is called at the first use.
            session = self._spark() if callable(self._spark) else self._spark or _running()
            self._prepared = prepare(session, self._more())
        return self._prepared


def _running() -> SparkSession:
    """Return the session of this process, of Spark Connect or not.

    :raises EnvironmentMissing: there is none
    """
    if "pyspark" in sys.modules:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        with suppress(PySparkRuntimeError):  # it has none
            return SparkSession.active()
    raise EnvironmentMissing(
        "this lake was attached without a Spark session, which data needs",
        hint="attach it with spark=, such as project.spark or SparkSession.builder.getOrCreate()",
    )


def source(
    spark: SparkSession | SparkSource | None, more: Callable[[], Mapping[str, str]] = dict
) -> SparkSource:
    """A function that returns the prepared session, from the argument of `Lake.attach`.

    Without a session it is that of this process when data is first needed.

    ``more`` returns the settings of this lake alone; it is called when the session is first needed.
    """
    return _Source(spark, more)


def may_start(spark: SparkSource) -> bool:
    """Return whether requesting the session may take the seconds that Spark needs to start."""
    return isinstance(spark, _Source) and not spark.is_started


def starts_plain(spark: SparkSource) -> bool:
    """Return whether a session is still to be started that will have only Spark's own functions."""
    return isinstance(spark, _Source) and not spark.is_started and spark.is_plain


_T = TypeVar("_T")
_MOST = 256  # objects of a session; the least recently used are evicted
_NAME = "_penstock_cache"


class SessionCache:
    """Objects that lakes have created for one session, not those of DataFrames, by their keys."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._cached: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The result of ``make`` for this key; exceptions are not cached.

        Two threads may both call ``make``, which is harmless.
        """
        with self._lock:
            if key in self._cached:
                self._cached.move_to_end(key)
                cached: _T = self._cached[key]
                return cached
        made = make()
        with self._lock:
            self._cached[key] = made
            while len(self._cached) > self._most:
                self._cached.popitem(last=False)
        return made


def cache_of(session: SparkSession) -> SessionCache:
    """The cache of this session, stored on the session itself, with which it is collected.

    In a global table a cached reader, which holds its session, would keep both alive.
    """
    cache: SessionCache = session.__dict__.setdefault(_NAME, SessionCache())
    return cache
