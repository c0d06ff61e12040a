"""flush_inlined_data: inlined rows and deletes become files.

Rows keep their ids and the snapshots that made and ended them, so time travel and the change feed
stay the same. The rows are in the catalog's database, so no Spark is needed; one inlined table at a
time is held in memory. The inlining limit counts the rows of one write, so many writes may have
filled a table: flush before it has millions of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.errors import CommitConflict, CommitUnknown, LakeError
from penstock.lakes import storage
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.catalog.inlined.flush import Held, load_held
from penstock.lakes.catalog.options import write_facts
from penstock.lakes.format.changes import Flushed, FlushInlined
from penstock.lakes.format.files import (
    BEGIN_COLUMN,
    END_COLUMN,
    ROW_ID_COLUMN,
    DataFile,
    Partial,
    Table,
    sequence,
)
from penstock.lakes.format.inlined.values import arrow_schema, batches
from penstock.lakes.format.partitioning import partition_keys
from penstock.lakes.format.schema import EMBEDDED_ROW_ID, SNAPSHOT_ID
from penstock.lakes.maintenance.compaction import Folding
from penstock.lakes.maintenance.scope import HasCatalog, base_of, each, publish, tables_meant
from penstock.lakes.writing import arrow as arrow_files
from penstock.lakes.writing.settings import write_settings
from penstock.lakes.writing.spark import Target
from penstock.lazy import pa, pc

_ATTEMPTS = 5  # a flush that loses a race against a writer reads again
_SYSTEM = {name: f"_penstock_{name}" for name in (ROW_ID_COLUMN, BEGIN_COLUMN, END_COLUMN)}


@dataclass(frozen=True, slots=True)
class FlushedTable:
    """The number of row versions written to files, ended ones included."""

    schema_name: str
    table_name: str
    rows_flushed: int


def flush_inlined_data(
    lake: HasCatalog, table: str | None = None, *, schema: str | None = None
) -> list[FlushedTable]:
    """Move inlined rows to files: ``lake.flush_inlined_data()``.

    It flushes one table, those of a schema, or all, in one snapshot if there is anything to flush.
    In an open transaction the flush is part of it. Inlined tables of earlier columns stay, empty,
    until snapshots expire, as a DuckDB that is attached may read them.

    If the flush of several tables fails, each is flushed on its own, and errors are raised at the
    end.

    Raises CommitConflict when writers change the rows again and again meanwhile,
    UnsupportedFeature for types that are not written to files.
    """
    catalog = lake.catalog
    catalog.check_writable()
    tables = tables_meant(catalog, table, schema, base_of(lake))
    try:
        return _flush_with_retry(lake, tables)
    except CommitUnknown:
        raise
    except LakeError:
        if len(tables) == 1:
            raise
    return each(tables, lambda table: _flush_with_retry(lake, [table]))


def _flush_with_retry(lake: HasCatalog, tables: Sequence[Table]) -> list[FlushedTable]:
    for _ in range(_ATTEMPTS - 1):
        with suppress(CommitConflict):
            return _flush(lake, tables)
    return _flush(lake, tables)


def _flush(lake: HasCatalog, meant: Sequence[Table]) -> list[FlushedTable]:
    catalog, base = lake.catalog, base_of(lake)
    jobs: list[_Job] = []
    try:
        flushes: list[FlushInlined] = []
        now = (catalog.current(table, base.id) for table in meant)
        tables = [table for table in now if table is not None]
        for table in tables:
            job = _Job(catalog, table, base.id, [])
            jobs.append(job)
            flush = job.run()
            if flush is not None:
                flushes.append(flush)
        if not flushes:
            return []
        publish(lake, base, flushes, lambda: _remove(jobs), "flush of inlined data")
    except CommitUnknown:
        raise
    except BaseException:
        _remove(jobs)
        raise
    names = {table.id: table for table in tables}
    return [
        FlushedTable(names[flush.table_id].schema_name, names[flush.table_id].name, rows)
        for flush in flushes
        if (rows := sum(flushed.rows for flushed in flush.flushed))
    ]


def _remove(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        for directory in job.directories:
            storage.remove_directory(directory)


@dataclass(frozen=True, slots=True)
class _Job:
    """One table, read at a snapshot; ``directories`` are what it has written."""

    catalog: Catalog
    table: Table
    snapshot_id: int
    directories: list[str]

    def run(self) -> FlushInlined | None:
        with self.catalog.reading() as connection:
            held = load_held(connection, self.table, self.snapshot_id)
            deletes = inlined.load_deletes(connection, self.table, self.snapshot_id)
        if not held and deletes is None:
            return None
        flush = FlushInlined(
            self.table.id, self.table.qualified_name, self.table.path, self.snapshot_id
        )
        flush = replace(flush, flushed=tuple(self._flushed(stored) for stored in held))
        if deletes is None:
            return flush
        files = self.catalog.files(self.table, self.snapshot_id).files
        return self._folding.fold(flush, deletes.rows, files)

    @property
    def _folding(self) -> Folding:
        return Folding(self.table, self.snapshot_id, self.directories)

    def _flushed(self, held: Held) -> Flushed:
        """One file for each partition, with a delete file of the rows that ended."""
        part = held.part
        typed = pa.Table.from_batches(
            batches(part, part.schema, _SYSTEM), arrow_schema(part.schema, _SYSTEM)
        )
        system = {name: typed[hidden] for name, hidden in _SYSTEM.items()}
        written, others = arrow_files.write_history(
            typed.select(range(len(part.schema.columns))),
            self._target(held),
            {
                EMBEDDED_ROW_ID: system[ROW_ID_COLUMN],
                SNAPSHOT_ID: system[BEGIN_COLUMN],
            },
            {f"_penstock_beside_{name}": array for name, array in system.items()},
        )
        if written.directory is not None:
            self.directories.append(written.directory)
        files = (
            self._as_it_was(file, other.rename_columns(list(system)))
            for file, other in zip(written.files, others, strict=True)
        )
        return Flushed(held.name, part.rows.num_rows, tuple(files))

    def _target(self, held: Held) -> Target:
        """Partition and sort the rows like the table, if its keys existed at that version."""
        table, schema = self.table, held.part.schema
        with self.catalog.reading() as connection:
            facts = write_facts(connection, table.schema_name, table, self.snapshot_id)
        known = {column.id: column for column in schema.columns}
        now = (table.schema.find(field.column) for field in table.partition_by)
        there = [column is not None and known.get(column.id) == column for column in now]
        partitioned = bool(there) and all(there)
        return Target(
            table=table.qualified_name,
            path=table.path,
            schema=schema,
            partition_by=partition_keys(schema, table.partition_by) if partitioned else (),
            partition_id=table.partition_id if partitioned else None,
            sort_by=facts.sort_by,
            settings=write_settings(facts.options.get, facts.row_bytes),
        )

    def _as_it_was(self, file: DataFile, system: pa.Table) -> DataFile:
        """The file, which begins with its first row, with a delete file for rows that ended."""
        begins, ends = system[BEGIN_COLUMN], system[END_COLUMN]
        ended = pc.is_valid(ends)
        delete = None
        if pc.any(ended).as_py():
            places = sequence(system.num_rows).filter(_whole(ended))
            delete = self._folding.delete_file(file.path, places, _whole(ends.drop_null()))
        return replace(
            file,
            begin_snapshot=pc.min(begins).as_py(),
            row_id_start=pc.min(system[ROW_ID_COLUMN]).as_py(),
            partial=Partial(pc.max(begins).as_py()),
            delete=delete,
        )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return (
            pa.concat_arrays(combined.chunks)
            if combined.num_chunks
            else pa.array([], combined.type)
        )
    return combined
