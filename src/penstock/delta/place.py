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
from penstock.delta.scan import Scan, read
from penstock.delta.schema import table_schema
from penstock.delta.statistics import matching
from penstock.errors import TableNotFound
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.snapshot import Moment, moment
from penstock.spark.functions import as_condition
from penstock.spark.session import SparkSource, session_zone
from penstock.sql.predicate import of_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.sql.text import Predicate


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table, as its log has it."""

    state: LogState

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
        state = self._checked(log.load(self.uri, version))
        if state is None:
            raise TableNotFound(
                f"there is no Delta table {self.name} at {self.uri}",
                hint="make it: append rows to it, or look at tables() for those there are",
                data={"table": self.name},
            )
        return state

    def read(self, version: Version, where: Predicate | str | None = None) -> DataFrame:
        """The rows of a version. A Predicate chooses files only, a text filters rows as well."""
        spark = self.spark()
        predicate = of_where(where, zone=session_zone(spark)) if isinstance(where, str) else where
        files = matching(version.files, version.metadata, predicate)
        df = read(spark, Scan(self.name, self.uri, version.metadata, files))
        return df.where(as_condition(where)) if isinstance(where, str) else df

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits of which the log still has files, newest first."""
        commits = log.commits_of(self.uri)[::-1]
        return [_entry(commit) for commit in commits[:limit]]

    def _checked(self, state: LogState | None) -> Version | None:
        if state is None:
            return None
        check_readable(state.protocol, state.metadata, self.name)
        with log.well_formed(f"the metadata of {self.uri} in version {state.number}"):
            table_schema(state.metadata.schema_text)
        return Version(state)


def _entry(commit: log.Commit) -> HistoryEntry:
    metadata = user_metadata(commit.info)
    return HistoryEntry(
        version=commit.version,
        time=commit.time,
        operation=commit.operation,
        parameters=commit.info.get("operationParameters") or {},
        message=metadata.get(MESSAGE),
        user_metadata={key: value for key, value in metadata.items() if key != MESSAGE},
        metrics=commit.info.get("operationMetrics") or {},
        changes_rows=commit.changes_rows,
    )
