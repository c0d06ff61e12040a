"""Catalog rows for a rollback: statistics of files, and inlined rows that are restored."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, inspect, select, text
from sqlalchemy import Table as StoredTable

from penstock.errors import CommitConflict, UnsupportedFeature
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.database.engine import metadata_schema
from penstock.lake.catalog.database.round_trips import chunks
from penstock.lake.catalog.inlined import inlined
from penstock.lake.format.files import BEGIN_COLUMN, ROW_ID_COLUMN, ColumnStats
from penstock.lake.format.naming import quote_identifier

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
