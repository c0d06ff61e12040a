"""Writing tags of tables, views and columns; a comment is one. One taken away is NULL from then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.work import Work

Tags = Mapping[str, str | None]


def write(work: Work, object_id: int, tags: Tags, *, fresh: bool = False) -> None:
    """Set the tags of a table or view. ``fresh``: it has none yet."""
    if not tags:
        return
    c = t.tag.c
    if not fresh:
        work.end(t.tag, c.object_id == object_id, c.key.in_(list(tags)))
    work.insert(
        t.tag,
        [
            {
                "object_id": object_id,
                "begin_snapshot": work.snapshot_id,
                "key": key,
                "value": value,
            }
            for key, value in tags.items()
        ],
    )


def write_columns(
    work: Work, table_id: int, tags: Mapping[int, Tags], *, fresh: bool = False
) -> None:
    """Set tags of columns, by their ids."""
    c = t.column_tag.c
    for column_id, its in tags.items():
        if not fresh:
            work.end(
                t.column_tag,
                c.table_id == table_id,
                c.column_id == column_id,
                c.key.in_(list(its)),
            )
        work.insert(
            t.column_tag,
            [
                {
                    "table_id": table_id,
                    "column_id": column_id,
                    "begin_snapshot": work.snapshot_id,
                    "key": key,
                    "value": value,
                }
                for key, value in its.items()
            ],
        )


def end_columns(work: Work, table_id: int, column_ids: Sequence[int]) -> None:
    """End the tags of columns that are dropped."""
    c = t.column_tag.c
    if column_ids:
        work.end(t.column_tag, c.table_id == table_id, c.column_id.in_(column_ids))
