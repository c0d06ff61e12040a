"""Tags of tables, views and columns, comments among them; a removed tag becomes NULL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, select

from penstock.lakes.catalog.commit_context import CommitContext
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.faults import check_begin
from penstock.lakes.catalog.reads import visible

Tags = Mapping[str, str | None]


def write(context: CommitContext, object_id: int, tags: Tags, *, fresh: bool = False) -> None:
    """Set the tags of a table or view. ``fresh``: it has none yet."""
    if not tags:
        return
    c = t.tag.c
    if not fresh:
        context.end(t.tag, c.object_id == object_id, c.key.in_(list(tags)))
    context.insert(
        t.tag,
        [
            {
                "object_id": object_id,
                "begin_snapshot": context.snapshot_id,
                "key": key,
                "value": value,
            }
            for key, value in tags.items()
        ],
    )


def write_columns(
    context: CommitContext, table_id: int, tags: Mapping[int, Tags], *, fresh: bool = False
) -> None:
    """Set tags of columns, by their ids."""
    c = t.column_tag.c
    for column_id, values in tags.items():
        if not fresh:
            context.end(
                t.column_tag,
                c.table_id == table_id,
                c.column_id == column_id,
                c.key.in_(list(values)),
            )
        context.insert(
            t.column_tag,
            [
                {
                    "table_id": table_id,
                    "column_id": column_id,
                    "begin_snapshot": context.snapshot_id,
                    "key": key,
                    "value": value,
                }
                for key, value in values.items()
            ],
        )


def end_columns(context: CommitContext, table_id: int, column_ids: Sequence[int]) -> None:
    """End the tags of columns that are dropped."""
    c = t.column_tag.c
    if column_ids:
        context.end(t.column_tag, c.table_id == table_id, c.column_id.in_(column_ids))


def load_tags(
    connection: Connection, snapshot_id: int, ids: Collection[int]
) -> dict[int, dict[str, str]]:
    """The tags of schemas, tables and views, by object id and key."""
    if not ids:
        return {}
    t = metadata.of(connection)
    c = t.tag.c
    query = select(c.object_id, c.key, c.value, c.begin_snapshot).where(
        c.object_id.in_(list(ids)), visible(t.tag, snapshot_id)
    )
    rows = connection.execute(query).all()
    check_begin(rows, "tag", "object_id")
    by_object: dict[int, dict[str, str]] = defaultdict(dict)
    for object_id, key, value, _ in rows:
        if value is not None:
            by_object[object_id][key] = value
    return by_object
