"""What other writers did since a snapshot, as far as the catalog still tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    func,
    literal_column,
    or_,
    select,
)

from penstock.lake.catalog import reads
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.inlined import inlined
from penstock.lake.format.conflicts import ParsedChanges, parse_changes
from penstock.lake.format.inlined.found import BEGIN_COLUMN, END_COLUMN
from penstock.lake.format.naming import fold, quote_identifier

_Name = tuple[str, str]  # schema and table, folded


def tables_by_name(connection: Connection, snapshot_id: int) -> dict[_Name, int]:
    """The ids of the tables at a snapshot by their folded names."""
    return {
        (fold(row.schema_name), fold(row.table_name)): row.table_id
        for row in reads.table_names(connection, snapshot_id)
    }


def changes_of_others(
    connection: Connection, since: int, own: Sequence[str]
) -> list[ParsedChanges]:
    """What each snapshot after ``since`` did whose extra information is not like one of ``own``
    (patterns of LIKE), oldest first.
    """
    c = metadata.of(connection).snapshot_changes.c
    extra = c.commit_extra_info
    foreign = or_(extra.is_(None), and_(*(extra.not_like(pattern) for pattern in own)))
    query = select(c.snapshot_id, c.changes_made).where(c.snapshot_id > since, foreign)
    rows = connection.execute(query.order_by(c.snapshot_id))
    return [parse_changes(id_, text or "") for id_, text in rows]


def gone_at(connection: Connection, name: _Name) -> int | None:
    """The snapshot in which the last table of this name was dropped or renamed, if known."""
    t = metadata.of(connection)
    query = (
        select(t.schema.c.schema_name, t.table.c.table_name, t.table.c.end_snapshot)
        .join_from(t.table, t.schema, t.table.c.schema_id == t.schema.c.schema_id)
        .where(func.lower(t.table.c.table_name) == func.lower(name[1]))
        .where(t.table.c.end_snapshot.is_not(None))
    )
    ends = [
        row.end_snapshot
        for row in connection.execute(query)
        if (fold(row.schema_name), fold(row.table_name)) == name
    ]
    return max(ends, default=None)


def values_touched(
    connection: Connection, table_id: int, column: tuple[int, str], since: int
) -> Mapping[int, frozenset[str | None]]:
    """For each snapshot after ``since`` the slices in which rows came or went: their values, None
    for one that the catalog does not know. ``column``: the id and name of the slices' column.
    """
    found: dict[int, set[str | None]] = defaultdict(set)
    queries = (
        *_of_files(connection, table_id, column[0], since),
        *_of_rows(connection, table_id, column[1], since),
    )
    for query in queries:
        for *moments, value in connection.execute(query):
            text = value.decode() if isinstance(value, bytes) else value
            for moment in moments:
                if moment is not None and moment > since:
                    found[moment].add(text if isinstance(text, str) else None)
    return {moment: frozenset(values) for moment, values in found.items()}


def _of_files(
    connection: Connection, table_id: int, column_id: int, since: int
) -> Iterable[Select[Any]]:
    t = metadata.of(connection)
    f, d, v, p = t.data_file.c, t.delete_file.c, t.file_partition_value.c, t.partition_column.c
    value = (
        select(v.partition_value)
        .where(
            v.data_file_id == f.data_file_id,
            p.partition_id == f.partition_id,
            p.partition_key_index == v.partition_key_index,
            p.column_id == column_id,
            p.transform == "identity",
        )
        .scalar_subquery()
    )
    late = or_(f.begin_snapshot > since, f.end_snapshot > since)
    yield select(f.begin_snapshot, f.end_snapshot, value).where(f.table_id == table_id, late)
    of_file = f.data_file_id == d.data_file_id
    late = d.begin_snapshot > since
    yield select(d.begin_snapshot, value).where(d.table_id == table_id, late, of_file)
    for stored in inlined.delete_tables(connection, table_id):
        of_file = f.data_file_id == stored.c.file_id
        late = stored.c.begin_snapshot > since
        yield select(stored.c.begin_snapshot, value).where(late, of_file)


def _of_rows(
    connection: Connection, table_id: int, column: str, since: int
) -> Iterable[Select[Any]]:
    value: ColumnElement[str] = literal_column(quote_identifier(column), Text)
    for stored in inlined.row_tables(connection, table_id):
        begin, end = stored.c[BEGIN_COLUMN], stored.c[END_COLUMN]
        yield select(begin, end, value).where(or_(begin > since, end > since))
