"""A Delta table's place, versions and history: a name, a directory and a session."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.delta import log
from penstock.delta.actions import Add, Metadata
from penstock.delta.commit import MESSAGE, user_metadata
from penstock.delta.features import check_readable
from penstock.delta.log import LogState
from penstock.delta.schema import table_schema
from penstock.errors import TableNotFound
from penstock.lake.format.schema import TableSchema
from penstock.lake.snapshot import Moment, moment
from penstock.spark.session import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table, as its log has it."""

    state: LogState
    committed_at: dt.datetime | None = None  # aware, UTC; None where its commit's file is gone

    @property
    def number(self) -> int:
        return self.state.number

    @property
    def metadata(self) -> Metadata:
        return self.state.metadata

    @property
    def schema(self) -> TableSchema:
        return table_schema(self.state.metadata.schema_text)

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self.state.metadata.partition_by

    @property
    def files(self) -> tuple[Add, ...]:
        return tuple(self.state.by_key.values())

    @property
    def created(self) -> str:
        """The table's id, which a table made anew has not."""
        return self.state.metadata.id

    @property
    def app_versions(self) -> Mapping[str, int]:
        return self.state.app_versions


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit of a table: ``user_metadata`` is what its writer said, ``time`` aware, in UTC."""

    version: int
    time: dt.datetime
    operation: str | None
    parameters: Mapping[str, Any]
    message: str | None
    user_metadata: Mapping[str, str]
    metrics: Mapping[str, Any]
    changes_rows: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A table's name (``schema.table``), its directory or URI, and the session that reads it."""

    name: str
    uri: str
    spark_source: SparkSource = field(compare=False, repr=False)

    def spark(self) -> SparkSession:
        return self.spark_source()

    def latest(self) -> Version | None:
        """The newest version; ``None`` where the table does not exist.

        Raises UnsupportedFeature for a table that is not read right here.
        """
        return self._checked(log.load(self.uri))

    def at(self, version: int | None = None, timestamp: Moment | None = None) -> Version:
        """A version by its number or by a time, the newest by default.

        Raises TableNotFound, SnapshotNotFound, UnsupportedFeature.
        """
        if timestamp is not None:
            version = log.version_at(self.uri, moment(timestamp))
        found = self._checked(log.load(self.uri, version))
        if found is None:
            raise TableNotFound(
                f"there is no Delta table {self.name} at {self.uri}",
                hint="make it: append rows to it, or look at tables() for those there are",
                data={"table": self.name},
            )
        return found

    def newer(self, version: Version) -> Version:
        """The newest version, from an older one: only the commits since are read."""
        state = log.advance(self.uri, version.state)
        return version if state is version.state else self._version(state)

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits of which the log still has files, newest first."""
        commits = log.commits_of(self.uri)[::-1]
        return [_entry(commit) for commit in commits[:limit]]

    def changes_since(self, version: int) -> list[HistoryEntry]:
        """The commits after a version, oldest first."""
        return [_entry(commit) for commit in log.commits_of(self.uri, after=version)]

    def _checked(self, state: LogState | None) -> Version | None:
        return None if state is None else self._version(state)

    def _version(self, state: LogState) -> Version:
        check_readable(state.protocol, state.metadata, self.name)
        with log.well_formed(f"the metadata of {self.uri} in version {state.number}"):
            table_schema(state.metadata.schema_text)
        return Version(state, log.time_of(self.uri, state.number))


def _entry(commit: log.Commit) -> HistoryEntry:
    said = user_metadata(commit.info)
    return HistoryEntry(
        version=commit.version,
        time=commit.time,
        operation=commit.operation,
        parameters=commit.info.get("operationParameters") or {},
        message=said.get(MESSAGE),
        user_metadata={key: value for key, value in said.items() if key != MESSAGE},
        metrics=commit.info.get("operationMetrics") or {},
        changes_rows=commit.changes_rows,
    )
