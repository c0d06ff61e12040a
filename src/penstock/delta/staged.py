"""A Delta table as a transaction would leave it: a value, of which each change makes another.

New rows are written to files at once. Rows that go are kept as positions until the commit, which
writes them as deletion vectors where the table has these on, or else rewrites the files that they
are in (copy on write). Nothing is visible before the commit, and `rollback` removes what was
written.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.delta import checkpoints, vectors
from penstock.delta.actions import Add, Metadata
from penstock.delta.commit import Proposal
from penstock.delta.commit import commit as land
from penstock.delta.features import VECTORS, check_writable, protocol_for
from penstock.delta.history_entries import (
    BYTES,
    DELETED,
    FILES,
    INSERTED,
    UPDATED,
    WRITTEN,
    name_metrics,
    name_parameters,
)
from penstock.delta.options import checked_options
from penstock.delta.place import Place, Version
from penstock.delta.pruning import matching
from penstock.delta.scan import (
    ADDRESS,
    Addresses,
    Scan,
    absolute,
    live_rows,
    physical_rows,
    read,
)
from penstock.delta.schema import (
    column_comments,
    commented,
    evolved,
    partition_names,
    schema_text,
    table_schema,
)
from penstock.delta.statistics import loosened
from penstock.delta.writing import Target, Written, remove, write
from penstock.errors import CommitUnknown, SchemaMismatch, TableNotFound, UnsupportedFeature
from penstock.lake.format.schema import TableSchema, without_columns
from penstock.lake.reading.conversions.align import known
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.reading.deleted.row_addresses import ordered
from penstock.lazy import pa
from penstock.spark.functions import as_condition
from penstock.spark.session import session_zone
from penstock.sql.predicate import of_where
from penstock.sql.text import Predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ADDRESS", "Change", "Staged", "stage"]
_ALL = Predicate(None)


@dataclass(frozen=True, slots=True)
class Change:
    """Counts of the rows of the last operation, and the fingerprint of what it wrote."""

    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_written: int = 0
    fingerprint: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of rows by their names in `history_entries`."""
        return {
            INSERTED: self.rows_inserted,
            UPDATED: self.rows_updated,
            DELETED: self.rows_deleted,
            WRITTEN: self.rows_written,
        }


@dataclass(frozen=True, slots=True)
class Staged:
    """A table as it would be. ``base`` is the version that it was made from; without one it is new.

    ``metadata`` is None for a table that is still to be made. ``deleted`` are positions of rows
    that go, by their file's path; ``written`` whole paths of new files, of which ``files`` may name
    only some. ``reads`` are the predicates of what the change depends on, ``last`` is of the last
    operation.
    """

    place: Place
    base: Version | None = None
    metadata: Metadata | None = None
    files: tuple[Add, ...] = ()
    deleted: Mapping[str, pa.Int64Array] = field(default_factory=dict, compare=False)
    written: tuple[str, ...] = ()
    reads: tuple[Predicate, ...] = ()
    sort_by: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    last: Change = Change()

    @property
    def exists(self) -> bool:
        return self.metadata is not None

    @property
    def of_table(self) -> Metadata:
        """Raises TableNotFound."""
        if self.metadata is None:
            raise TableNotFound(
                f"there is no Delta table {self.place.name} at {self.place.uri}",
                hint="make it: append rows to it, or create it",
                data={"table": self.place.name},
            )
        return self.metadata

    @property
    def schema(self) -> TableSchema:
        """Raises TableNotFound."""
        return table_schema(self.of_table.schema_text)

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self.of_table.partition_by

    @property
    def comment(self) -> str | None:
        return self.of_table.description

    @property
    def column_comments(self) -> dict[str, str]:
        return column_comments(self.of_table)

    @property
    def has_changes(self) -> bool:
        if self.base is None or self.metadata is None:
            return self.metadata is not None
        before = self.base.state
        kept = {file.key for file in self.files} == before.by_key.keys() and not self.deleted
        return not kept or self.metadata != before.metadata

    @property
    def rows(self) -> int:
        """The number of rows."""
        whole = sum(live_rows(self.place.uri, file) for file in self.files)
        return whole - sum(map(len, self.deleted.values()))

    # Reading.

    def scan(self, files: Iterable[Add] | None = None) -> Scan:
        """All files, or some of them, to be read."""
        return Scan(
            table=self.place.name,
            uri=self.place.uri,
            metadata=self.of_table,
            files=self.files if files is None else tuple(files),
            deleted=self.deleted,
            numbered=self.files,
        )

    def matching(self, predicate: Predicate | None) -> tuple[Add, ...]:
        """The files that may hold rows of the predicate."""
        return matching(self.files, self.of_table, predicate)

    def predicate(self, where: str) -> Predicate:
        """The part of a condition that chooses files."""
        return of_where(where, zone=session_zone(self.place.spark()))

    def to_df(self, where: Predicate | str | None = None, *, addresses: bool = False) -> DataFrame:
        """The rows, as they would be. A Predicate chooses files only, a text filters rows as well.

        ``addresses`` adds the column ADDRESS, which tells a row from all others of this value.
        """
        predicate = self.predicate(where) if isinstance(where, str) else where
        scan = self.scan(self.matching(predicate))
        df = read(self.place.spark(), scan, addresses=addresses)
        return df.where(as_condition(where)) if isinstance(where, str) else df

    def count(self, where: str | None = None) -> int:
        """The number of rows of a condition."""
        return self.rows if where is None else self.to_df(where).count()

    # What the table is.

    def create(
        self,
        like: DataFrame | TableSchema,
        *,
        partition_by: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
    ) -> Staged:
        """Make the table, empty; one that is there gets these columns, and loses its rows."""
        schema = _schema(like)
        before = self.metadata
        metadata = Metadata(
            id=str(uuid4()) if before is None else before.id,
            schema_text=schema_text(schema, None if before is None else before.schema_text),
            partition_by=partition_names(schema, partition_by),
            configuration=self._options(configuration or {}),
            name=None if before is None else before.name,
            description=None if before is None else before.description,
            created=time.time_ns() // 1_000_000 if before is None else before.created,
        )
        made = replace(self, metadata=metadata, files=(), deleted={})
        made._check(deletes=bool(self.files))
        reads = (*self.reads, _ALL) if before is not None else self.reads
        return replace(made, reads=reads, operations=(*self.operations, "CREATE"))

    def evolve(self, like: DataFrame | TableSchema, *, drop: Sequence[str] = ()) -> Staged:
        """Add the columns that the table lacks, at the end.

        Raises SchemaMismatch for a type that differs, UnsupportedFeature for columns to drop.
        """
        if drop and without_columns(self.schema, drop) != self.schema:
            raise UnsupportedFeature(
                f"columns of the Delta table {self.place.name} are not dropped: its files would "
                "have to be read with column mapping",
                hint="overwrite the table without them",
            )
        metadata = evolved(self.of_table, _schema(like), self.place.name)
        return self._defined(metadata)

    def with_comment(self, text: str | None, column: str | None = None) -> Staged:
        """Set or remove the comment of the table or of a column."""
        return self._defined(commented(self.of_table, text, column))

    def with_configuration(self, configuration: Mapping[str, str]) -> Staged:
        """Set options of the table: ``delta.enableDeletionVectors`` and others."""
        pairs = self._options(configuration)
        return self._defined(replace(self.of_table, configuration=pairs))

    def _options(self, more: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The options with others. Raises UnsupportedFeature, ArgumentError."""
        before = {} if self.metadata is None else self.metadata.options
        return tuple({**before, **checked_options(more, self.place.name)}.items())

    def with_layout(self, sort_by: Sequence[str]) -> Staged:
        """Sort by these columns what is written from now on."""
        return replace(self, sort_by=tuple(sort_by))

    def _defined(self, metadata: Metadata) -> Staged:
        made = replace(self, metadata=metadata)
        made._check(deletes=False)
        changed = metadata != self.metadata
        return replace(made, operations=(*self.operations, "SET") if changed else self.operations)

    def _check(self, *, deletes: bool) -> None:
        """Raise UnsupportedFeature where the table's rules would not be kept."""
        before = None if self.base is None else self.base.state.protocol
        protocol = protocol_for(before, self.of_table)
        check_writable(protocol, self.of_table, self.place.name, deletes=deletes)

    # Rows.

    def write(self, df: DataFrame, *, fingerprint: bool = False) -> Written:
        """Write rows to files that nothing names yet."""
        target = Target(self.place.name, self.place.uri, self.of_table, self.sort_by)
        return write(df, target, fingerprint=fingerprint)

    def with_rows(self, new: Written) -> Staged:
        """The table with these files as well."""
        paths = (absolute(self.place.uri, file.path) for file in new.files)
        return replace(
            self,
            files=(*self.files, *new.files),
            written=(*self.written, *paths),
        )

    def without_files(self, gone: Iterable[Add]) -> Staged:
        """The table without these files."""
        keys = {file.key for file in gone}
        paths = {path for path, _ in keys}
        return replace(
            self,
            files=tuple(file for file in self.files if file.key not in keys),
            deleted={path: rows for path, rows in self.deleted.items() if path not in paths},
        )

    def without_rows(self, addresses: pa.ChunkedArray) -> tuple[Staged, int]:
        """The table without the rows of these addresses, and how many they are."""
        if not len(addresses):
            return self, 0
        found = Addresses.of(self.place.uri, self.files).positions(addresses)
        by_path = {file.path: file for file in self.files}
        deleted, emptied = dict(self.deleted), []
        for path, rows in found.items():
            before = deleted.get(path)
            both = rows if before is None else ordered(pa.concat_arrays([before, rows]))
            deleted[path] = both
            if len(both) == live_rows(self.place.uri, by_path[path]):
                emptied.append(by_path[path])
        made = replace(self, deleted=deleted).without_files(emptied)
        return made, sum(map(len, found.values()))

    def depends_on(self, *predicates: Predicate) -> Staged:
        """The same, which must not be committed where others added rows of a predicate."""
        return replace(self, reads=tuple(dict.fromkeys((*self.reads, *predicates))))

    def done(self, operation: str, last: Change) -> Staged:
        return replace(self, operations=(*self.operations, operation), last=last)

    # The end.

    def rollback(self, to: Staged | None = None) -> None:
        """Remove the files that were written, all or those since another value."""
        kept = set() if to is None else set(to.written)
        remove(self.place.uri, (path for path in self.written if path not in kept))

    def commit(
        self,
        *,
        message: str | None = None,
        user_metadata: Mapping[str, str] | None = None,
        app: tuple[str, int] | None = None,
        strict: bool = False,
    ) -> Version | None:
        """Commit; ``None`` where nothing was staged.

        ``strict`` refuses where rows have changed since ``base``, whatever was read. ``app`` is an
        application's id and the version of what it writes, which lands once.
        Raises CommitConflict (with ``app_version`` in its data where the version of ``app`` is
        there already), RetriesExhausted and others, where nothing landed and the files are removed;
        CommitUnknown, where they stay.
        """
        if not self.has_changes:
            self.rollback()
            return None
        settled = self
        try:
            settled = self.settled()
            proposal = settled._proposal(message, user_metadata or {}, app, strict)
            state = land(self.place.uri, self.place.name, proposal)
        except CommitUnknown:
            raise
        except BaseException:
            settled.rollback()
            raise
        named = {absolute(self.place.uri, file.path) for file in settled.files}
        named |= settled._vector_paths()
        remove(self.place.uri, (path for path in settled.written if path not in named))
        checkpoints.write_if_due(self.place.uri, state.number, state.metadata)
        return Version(state, dt.datetime.now(dt.UTC))

    def settled(self) -> Staged:
        """The same rows without ``deleted``: as deletion vectors, or in files of their own."""
        if not self.deleted:
            return self
        self._check(deletes=True)
        hit = [file for file in self.files if file.path in self.deleted]
        if self.of_table.is_on(VECTORS):
            return self._with_vectors(hit)
        written = self.write(read(self.place.spark(), self.scan(hit)))
        return self.without_files(hit).with_rows(written)

    def _with_vectors(self, hit: Sequence[Add]) -> Staged:
        uri = self.place.uri
        held = {file.path: file.vector for file in hit if file.vector is not None}
        before = vectors.positions(uri, held, self.place.name)
        whole = {
            path: ordered(pa.concat_arrays([before[path], rows])) if path in before else rows
            for path, rows in self.deleted.items()
        }
        made, written = vectors.write(uri, whole)
        marked = {
            file.path: replace(
                file,
                vector=made[file.path],
                stats=loosened(file.stats, physical_rows(uri, file)),
            )
            for file in hit
        }
        return replace(
            self,
            files=tuple(marked.get(file.path, file) for file in self.files),
            deleted={},
            written=(*self.written, *([] if written is None else [written])),
        )

    def _vector_paths(self) -> set[str]:
        uri = self.place.uri
        held = (file.vector for file in self.files)
        return {vectors.path_of(uri, v) for v in held if v is not None and v.storage != "i"}

    def _proposal(
        self,
        message: str | None,
        user_metadata: Mapping[str, str],
        app: tuple[str, int] | None,
        strict: bool,
    ) -> Proposal:
        state = None if self.base is None else self.base.state
        before = {} if state is None else state.by_key
        keys = {file.key for file in self.files}
        added = tuple(file for file in self.files if file.key not in before)
        removed = tuple(file for key, file in before.items() if key not in keys)
        operation = _operation(self.operations, created=state is None)
        return Proposal(
            base=state,
            metadata=self.of_table,
            added=added,
            removed=removed,
            reads=self.reads,
            operation=operation,
            parameters=name_parameters(
                operation, self.of_table.partition_by, is_overwrite=bool(removed)
            ),
            metrics=name_metrics(
                operation,
                {
                    **self.last.counts,
                    FILES: len(added),
                    BYTES: sum(file.size for file in added),
                },
            ),
            message=message,
            user_metadata=user_metadata,
            app=app,
            strict=strict,
        )


def stage(place: Place, version: Version | None) -> Staged:
    """A table's version, to be changed; ``None`` for one that does not exist."""
    if version is None:
        return Staged(place)
    return Staged(place, version, version.metadata, version.files)


_CREATES = frozenset({"CREATE", "WRITE", "SET"})


def _operation(operations: Sequence[str], *, created: bool) -> str:
    """The name of a commit, as Delta's writers call it."""
    rows = [name for name in operations if name not in {"CREATE", "SET"}]
    if created and set(operations) <= _CREATES:
        return "CREATE TABLE AS SELECT" if rows else "CREATE TABLE"
    if not rows:
        return "SET TBLPROPERTIES" if "SET" in operations else "CREATE OR REPLACE TABLE"
    return rows[-1] if len(set(rows)) == 1 else "MERGE"


def _schema(like: DataFrame | TableSchema) -> TableSchema:
    schema = like if isinstance(like, TableSchema) else schema_of(known(like))
    if not schema.columns:
        raise SchemaMismatch("a table needs a column", hint="select at least one")
    return schema
