"""Whether the names that a commit gives are free: tables and views share theirs, macros by kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, literal, select, union_all

from penstock.errors import CommitConflict
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.reads import visible
from penstock.lake.catalog.work import Work
from penstock.lake.changes import ChangeSet
from penstock.lake.naming import fold


@dataclass(frozen=True, slots=True)
class Entry:
    """A table, view or macro of a schema. ``kind`` is ``table``, ``view`` or ``macro``."""

    kind: str
    id: int
    schema_id: int
    name: str


def check(work: Work, changes: ChangeSet) -> None:
    """Raise CommitConflict where a name is taken, or a schema to drop holds what others made.

    Others may have taken a name since the transaction looked; of what they did only names are
    on record, not what they were given to.
    """
    wanted = dict(_wanted(changes))
    if not wanted and not changes.drop_schemas:
        return
    gone = _gone(changes)
    schemas = {one.id: one.name for one in work.schemas.values()}
    for one in entries(work.connection, work.base.id):
        if (one.kind, one.id) in gone or one.schema_id not in schemas:
            continue
        schema = schemas[one.schema_id]
        if one.schema_id in changes.drop_schemas:
            raise CommitConflict(
                f"schema {schema} holds {one.kind} {one.name}, which was made there meanwhile",
                hint="nothing was changed; run it again",
                data={"schema": schema, one.kind: one.name},
            )
        if one.kind != "macro" and (fold(schema), fold(one.name)) in wanted:
            raise CommitConflict(
                f"there is a {one.kind} {schema}.{one.name} already",
                hint="nothing was changed; run it again",
                data={"schema": schema, one.kind: one.name},
            )


def entries(connection: Connection, snapshot_id: int) -> list[Entry]:
    """Every table, view and macro at a snapshot."""
    t = metadata.of(connection)
    kinds = (
        ("table", t.table, t.table.c.table_id, t.table.c.table_name),
        ("view", t.view, t.view.c.view_id, t.view.c.view_name),
        ("macro", t.macro, t.macro.c.macro_id, t.macro.c.macro_name),
    )
    query = union_all(
        *(
            select(literal(kind).label("kind"), key, source.c.schema_id, name).where(
                visible(source, snapshot_id)
            )
            for kind, source, key, name in kinds
        )
    )
    return [Entry(*row) for row in connection.execute(query)]


def _wanted(changes: ChangeSet) -> Iterator[tuple[tuple[str, str], None]]:
    for change in changes.tables:
        if change.create is not None or change.rename_to is not None:
            name = change.rename_to or change.name
            yield (fold(change.schema_name), fold(name)), None
    for view in changes.create_views:
        yield (fold(view.schema_name), fold(view.name)), None


def _gone(changes: ChangeSet) -> set[tuple[str, int]]:
    """What has its name no more after this commit."""
    gone = {("view", one) for one in (*changes.drop_views, *changes.rename_views)}
    gone |= {("view", one.replaces) for one in changes.create_views if one.replaces is not None}
    gone |= {("macro", one) for one in changes.drop_macros}
    gone |= {("macro", one.replaces) for one in changes.create_macros if one.replaces is not None}
    for change in changes.tables:
        if change.drops is not None:
            gone.add(("table", change.drops))
        if change.table_id is not None and change.rename_to is not None:
            gone.add(("table", change.table_id))
    return gone
