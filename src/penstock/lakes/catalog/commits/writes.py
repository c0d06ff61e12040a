"""One change set written into the catalog, by a transaction that is alone in writing.

What a transaction and its commit start from is one query each. The queries of a commit run while
all other writers wait; one of them reads whether the lake requires a message
(``require_commit_message``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    RootTransaction,
    ScalarSelect,
    Select,
    bindparam,
    exc,
    func,
    select,
    true,
)

from penstock.errors import CommitConflict, CommitError
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.commit_context import CommitContext, Ids, Target, Totals
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.round_trips import Answer, Query, committing, pipelined
from penstock.lakes.catalog.definitions import stored_sql, tables, tags
from penstock.lakes.catalog.definitions.tables import (
    check_free_names,
    create_schema,
    drop_schema,
    find_schema,
)
from penstock.lakes.catalog.files import maintenance_rows, registration
from penstock.lakes.catalog.files.registration import add_deletes, end_files
from penstock.lakes.catalog.inlined import writes
from penstock.lakes.catalog.statistics import totals
from penstock.lakes.format.changes import ChangeSet, TableChange
from penstock.lakes.format.files import Table
from penstock.lakes.format.naming import fold
from penstock.lakes.snapshot import Snapshot


class SnapshotTaken(Exception):
    """Another writer has made the snapshot of this id: look again and retry."""


@dataclass(frozen=True, slots=True)
class CommitInfo:
    author: str | None = None
    message: str | None = None
    extra: str | None = None


def write(
    connection: Connection,
    data_path: str,
    start: Start,
    changes: ChangeSet,
    info: CommitInfo,
    *,
    inlines: bool,
) -> tuple[Snapshot, CommitContext]:
    """Write ``changes`` as the snapshot after that of ``start``; the rest is for `publish`.

    Only writers that do not take Penstock's lock (DuckDB on PostgreSQL) can interfere, and they
    want the same snapshot id. Where both may change the same rows, the id is inserted first, so
    that they wait for each other at the same place. ``inlines``: new tables get a table for
    inlined rows unless an option says otherwise. Raises CommitConflict, SnapshotTaken.
    """
    if start.wants_message:
        check_message(info.author, info.message)
    base = start.latest
    context = CommitContext(
        connection=connection,
        data_path=data_path,
        base=base,
        snapshot_id=base.id + 1,
        schema_version=base.schema_version,
        ids=Ids(base.next_catalog_id, base.next_file_id),
        totals=dict(start.totals),
        inline_tables=dict(start.inline_tables),
        inlines=inlines,
    )
    defines = _defines(changes)
    context.schema_version += defines or any(
        change.inserts_inlined and writes.lacks_table(context, change.table_id)
        for change in changes.tables
    )
    time = max(dt.datetime.now(dt.UTC), base.time + dt.timedelta(microseconds=1))
    only_adds = _only_adds(changes)
    if not only_adds:
        _insert_snapshot(context, time)
    if defines:
        check_free_names(context, changes)
        _end_dropped(context, changes)
        _define(context, changes)
    for change in changes.tables:
        _write_table_change(context, change)
    for compaction in changes.compactions:
        maintenance_rows.write(context, compaction)
    if context.defined:
        tables.write_schema_versions(context)
    return _finish(context, time, info, known=not only_adds), context


def publish(context: CommitContext, transaction: RootTransaction | None = None) -> None:
    """Write what `write` left, and with it commit ``transaction``. Raises SnapshotTaken."""
    together = pipelined if transaction is None else committing
    try:
        with together(context.connection):
            context.flush()
            if transaction is not None:
                transaction.commit()
    except exc.IntegrityError as error:
        raise SnapshotTaken from error


def _only_adds(changes: ChangeSet) -> bool:
    """Return whether the change set only adds rows to existing tables."""
    return changes == ChangeSet(tables=changes.tables) and all(
        change.only_adds for change in changes.tables
    )


def _defines(changes: ChangeSet) -> bool:
    """Return whether the schema version increases: every change does it, except
    of rows and files.
    """
    return any(
        (
            changes.create_schemas,
            changes.drop_schemas,
            changes.create_views,
            changes.drop_views,
            changes.rename_views,
            changes.view_tags,
            changes.create_macros,
            changes.drop_macros,
            *(change.defines for change in changes.tables),
        )
    )


def _insert_snapshot(context: CommitContext, time: dt.datetime) -> None:
    try:
        context.connection.execute(t.snapshot.insert(), _snapshot_row(context, time))
    except exc.IntegrityError as error:
        raise SnapshotTaken from error


def _snapshot_row(context: CommitContext, time: dt.datetime) -> dict[str, Any]:
    return {
        "snapshot_id": context.snapshot_id,
        "snapshot_time": time,
        "schema_version": context.schema_version,
        "next_catalog_id": context.ids.next_catalog_id,
        "next_file_id": context.ids.next_file_id,
    }


def _finish(
    context: CommitContext, time: dt.datetime, info: CommitInfo, *, known: bool
) -> Snapshot:
    """Write the snapshot's row, when all is known. ``known``: it exists without its next ids."""
    ids, text = context.ids, context.tokens.text()
    totals.write(context)
    changes = {
        "snapshot_id": context.snapshot_id,
        "changes_made": text,
        "author": info.author,
        "commit_message": info.message,
        "commit_extra_info": info.extra,
    }
    context.insert(t.snapshot_changes, [changes])
    if known:
        next_ids = {"next_catalog_id": ids.next_catalog_id, "next_file_id": ids.next_file_id}
        update = t.snapshot.update().where(t.snapshot.c.snapshot_id == context.snapshot_id)
        context.connection.execute(update.values(**next_ids))
    else:
        context.first(t.snapshot, _snapshot_row(context, time))
    return Snapshot(
        id=context.snapshot_id,
        time=time,
        schema_version=context.schema_version,
        next_catalog_id=ids.next_catalog_id,
        next_file_id=ids.next_file_id,
        changes=text,
        author=info.author,
        message=info.message,
        extra=info.extra,
    )


def _end_dropped(context: CommitContext, changes: ChangeSet) -> None:
    """Drops come first: their names may be reused."""
    for change in changes.tables:
        if change.drops is not None:
            tables.drop_table(context, change.drops, _label(change))
    for view_id in changes.drop_views:
        stored_sql.drop_view(context, view_id)
    for view in changes.create_views:
        if view.replaces is not None:
            stored_sql.drop_view(context, view.replaces)
    for macro_id in changes.drop_macros:
        stored_sql.drop_macro(context, macro_id)
    for macro in changes.create_macros:
        if macro.replaces is not None:
            stored_sql.drop_macro(context, macro.replaces)
    for schema_id in changes.drop_schemas:
        drop_schema(context, schema_id)


def _define(context: CommitContext, changes: ChangeSet) -> None:
    """Schemas, views and macros; tables come with their rows."""
    for name in changes.create_schemas:
        if fold(name) not in changes.needed_schemas & context.schemas.keys():
            create_schema(context, name)
    for view_id, new_name in changes.rename_views.items():
        stored_sql.rename_view(context, view_id, new_name)
    for view_id, view_tags in changes.view_tags.items():
        stored_sql.comment_view(context, view_id, view_tags)
    for view in changes.create_views:
        stored_sql.create_view(context, view)
    for macro in changes.create_macros:
        stored_sql.create_macro(context, macro)


def _label(change: TableChange) -> str:
    return f"{change.schema_name}.{change.name}"


def _write_table_change(context: CommitContext, change: TableChange) -> None:
    target = _created(context, change) if change.create else _existing(context, change)
    if target is not None:
        _write_files(context, change, target)


def _created(context: CommitContext, change: TableChange) -> Target | None:
    new = change.create
    if new is None:
        return None
    schema = find_schema(context.schemas, change.schema_name)
    table_id, partition_id = tables.write_table(context, schema, change.name, new)
    context.totals[table_id] = Totals()
    return Target(table_id, _label(change), new.path, new.schema, partition_id)


def _existing(context: CommitContext, change: TableChange) -> Target | None:
    if change.table_id is None:
        return None
    # What the transaction saw still holds: whoever altered or dropped the table is in conflict.
    table = change.table or _load(context, change.table_id)
    if table is None:
        raise CommitConflict(f"table {_label(change)} no longer exists", hint="run it again")
    if change.schema is not None:
        tables.alter_table(context, table.id, change.schema)
    schema, partition_id = change.schema or table.schema, table.partition_id
    if change.partition_by is not None:
        partition_id = tables.set_partitioning(context, table.id, schema, change.partition_by)
    if change.sort_by is not None:
        tables.set_sorting(context, table.id, change.sort_by)
    if change.tags or change.column_tags:
        tags.write(context, table.id, change.tags)
        tags.write_columns(context, table.id, change.column_tags)
        context.tokens.of("altered_table", table.id)
    if change.rename_to is not None:
        tables.rename_table(context, table.id, change.rename_to, _label(change))
    return Target(table.id, _label(change), table.path, schema, partition_id)


def _load(context: CommitContext, table_id: int) -> Table | None:
    loaded = reads.load_tables(context.connection, context.data_path, context.base.id, table_id)
    return loaded[0] if loaded else None


def _write_files(context: CommitContext, change: TableChange, target: Target) -> None:
    if change.end:
        end_files(context, target, change.end)
    if change.deletes:
        add_deletes(context, target, change.deletes)
    if change.add:
        registration.add_files(context, target, change.add)
    if target.id in context.defined:
        writes.define(context, target, change.schema_name)
    if change.inline is not None:
        writes.write(context, target, change.inline, adds_files=bool(change.add))


@dataclass(frozen=True, slots=True)
class Start:
    """The state that a commit starts from: the newest snapshot and whether commits need a message.

    Where a single table gets rows, also its statistics and its inlined table; ``inline_tables``
    has no entry where finding that table needs a further query.
    """

    latest: Snapshot
    wants_message: bool
    totals: Mapping[int, Totals] = field(default_factory=dict)
    inline_tables: Mapping[int, str | None] = field(default_factory=dict)


def _beginning_query() -> Any:
    c = t.metadata.c
    newest = reads.latest_query().subquery()
    return select(c.key, c.value, c.scope, c.scope_id, newest).join_from(
        t.metadata, newest, true(), isouter=True
    )


BEGINNING = Query(_beginning_query())


def beginning(answer: Answer) -> tuple[Snapshot | None, Sequence[reads.OptionRow]]:
    """The answer to `BEGINNING`: the newest snapshot and every option, read together."""
    options = [reads.OptionRow(*row[:4]) for row in answer]
    there = bool(answer) and answer[0][4] is not None
    return reads.as_snapshot(answer[0][4:]) if there else None, options


_SINCE = (
    reads.snapshots_query()
    .where(t.snapshot.c.snapshot_id > bindparam("base"))
    .order_by(t.snapshot.c.snapshot_id)
)


def since_snapshot(base: int) -> Query:
    """The fields of a `Snapshot` of all after ``base``, oldest first."""
    return Query(_SINCE, {"base": base})


def question(changes: ChangeSet) -> Query:
    """The query to send before ``changes`` are written; `start` reads its answer."""
    table_id = _table_id(changes)
    return Query(_QUERY) if table_id is None else Query(_QUERY_OF_TABLE, {"table": table_id})


def start(changes: ChangeSet, answer: Answer) -> Start | None:
    """``None`` in a catalog without snapshots, which is corrupt."""
    if not answer:
        return None
    first = answer[0]
    latest, wants_message = (
        reads.as_snapshot(first[:_OF_SNAPSHOT]),
        asks_for_message(first[_OF_SNAPSHOT]),
    )
    table_id = _table_id(changes)
    if table_id is None:
        return Start(latest, wants_message)
    name, version, newest = first[_OF_SNAPSHOT + 1 : _STATISTICS]
    sure = name is None or newest is None or newest <= version
    return Start(
        latest,
        wants_message,
        {table_id: totals.from_rows([row[_STATISTICS:] for row in answer])},
        {table_id: name} if sure else {},
    )


def _table_id(changes: ChangeSet) -> int | None:
    """The existing table that gets rows, if there is exactly one."""
    table_ids = {
        change.table_id
        for change in changes.tables
        if change.add or (change.inline is not None and change.inline.insert is not None)
    }
    return table_ids.pop() if len(table_ids) == 1 else None


def message_option() -> ScalarSelect[str]:
    """The option's value, to be selected with others.

    The lake's own option counts, not those of a schema or table, as in DuckDB 1.5.5 (measured).
    """
    c = t.metadata.c
    query = select(c.value).where(c.key == "require_commit_message", c.scope.is_(None))
    return query.limit(1).scalar_subquery()


def asks_for_message(message_option: str | None) -> bool:
    return message_option == "true"


def check_message(author: str | None, message: str | None) -> None:
    """Raise CommitError without a message or an author where the lake requires one."""
    if message is None and author is None:
        raise CommitError(
            "the lake wants a message for every commit, and this one has none",
            hint="use lake.transaction(author=..., message=...), or in SQL set_commit_message; "
            "set_option('require_commit_message', false) ends it",
        )


def _queries() -> tuple[Select[*tuple[object, ...]], Select[*tuple[object, ...]]]:
    table: BindParameter[int] = bindparam("table")
    r, v, s, c = (
        table.c
        for table in (
            *(t.inlined_data_tables, t.schema_versions),
            *(t.table_stats, t.table_column_stats),
        )
    )
    newest = select(func.max(r.schema_version)).where(r.table_id == table).scalar_subquery()
    altered = select(func.max(v.schema_version)).where(v.table_id == table).scalar_subquery()
    alone = reads.latest_query().add_columns(message_option())
    of_table = (
        alone.add_columns(r.table_name, r.schema_version, altered, *totals.COLUMNS)
        .outerjoin(t.inlined_data_tables, (r.table_id == table) & (r.schema_version == newest))
        .outerjoin(t.table_stats, s.table_id == table)
        .outerjoin(t.table_column_stats, c.table_id == s.table_id)
    )
    return alone, of_table


# Where the columns of the answer begin; built once, as in `totals`.
_OF_SNAPSHOT = 9
_STATISTICS = _OF_SNAPSHOT + 4
_QUERY, _QUERY_OF_TABLE = _queries()
