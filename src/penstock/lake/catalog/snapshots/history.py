"""Whether a table changed since a snapshot.

Asked to decide what may be skipped: a doubtful case is a change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, and_, exists, or_, select

from penstock.lake.catalog import reads
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.inlined import inlined
from penstock.lake.format.files import Table
from penstock.lake.snapshot import At


def changed_since(
    connection: Connection,
    table: Table,
    snapshot_id: int,
    partition: tuple[str, str | None] | None,
) -> bool:
    """See `Catalog.changed_since`.

    What was in force at a snapshot stays on record only as long as the snapshot does.
    """
    if reads.snapshot(connection, At(version=snapshot_id)) is None:
        return True
    if _definition_changed(connection, table.id, snapshot_id):
        return True
    if _files_changed(connection, table, snapshot_id, partition):
        return True
    return inlined.changed_since(connection, table.id, snapshot_id)


def slice_changed(
    connection: Connection, table: Table, snapshot_id: int, partition: tuple[str, str | None]
) -> bool:
    """Whether rows of a slice came or went after a snapshot: a column and its value as text.

    When in doubt (rows that the catalog itself holds, another partitioning) the answer is yes.
    """
    if _files_changed(connection, table, snapshot_id, partition):
        return True
    return inlined.changed_since(connection, table.id, snapshot_id)


def renamed_since(
    connection: Connection, ids: Collection[int], snapshot_id: int
) -> Mapping[int, frozenset[int]]:
    """Which of these tables and views got another name after a snapshot, by the one that did it."""
    t = metadata.of(connection)
    found: dict[int, set[int]] = defaultdict(set)
    for part, own in ((t.table, t.table.c.table_id), (t.view, t.view.c.view_id)):
        query = select(part.c.begin_snapshot, own)
        query = query.where(own.in_(ids), part.c.begin_snapshot > snapshot_id)
        for begin, one in connection.execute(query):
            found[begin].add(one)
    return {begin: frozenset(renamed) for begin, renamed in found.items()}


def _touched(part: FromClause, snapshot_id: int) -> ColumnElement[bool]:
    return or_(part.c.begin_snapshot > snapshot_id, part.c.end_snapshot > snapshot_id)


def _definition_changed(connection: Connection, table_id: int, snapshot_id: int) -> bool:
    t = metadata.of(connection)
    tests = [
        exists().where(part.c.table_id == table_id, _touched(part, snapshot_id))
        for part in (t.table, t.column, t.partition_info)
    ]
    return bool(connection.execute(select(or_(*tests))).scalar())


def _files_changed(
    connection: Connection,
    table: Table,
    snapshot_id: int,
    partition: tuple[str, str | None] | None,
) -> bool:
    """Data files and delete files begun or ended; ``partial_max`` tells of later rows in a file.

    In 0.3 a merged file tells it otherwise; there, each counts as touched.
    """
    t = metadata.of(connection)
    f, d = t.data_file.c, t.delete_file.c
    mine: list[ColumnElement[bool]] = []
    if partition is not None:
        mine.append(~_holds_only_others(t, table, *partition))
    data = exists().where(
        f.table_id == table.id,
        or_(
            _touched(t.data_file, snapshot_id),
            f.partial_max > snapshot_id,
            t.partial_file_info.is_not(None),
        ),
        *mine,
    )
    # What a flush of inlined rows leaves: deletes of snapshots that only the file tells.
    untold = and_(
        d.partial_max.is_(None),
        or_(f.partial_max.is_not(None), t.partial_file_info.is_not(None)),
    )
    deletes = exists().where(
        d.table_id == table.id,
        or_(_touched(t.delete_file, snapshot_id), d.partial_max > snapshot_id, untold),
        f.data_file_id == d.data_file_id,
        *mine,
    )
    return bool(connection.execute(select(or_(data, deletes))).scalar())


def _holds_only_others(t: metadata.Tables, table: Table, name: str, value: str | None) -> Any:
    """Whether a data file is known by its partitioning to hold other values of a column only."""
    column = table.schema.find(name)
    v, p = t.file_partition_value.c, t.partition_column.c
    return exists().where(
        and_(
            v.data_file_id == t.data_file.c.data_file_id,
            p.partition_id == t.data_file.c.partition_id,
            p.partition_key_index == v.partition_key_index,
            p.column_id == (-1 if column is None else column.id),
            p.transform == "identity",
            v.partition_value.is_distinct_from(value),
        )
    )
