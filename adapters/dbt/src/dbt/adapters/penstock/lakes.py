"""The lakes of a profile and the one Spark session of the process, opened when first needed.

dbt opens a connection for each thread, and each has the same lakes: Penstock's are safe to use from
several threads, and one session serves them all.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.penstock.credentials import PenstockCredentials
from penstock.engine.session.connections import look_again
from penstock.errors import ArgumentError, CatalogMissing
from penstock.lakes.format.naming import fold
from penstock.lakes.lake import Lake
from penstock.masking import masked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = AdapterLogger("Penstock")


class Lakes:
    """The lakes of one profile, by the names that relations call their database."""

    def __init__(self, credentials: PenstockCredentials) -> None:
        self.credentials = credentials
        self.default = credentials.database
        self._arguments = {fold(k): v for k, v in credentials.attachments().items()}
        self._roots = {fold(k): v for k, v in credentials.roots().items()}
        self._opened: dict[str, Lake] = {}
        self._session: SparkSession | None = None
        self._lock = Lock()
        self._write_locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._starting = Lock()  # of its own: what needs no Spark does not wait for its start

    def lake(self, name: str | None = None) -> Lake:
        """The lake of this name, by default the target's own. Raises ArgumentError."""
        key = fold(name or self.default)
        with self._lock:
            if key not in self.names:
                known = ", ".join(sorted(self.names))
                raise ArgumentError(
                    f"the profile has no lake {name!r}",
                    hint=f"it has {known}; add others below lakes: in profiles.yml",
                )
            if key not in self._opened or self._opened[key].catalog.closed:
                self._opened[key] = self._open(key)
            if key in self._roots:
                look_again(self._opened[key].catalog)
            return self._opened[key]

    def _open(self, key: str) -> Lake:
        if key in self._roots:
            from penstock.destinations.delta.lake import DeltaLake

            return DeltaLake.of_root(spark=self.session, **self._roots[key])
        arguments = dict(self._arguments[key])
        uri = arguments.pop("uri")
        try:
            return Lake.attach(uri, spark=self.session, create_if_not_exists=False, **arguments)
        except CatalogMissing:  # said, as a wrong name would make another lake
            logger.warning(f"the catalog {masked(uri)} does not exist: it is created now")
            return Lake.attach(uri, spark=self.session, **arguments)

    def write_lock(self, table: str) -> Lock:
        """The lock of those batches that write a table of this full name."""
        with self._lock:
            return self._write_locks[fold(table)]

    @property
    def names(self) -> frozenset[str]:
        """The names of all lakes and Delta roots, in lower case."""
        return frozenset({*self._arguments, *self._roots})

    @property
    def started(self) -> SparkSession | None:
        """The session, if it has been started."""
        return self._session

    def session(self) -> SparkSession:
        """The session, started at the first call."""
        with self._starting:
            if self._session is None:
                from penstock.engine.session.open_session import open_session
                from penstock.settings.config import Settings

                spark, root = self.credentials.spark_settings(), Path.cwd()
                settings = Settings(root, "dbt", root, {}, _of_environment(spark))
                warm = bool(self.credentials.warm)
                self._session = open_session(settings, warm, self._hear)
            return self._session

    def close(self) -> None:
        """Close the catalogs. The session stays: another invocation in this process has it."""
        with self._lock:
            for lake in self._opened.values():
                lake.close()
            self._opened.clear()

    def _hear(self, event: object) -> None:
        logger.info(str(getattr(event, "message", event)))


def _of_environment(spark: Any) -> Any:
    """Add what Penstock reads of the environment itself: where Java is, and Spark's variables."""
    from dataclasses import replace

    return replace(
        spark,
        java_home=os.environ.get("JAVA_HOME"),
        path=os.environ.get("PATH"),
        environ=os.environ,
    )


class _Profiles:
    """The lakes of each profile that this process has used: dbt's connections are made by a class
    method, and one process may run several projects.
    """

    def __init__(self) -> None:
        self._known: dict[str, Lakes] = {}
        self._lock = Lock()

    def lakes(self, credentials: PenstockCredentials) -> Lakes:
        # Relative paths of a profile mean the project's directory, where dbt is when it connects.
        settings = {"directory": str(Path.cwd()), **credentials.to_dict(omit_none=False)}
        key = json.dumps(settings, sort_keys=True, default=str)
        with self._lock:
            if key not in self._known:
                self._known[key] = Lakes(credentials)
            return self._known[key]


_PROFILES = _Profiles()


def lakes_of(credentials: PenstockCredentials) -> Lakes:
    """The lakes of a profile: the same for all threads of the process."""
    return _PROFILES.lakes(credentials)
