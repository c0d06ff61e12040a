"""Rows that maintenance writes into the catalog: of compactions, and of rollbacks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, inspect, select, text
from sqlalchemy import Table as StoredTable

from penstock.errors import CommitConflict, UnsupportedFeature
from penstock.lakes.catalog.commit_context import CommitContext
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.engine import metadata_schema
from penstock.lakes.catalog.database.location import resolve, stored_path
from penstock.lakes.catalog.database.round_trips import chunks
from penstock.lakes.catalog.files.registration import partition_rows, stats_rows
from penstock.lakes.catalog.inlined import flush, inlined
from penstock.lakes.format.changes import Compaction, FlushInlined, MergeFiles, RewriteFiles
from penstock.lakes.format.files import BEGIN_COLUMN, ROW_ID_COLUMN, ColumnStats, DataFile
from penstock.lakes.format.naming import quote_identifier

_OF_FILES = (t.file_column_stats, t.file_partition_value, t.file_variant_stats)

Kind = MergeFiles | RewriteFiles


def write(context: CommitContext, compaction: Compaction) -> None:
    """Write one compaction. Raises CommitConflict where its files are not in force any more."""
    _WRITERS[type(compaction)](context, compaction)


def _merge(context: CommitContext, compaction: MergeFiles) -> None:
    sources = _sources(compaction)
    _check_in_force(context, compaction, sources)
    _schedule(context, compaction, sources)
    for chunk in chunks(sources):
        for table in (t.data_file, *_OF_FILES):
            context.connection.execute(table.delete().where(table.c.data_file_id.in_(chunk)))
    _register(context, compaction, begins_now=False)
    context.tokens.of("merge_adjacent", compaction.table_id)


def _rewrite(context: CommitContext, compaction: RewriteFiles) -> None:
    sources = _sources(compaction)
    if compaction.folded is not None:
        flush.fold(context, compaction.folded)
    for chunk in chunks(sources):
        of_table = (
            t.data_file.c.data_file_id.in_(chunk),
            t.data_file.c.table_id == compaction.table_id,
        )
        if context.end(t.data_file, *of_table) != len(chunk):
            raise _files_gone(compaction)
        c = t.delete_file.c
        context.end(t.delete_file, c.data_file_id.in_(chunk), c.table_id == compaction.table_id)
    _recount_files(context, compaction)
    _register(context, compaction, begins_now=True)
    context.tokens.of("rewrite_delete", compaction.table_id)


def _flush(context: CommitContext, compaction: FlushInlined) -> None:
    flush.write(context, compaction, _register_numbered)


_WRITERS: Mapping[type, Callable[[CommitContext, Any], None]] = {
    FlushInlined: _flush,
    MergeFiles: _merge,
    RewriteFiles: _rewrite,
}


def _sources(compaction: Kind) -> list[int]:
    return [source for new in compaction.files for source in new.sources]


def _check_in_force(context: CommitContext, compaction: Kind, sources: Sequence[int]) -> None:
    c = t.data_file.c
    for chunk in chunks(sources):
        query = select(func.count()).where(
            c.data_file_id.in_(chunk), c.table_id == compaction.table_id, c.end_snapshot.is_(None)
        )
        if context.connection.execute(query).scalar_one() != len(chunk):
            raise _files_gone(compaction)


def _schedule(context: CommitContext, compaction: Kind, sources: Sequence[int]) -> None:
    c = t.data_file.c
    now = dt.datetime.now(dt.UTC)
    for chunk in chunks(sources):
        query = select(c.data_file_id, c.path, c.path_is_relative)
        rows = context.connection.execute(query.where(c.data_file_id.in_(chunk))).all()
        context.insert(
            t.files_scheduled_for_deletion,
            [
                {"data_file_id": row.data_file_id, "schedule_start": now}
                | stored_path(
                    context.data_path,
                    resolve(compaction.table_path, row.path, row.path_is_relative),
                )
                for row in rows
            ],
        )


def _register(context: CommitContext, compaction: Kind, *, begins_now: bool) -> None:
    """Register new files without statistics of the table, which count their rows already."""
    new = _files(compaction)
    numbered = list(zip(context.ids.files(len(new)), new, strict=True))
    _register_numbered(context, compaction, numbered, begins_now=begins_now)


def _register_numbered(
    context: CommitContext,
    compaction: Kind | FlushInlined,
    numbered: Sequence[tuple[int, DataFile]],
    *,
    begins_now: bool = False,
) -> None:
    table_id = compaction.table_id
    context.insert(
        t.data_file,
        [
            {
                "data_file_id": file_id,
                "table_id": table_id,
                "begin_snapshot": context.snapshot_id if begins_now else file.begin_snapshot,
                "file_format": "parquet",
                "record_count": file.record_count,
                "file_size_bytes": file.size_bytes,
                "footer_size": file.footer_size,
                "row_id_start": file.row_id_start,
                "partition_id": file.partition_id,
                "mapping_id": file.mapping_id,
                "partial_max": file.partial.last if file.partial else None,
            }
            | stored_path(compaction.table_path, file.path)
            for file_id, file in numbered
        ],
    )
    context.insert(t.file_partition_value, list(partition_rows(numbered, table_id)))
    context.insert(t.file_column_stats, list(stats_rows(numbered, table_id)))


def _files(compaction: Kind) -> list[DataFile]:
    return [new_file.file for new_file in compaction.files if new_file.file is not None]


def _recount_files(context: CommitContext, compaction: RewriteFiles) -> None:
    """Count the table's files in force again after a rewrite; row ids continue as before.

    Bounds of columns stay: they are true for fewer rows, too.
    """
    c = t.data_file.c
    sums = select(
        func.coalesce(func.sum(c.record_count), 0), func.coalesce(func.sum(c.file_size_bytes), 0)
    ).where(c.table_id == compaction.table_id, c.end_snapshot.is_(None))
    rows, size = context.connection.execute(sums).one()
    new = _files(compaction)  # which are not in the catalog yet: inserts wait
    context.connection.execute(
        t.table_stats.update()
        .where(t.table_stats.c.table_id == compaction.table_id)
        .values(
            record_count=int(rows) + sum(file.record_count for file in new),
            file_size_bytes=int(size) + sum(file.size_bytes for file in new),
        )
    )


def _files_gone(compaction: Kind) -> CommitConflict:
    return CommitConflict(
        f"files of table {compaction.table_name} that were compacted no longer exist",
        hint="nothing was changed; run it again on the table as it is now",
    )


Version = tuple[int, int]  # of an inlined row: its row id, and the snapshot that it began in


def file_stats(
    connection: Connection, table_id: int, file_ids: Sequence[int]
) -> dict[int, tuple[ColumnStats, ...]]:
    """The statistics of these data files, as they are registered."""
    c = t.file_column_stats.c
    names = ("column_id", "column_size_bytes", "value_count", "null_count", "min_value")
    stats_by_file: dict[int, list[ColumnStats]] = {}
    for ids in chunks(file_ids):
        query = select(c.data_file_id, *(c[n] for n in names), c.max_value, c.contains_nan).where(
            c.table_id == table_id, c.data_file_id.in_(ids)
        )
        for file_id, *values in connection.execute(query):
            stats_by_file.setdefault(file_id, []).append(ColumnStats(*values))
    return {key: tuple(stats) for key, stats in stats_by_file.items()}


def bring_back(
    connection: Connection, table_id: int, name: str, snapshot_id: int, rows: Sequence[Version]
) -> None:
    """Insert ended versions of inlined rows again, as they are stored.

    Runs within the commit that makes ``snapshot_id``, after its other changes. Raises
    UnsupportedFeature where they were stored with other columns than the table has now.
    """
    stored = inlined.row_tables(connection, table_id)
    if not stored:
        raise _gone(name)
    newest = stored[-1]
    back = 0
    for table in stored:
        versions = _having(connection, table, rows)
        if versions:
            _check_columns(connection, table, newest, name)
            _copy(connection, table, newest, snapshot_id, versions)
        back += len(versions)
    if back != len(rows):
        raise _gone(name)
    c, s = t.snapshot_changes.c, t.table_stats.c
    made = connection.execute(select(c.changes_made).where(c.snapshot_id == snapshot_id)).scalar()
    tokens = [*filter(None, (made or "").split(",")), f"inlined_insert:{table_id}"]
    connection.execute(
        t.snapshot_changes.update()
        .where(c.snapshot_id == snapshot_id)
        .values(changes_made=",".join(dict.fromkeys(tokens)))
    )
    connection.execute(
        t.table_stats.update()
        .where(s.table_id == table_id)
        .values(record_count=s.record_count + back)
    )


def _having(connection: Connection, table: StoredTable, rows: Sequence[Version]) -> list[Version]:
    """Return those of ``rows`` that are in ``table``."""
    wanted, begins, ids = set(rows), table.c[BEGIN_COLUMN], table.c[ROW_ID_COLUMN]
    versions: list[Version] = []
    for some in chunks(sorted({row_id for row_id, _ in rows})):
        there = connection.execute(select(ids, begins).where(ids.in_(some)))
        versions += [(row_id, begin) for row_id, begin in there if (row_id, begin) in wanted]
    return sorted(versions)


def _check_columns(
    connection: Connection, table: StoredTable, newest: StoredTable, name: str
) -> None:
    if _columns(connection, table.name) != _columns(connection, newest.name):
        raise UnsupportedFeature(
            f"rows of table {name} that the catalog itself held then had other columns, so that "
            "they cannot come back as they were",
            hint="read them with AT (VERSION => ...) and insert them",
            data={"table": name},
        )


def _copy(
    connection: Connection,
    table: StoredTable,
    newest: StoredTable,
    snapshot_id: int,
    rows: Sequence[Version],
) -> None:
    names = [quote_identifier(column) for column, _ in _columns(connection, table.name)]
    row_id, begin, end, *own = names
    listed = "".join(f", {column}" for column in own)
    statement = text(
        f"INSERT INTO {_qualified(connection, newest.name)} ({row_id}, {begin}, {end}{listed}) "
        f"SELECT {row_id}, :snapshot, NULL{listed} FROM {_qualified(connection, table.name)} "
        f"WHERE {row_id} = :row AND {begin} = :began"
    ).bindparams(bindparam("snapshot"), bindparam("row"), bindparam("began"))
    for key, began in rows:
        connection.execute(statement, {"snapshot": snapshot_id, "row": key, "began": began})


def _columns(connection: Connection, name: str) -> list[tuple[str, str]]:
    """Names and types as stored, the three system columns first."""
    columns = inspect(connection).get_columns(name, schema=metadata_schema(connection))
    return [(str(column["name"]), str(column["type"])) for column in columns]


def _qualified(connection: Connection, name: str) -> str:
    schema = metadata_schema(connection)
    own = quote_identifier(name)
    return own if schema is None else f"{quote_identifier(schema)}.{own}"


def _gone(name: str) -> CommitConflict:
    return CommitConflict(
        f"rows of table {name} that are to come back are not in the catalog any more",
        hint="run it again on the table as it is now",
    )
