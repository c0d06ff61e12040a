"""Writing views: creating, renaming, dropping."""

from __future__ import annotations

import uuid

from penstock.errors import CommitConflict
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.definitions import tables, tags
from penstock.lake.catalog.work import Work
from penstock.lake.format.changes import NewView
from penstock.lake.format.objects import COMMENT


def create(work: Work, new: NewView) -> None:
    """Raises CommitConflict when its schema is gone."""
    schema = tables.find_schema(work.schemas, new.schema_name)
    view_id = work.ids.catalog()
    row = {
        "view_id": view_id,
        "view_uuid": str(uuid.uuid4()),
        "begin_snapshot": work.snapshot_id,
        "schema_id": schema.id,
        "view_name": new.name,
        "dialect": new.dialect,
        "sql": new.sql,
        "column_aliases": ",".join(_quoted(alias) for alias in new.aliases),
    }
    work.insert(t.view, [row])
    if new.comment is not None:
        tags.write(work, view_id, {COMMENT: new.comment}, fresh=True)
    work.tokens.named("created_view", schema.name, new.name)


def rename(work: Work, view_id: int, new_name: str) -> None:
    """Another name for a view; the token is that of a creation, as in the real extension."""
    c = t.view.c
    query = t.view.select().where(c.view_id == view_id, c.end_snapshot.is_(None))
    old = work.connection.execute(query).first()
    if old is None or work.end(t.view, c.view_id == view_id) != 1:
        raise _gone(view_id)
    again = {"begin_snapshot": work.snapshot_id, "end_snapshot": None, "view_name": new_name}
    work.insert(t.view, [dict(old._mapping) | again])
    schema = next(one for one in work.schemas.values() if one.id == old.schema_id)
    work.tokens.named("created_view", schema.name, new_name)


def drop(work: Work, view_id: int) -> None:
    """End a view and its tags. Raises CommitConflict when it is not there any more."""
    if work.end(t.view, t.view.c.view_id == view_id) != 1:
        raise _gone(view_id)
    work.end(t.tag, t.tag.c.object_id == view_id)
    work.tokens.of("dropped_view", view_id)


def comment(work: Work, view_id: int, changes: tags.Tags) -> None:
    tags.write(work, view_id, changes)
    work.tokens.of("altered_view", view_id)


def _gone(view_id: int) -> CommitConflict:
    return CommitConflict(f"view {view_id} is not there any more", hint="run it again")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
