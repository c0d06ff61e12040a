"""The catalog as the rest of the lake sees it: all reads and commits go through this class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeVar

from sqlalchemy import Connection, Engine

from penstock.errors import (
    LakeClosed,
    NotFound,
    ReadOnlyLake,
    SchemaNotFound,
    TableNotFound,
    UnsupportedFeature,
)
from penstock.lakes.catalog import opening, reads
from penstock.lakes.catalog.commits.retry import RetryPolicy, retried
from penstock.lakes.catalog.database import engine as engines
from penstock.lakes.catalog.database.faults import corrupt
from penstock.lakes.catalog.database.location import CatalogLocation, parse_location
from penstock.lakes.catalog.definitions.stored_sql import view_names
from penstock.lakes.catalog.files import files
from penstock.lakes.catalog.opening import WRITTEN, Opening, only_readable
from penstock.lakes.catalog.options import Options
from penstock.lakes.catalog.snapshots import history
from penstock.lakes.format.files import FileSet, Table
from penstock.lakes.format.naming import fold
from penstock.lakes.snapshot import LATEST, At, Snapshot
from penstock.sql.identifiers import did_you_mean
from penstock.sql.text import Predicate

if TYPE_CHECKING:
    from penstock.lakes.catalog.commits.commit import OnCommit
    from penstock.lakes.catalog.snapshots.written import Written
    from penstock.lakes.format.changes import ChangeSet

T = TypeVar("T")

_REMEMBERED = 256  # tables

LOCK_TIMEOUT = 30.0  # seconds


class Catalog:
    """One DuckLake catalog. Threads may share it; each call has its own transaction."""

    def __init__(
        self,
        engine: Engine,
        location: CatalogLocation,
        *,
        uri: str,
        data_path: str,
        version: str,
        read_only: bool,
        retry: RetryPolicy,
        inlining_row_limit: int | None = None,
    ) -> None:
        """For `open`."""
        self.inlining_row_limit = inlining_row_limit
        self._opened = engine
        self.closed = False
        self.retry = retry  # of this catalog's next commits
        self._encrypted: bool | None = None
        self._known: dict[tuple[int, int, str, str], Table | None] = {}
        self._location = location
        self.uri = uri
        self.data_path = data_path
        self.version = version
        self.read_only = read_only
        self.last_committed: int | None = None  # the latest snapshot that this object made

    def __str__(self) -> str:
        """The catalog's location without a password."""
        return str(self._location)

    @classmethod
    def open(
        cls,
        uri: str,
        *,
        data_path: str | None = None,
        read_only: bool = False,
        create: bool = True,
        metadata_schema: str | None = None,
        override_data_path: bool = False,
        lock_timeout: float = LOCK_TIMEOUT,
        retry: RetryPolicy | None = None,
        inlining_row_limit: int | None = None,
        new_catalog: bool = False,
    ) -> Self:
        """Open the catalog at ``uri``, creating it when it is missing and ``create`` is set.

        ``data_path`` is where a new catalog keeps its files (default on SQLite: ``FILE.files/``);
        on an existing one it must be what is stored, unless ``override_data_path``.
        ``inlining_row_limit`` is what the lake has no option for. No catalog is made over a data
        path that holds files of a lake, unless ``new_catalog``. Raises
        CatalogMissing, CatalogVanished, CatalogUnreachable, CatalogVersionUnsupported,
        CatalogCorrupt, CatalogLocked (after ``lock_timeout`` seconds), DataPathError.
        """
        wanted = Opening(
            parse_location(uri),
            data_path=data_path,
            read_only=read_only,
            create=create,
            metadata_schema=metadata_schema,
            override_data_path=override_data_path,
            lock_timeout=lock_timeout,
            new_catalog=new_catalog,
        )
        opened = wanted.open()
        return cls(
            opened.engine,
            wanted.location,
            uri=uri,
            data_path=opened.data_path,
            version=opened.version,
            read_only=read_only,
            retry=retry or RetryPolicy(),
            inlining_row_limit=inlining_row_limit,
        )

    def close(self) -> None:
        """Close the catalog: every later call raises LakeClosed."""
        self.closed = True
        self._opened.dispose()

    @property
    def _engine(self) -> Engine:
        self.check_open()
        return self._opened

    def check_open(self) -> None:
        """Raise LakeClosed where `close` was called."""
        if self.closed:
            raise LakeClosed(
                f"the lake of the catalog {self._location} is closed",
                hint="attach it again, or keep the work inside the `with` block",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Catalog({str(self._location)!r})"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction in which every query sees the same state; unqualified tables are ours."""
        with engines.reading(self._engine, self._location) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction for state that has no data: no other writer runs meanwhile.

        Commits on a clean exit. Raises ReadOnlyLake, CatalogLocked.
        """
        self.check_writable()
        with engines.writing(self._engine, self._location) as connection:
            yield connection

    def write_alone(self, act: Callable[[Connection], T]) -> T:
        """The result of ``act`` in a `writing` transaction, retried after a conflict.

        DuckDB does not take Penstock's lock on PostgreSQL, so both may change the same rows.
        Raises what `writing` raises, and RetriesExhausted.
        """

        def run() -> T:
            with self.writing() as connection:
                return act(connection)

        return retried(run, self.retry)

    def check_writable(self) -> None:
        """Raise UnsupportedFeature or ReadOnlyLake where nothing can be written."""
        if self.version != WRITTEN:
            raise only_readable(self._location, self.version)
        if self.read_only:
            raise ReadOnlyLake(
                f"the catalog {self._location} is attached read-only",
                hint="attach it without read_only to write",
            )

    def check_own_files(self) -> None:
        """Raise UnsupportedFeature where files that it does not list may be needed by others."""

    def latest(self) -> Snapshot:
        return self.snapshot(LATEST)

    def beginning(self) -> tuple[Snapshot, Options]:
        """The latest snapshot and the lake's options, read together for a write."""
        from penstock.lakes.catalog.commits.writes import BEGINNING, beginning

        answer = engines.answer(self._engine, self._location, BEGINNING)
        latest, rows = beginning(answer)
        if latest is None:
            raise corrupt(self._location, "it holds no snapshot")
        options = Options(rows)
        self._encrypted = options.value("encrypted", None, None) == "true"
        return latest, options

    def snapshot(self, at: At = LATEST) -> Snapshot:
        """The snapshot at a version, in force at a time, or the latest.

        Raises SnapshotNotFound, which names what remains.
        """
        with self.reading() as connection:
            snapshot = reads.snapshot(connection, at)
            if snapshot is not None:
                return snapshot
            if at == LATEST:
                raise corrupt(self._location, "it holds no snapshot")
            raise reads.snapshot_missing(connection, at)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""
        with self.reading() as connection:
            return reads.snapshots(connection)

    def schemas(self, snapshot_id: int) -> list[str]:
        """The schemas by name. Raises UnsupportedFeature where one is in another."""
        with self.reading() as connection:
            rows = reads.schema_rows(connection, snapshot_id)
        for row in rows:
            reads.refuse_nested(row)
        return [row.schema_name for row in rows]

    def tables(self, snapshot_id: int) -> list[Table]:
        """Every table at a snapshot, by schema and name."""
        with self.reading() as connection:
            return reads.load_tables(connection, self.data_path, snapshot_id)

    def views(self, snapshot_id: int) -> list[str]:
        """``main.v`` of every view at a snapshot."""
        with self.reading() as connection:
            return view_names(connection, snapshot_id)

    def table(self, schema: str, name: str, snapshot_id: int) -> Table:
        """The table of this name, letter case aside. Raises SchemaNotFound, TableNotFound."""
        table = self.find_table(schema, name, snapshot_id)
        if table is None:
            raise self._no_table(schema, name, snapshot_id)
        return table

    def find_table(self, schema: str, name: str, snapshot_id: int) -> Table | None:
        with self.reading() as connection:
            return reads.find_table(connection, self.data_path, snapshot_id, schema, name)

    def known_table(self, schema: str, name: str, snapshot: Snapshot) -> Table | None:
        """`find_table`, remembered as long as nothing is redefined in the lake.

        Every change of a definition gives the lake's schema a new version.
        """
        if self.version != "1.0":
            return self.find_table(schema, name, snapshot.id)
        key = (snapshot.schema_version, snapshot.next_catalog_id, fold(schema), fold(name))
        if key not in self._known:
            table = self.find_table(schema, name, snapshot.id)
            if len(self._known) >= _REMEMBERED:
                self._known = {}
            self._known[key] = table
            return table
        return self._known[key]

    def _no_table(self, schema: str, name: str, snapshot_id: int) -> NotFound:
        with self.reading() as connection:
            schemas = [row.schema_name for row in reads.schema_rows(connection, snapshot_id)]
            names = reads.table_names(connection, snapshot_id)
            views = view_names(connection, snapshot_id)
        if fold(schema) not in map(fold, schemas):
            return SchemaNotFound(
                f"schema {schema!r} does not exist at snapshot {snapshot_id}",
                hint=did_you_mean(schema, schemas, "schemas"),
                data={"schema": schema},
            )
        candidates = [*(f"{row.schema_name}.{row.table_name}" for row in names), *views]
        return TableNotFound(
            f"table {schema}.{name} does not exist at snapshot {snapshot_id}",
            hint=did_you_mean(f"{schema}.{name}", candidates, "tables"),
            data={"schema": schema, "table": name},
        )

    def files(self, table: Table, snapshot_id: int, predicate: Predicate | None = None) -> FileSet:
        """The files of ``table`` at a snapshot, each with the delete file in force.

        Files that cannot match ``predicate`` are pruned.

        Raises UnsupportedFeature for a feature that cannot be ignored without wrong rows, and
        SnapshotNotFound where the snapshot has expired since it was looked up: its files are no
        longer listed then.
        """
        with self.reading() as connection:
            listed = files.load_files(connection, table, snapshot_id, predicate)
            if not reads.has_snapshot(connection, snapshot_id):
                raise reads.snapshot_missing(connection, At(version=snapshot_id))
        return listed

    def written_in(self, snapshot_ids: Sequence[int]) -> Mapping[tuple[int, str], Written]:
        """Count what snapshots wrote, each by its tables, ``schema.table``."""
        # Late: only what shows past runs asks.
        from penstock.lakes.catalog.snapshots.written import written_in

        with self.reading() as connection:
            return written_in(connection, snapshot_ids)

    def count_rows(self, schema: str, name: str, snapshot_id: int) -> int | None:
        """Count the rows of a table at a snapshot; None where that is not known any more."""
        from penstock.lakes.format.files import all_rows

        try:
            table = self.find_table(schema, name, snapshot_id)
            return None if table is None else all_rows(self.files(table, snapshot_id))
        except NotFound:
            return None

    def current(self, table: Table, snapshot_id: int) -> Table | None:
        """The table as it is at a snapshot, by whatever name; ``None`` where it was dropped."""
        with self.reading() as connection:
            tables = reads.load_tables(connection, self.data_path, snapshot_id, table.id)
        return tables[0] if tables else None

    def add_indexes(self) -> None:
        """Add the indexes of a catalog made by Penstock to one that another tool made.

        They make finding files many times faster in large lakes. Nothing else changes for DuckDB.
        Raises ReadOnlyLake, CatalogLocked.
        """
        with self.writing() as connection:
            opening.create_indexes(connection)

    def next_column_id(self, table: Table) -> int:
        """The first field id that no column of the table ever had."""
        with self.reading() as connection:
            return reads.next_column_id(connection, table.id)

    def changed_since(
        self,
        table: Table,
        snapshot_id: int,
        partition: tuple[str, str | None] | None = None,
    ) -> bool:
        """Return whether rows or columns of ``table`` changed after a snapshot.

        ``partition`` is a column and its value as the catalog's text: files that hold only other
        values do not count then. In doubt (a compaction, a file that is not partitioned by the
        column) the answer is yes.
        """
        with self.reading() as connection:
            return history.changed_since(connection, table, snapshot_id, partition)

    def commit(
        self,
        base: Snapshot,
        changes: ChangeSet,
        *,
        author: str | None = None,
        message: str | None = None,
        extra: str | None = None,
        on_commit: Sequence[OnCommit] = (),
    ) -> Snapshot:
        """Commit what a transaction that began at ``base`` staged; the snapshot made.

        ``on_commit`` are called with the connection and the new snapshot's id in the same
        transaction, again on each retry. Raises CommitConflict, RetriesExhausted (neither
        landed) and CommitUnknown (touch nothing).
        """
        # Imported late: readers do not need the code that writes.
        from penstock.lakes.catalog.commits.commit import Commit
        from penstock.lakes.catalog.commits.writes import CommitInfo

        self.check_writable()
        if self._encrypted is None:  # fixed when the lake was created
            self._encrypted = self.option("encrypted") == "true"
        if self._encrypted:
            raise UnsupportedFeature(
                f"the lake {self._location} wants its files encrypted, which this version does not",
                hint="write to it with DuckDB",
            )
        made = Commit(
            engine=self._engine,
            location=self._location,
            data_path=self.data_path,
            base=base,
            changes=changes,
            info=CommitInfo(author, message, extra),
            on_commit=on_commit,
            retry=self.retry,
            inlines=self.inlining_row_limit != 0,
        ).run()
        self.last_committed = max(made.id, self.last_committed or 0)
        return made

    @property
    def kind(self) -> str:
        """``sqlite``, ``postgres`` or ``duckdb``."""
        return self._location.kind

    def option(self, key: str, table: Table | None = None, schema: str | None = None) -> str | None:
        """An option of the lake: the table's own, else its schema's, else the global one.

        ``schema`` is the schema of a table that does not exist yet.
        """
        schema_id = None
        with self.reading() as connection:
            known = Options(reads.metadata_rows(connection))
            if known.by_schema(key) and table is not None:
                schema_id = reads.schema_id_of(connection, table.id)
            elif known.by_schema(key) and schema is not None:
                schema_id = _schema_id(connection, schema)
        return known.value(key, None if table is None else table.id, schema_id)

    def option_of(self, known: Options, key: str, table: Table | None) -> str | None:
        """`option` from options read earlier; queries the catalog only for a schema's option."""
        if table is not None and known.by_schema(key):
            return self.option(key, table)
        return known.value(key, None if table is None else table.id, None)


def _schema_id(connection: Connection, name: str) -> int | None:
    latest = reads.latest(connection)
    rows = () if latest is None else reads.schema_rows(connection, latest.id)
    return next((row.schema_id for row in rows if fold(row.schema_name) == fold(name)), None)


#: Find the catalog of a lake by the lake's name; None where no run has made it yet.
Catalogs = Callable[[str], Catalog | None]
