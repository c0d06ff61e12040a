"""One change set written into the catalog, within a transaction that is alone in writing."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from sqlalchemy import Connection, exc

from penstock.errors import CommitConflict
from penstock.lake.catalog import definitions, ending, reads, registration
from penstock.lake.catalog import tables as t
from penstock.lake.catalog.state import Ids, SchemaEntry, schemas_at
from penstock.lake.changes import ChangeSet, TableChange
from penstock.lake.files import Table
from penstock.lake.naming import fold
from penstock.lake.schema import TableSchema
from penstock.lake.snapshot import Snapshot


class SnapshotTaken(Exception):
    """Another writer has made the snapshot of this id: look again and retry."""


@dataclass(frozen=True, slots=True)
class CommitInfo:
    author: str | None = None
    message: str | None = None
    extra: str | None = None


@dataclass(slots=True)
class _Tokens:
    """``changes_made``, in the order of the real extension."""

    dropped: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    inserted: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)

    def text(self) -> str:
        groups = (self.dropped, self.created, self.inserted, self.deleted, self.altered)
        return ",".join(token for group in groups for token in group)


@dataclass(slots=True)
class _Work:
    connection: Connection
    data_path: str
    base: Snapshot
    snapshot_id: int
    ids: Ids
    schemas: dict[str, SchemaEntry]
    tokens: _Tokens = field(default_factory=_Tokens)
    defined: list[int] = field(default_factory=list)  # tables created or altered


def write(
    connection: Connection, data_path: str, base: Snapshot, changes: ChangeSet, info: CommitInfo
) -> Snapshot:
    """Write ``changes`` as the snapshot after ``base``, which is the newest one.

    The row of the snapshot goes in first: from then on no other writer can take its id, so what
    is read after it stays true until the end of the transaction. Raises CommitConflict.
    """
    work = _Work(
        connection=connection,
        data_path=data_path,
        base=base,
        snapshot_id=base.id + 1,
        ids=Ids(base.next_catalog_id, base.next_file_id),
        schemas=schemas_at(connection, data_path, base),
    )
    is_definition = _defines(changes)
    version = base.schema_version + is_definition
    time = max(dt.datetime.now(dt.UTC), base.time + dt.timedelta(microseconds=1))
    _insert_snapshot(work, time, version)
    for name in changes.create_schemas:
        _create_schema(work, name)
    for change in changes.tables:
        _write_table_change(work, change)
    definitions.write_schema_version(connection, work.snapshot_id, version, work.defined)
    return _finish(work, time, version, info)


def _defines(changes: ChangeSet) -> bool:
    return bool(changes.create_schemas) or any(
        change.create is not None or change.drops is not None or change.schema is not None
        for change in changes.tables
    )


def _insert_snapshot(work: _Work, time: dt.datetime, version: int) -> None:
    row = t.snapshot.insert().values(
        snapshot_id=work.snapshot_id,
        snapshot_time=time,
        schema_version=version,
        next_catalog_id=work.ids.next_catalog_id,
        next_file_id=work.ids.next_file_id,
    )
    try:
        work.connection.execute(row)
    except exc.IntegrityError as error:
        raise SnapshotTaken from error


def _finish(work: _Work, time: dt.datetime, version: int, info: CommitInfo) -> Snapshot:
    ids, text = work.ids, work.tokens.text()
    work.connection.execute(
        t.snapshot.update()
        .where(t.snapshot.c.snapshot_id == work.snapshot_id)
        .values(next_catalog_id=ids.next_catalog_id, next_file_id=ids.next_file_id)
    )
    work.connection.execute(
        t.snapshot_changes.insert().values(
            snapshot_id=work.snapshot_id,
            changes_made=text,
            author=info.author,
            commit_message=info.message,
            commit_extra_info=info.extra,
        )
    )
    return Snapshot(
        id=work.snapshot_id,
        time=time,
        schema_version=version,
        next_catalog_id=ids.next_catalog_id,
        next_file_id=ids.next_file_id,
        changes=text,
        author=info.author,
        message=info.message,
        extra=info.extra,
    )


def _create_schema(work: _Work, name: str) -> None:
    if fold(name) in work.schemas:
        raise CommitConflict(f"there is a schema {name!r} already", hint="run it again")
    work.schemas[fold(name)] = definitions.write_schema(
        work.connection, work.data_path, work.snapshot_id, work.ids, name
    )
    work.tokens.created.append(f"created_schema:{_quoted(name)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class _Target:
    """The table that files go to, as it is after this commit's definitions."""

    id: int
    name: str
    path: str
    schema: TableSchema
    partition_id: int | None


def _write_table_change(work: _Work, change: TableChange) -> None:
    name = f"{change.schema_name}.{change.name}"
    if change.drops is not None:
        definitions.drop_table(work.connection, work.snapshot_id, change.drops, name)
        work.tokens.dropped.append(f"dropped_table:{change.drops}")
    target = _created(work, change, name) if change.create else _existing(work, change, name)
    if target is not None:
        _write_files(work, change, target)


def _created(work: _Work, change: TableChange, name: str) -> _Target | None:
    new = change.create
    if new is None:
        return None
    schema = definitions.find_schema(work.schemas, change.schema_name)
    _check_name_is_free(work, schema, change)
    table_id, partition_id = definitions.write_table(
        work.connection, work.snapshot_id, work.ids, schema, name=change.name, new=new
    )
    work.defined.append(table_id)
    work.tokens.created.append(f"created_table:{_quoted(schema.name)}.{_quoted(change.name)}")
    return _Target(table_id, name, new.path, new.schema, partition_id)


def _check_name_is_free(work: _Work, schema: SchemaEntry, change: TableChange) -> None:
    wanted = (schema.name, fold(change.name))
    for row in reads.table_names(work.connection, work.base.id):
        found = (row.schema_name, fold(row.table_name))
        if found == wanted and row.table_id != change.drops:
            raise CommitConflict(
                f"there is a table {schema.name}.{row.table_name} already", hint="run it again"
            )


def _existing(work: _Work, change: TableChange, name: str) -> _Target | None:
    if change.table_id is None:
        return None
    table = _load(work, change.table_id)
    if table is None:
        raise CommitConflict(f"table {name} is not there any more", hint="run it again")
    if change.schema is not None:
        definitions.alter_table(
            work.connection, work.snapshot_id, work.base.id, table.id, change.schema
        )
        work.defined.append(table.id)
        work.tokens.altered.append(f"altered_table:{table.id}")
    schema = change.schema or table.schema
    return _Target(table.id, name, table.path, schema, table.partition_id)


def _load(work: _Work, table_id: int) -> Table | None:
    found = reads.load_tables(work.connection, work.data_path, work.base.id, table_id)
    return found[0] if found else None


def _write_files(work: _Work, change: TableChange, target: _Target) -> None:
    connection, snapshot_id = work.connection, work.snapshot_id
    if change.end:
        ending.end_files(connection, snapshot_id, target.id, change.end, target.name)
    if change.deletes:
        ending.add_deletes(
            connection,
            snapshot_id,
            work.ids,
            target.id,
            data_path=work.data_path,
            table_path=target.path,
            deletes=change.deletes,
            name=target.name,
        )
    if change.end or change.deletes:
        work.tokens.deleted.append(f"deleted_from_table:{target.id}")
    if change.add:
        registration.add_files(
            connection,
            snapshot_id,
            work.ids,
            target.id,
            table_path=target.path,
            schema=target.schema,
            partition_id=target.partition_id,
            files=change.add,
        )
        work.tokens.inserted.append(f"inserted_into_table:{target.id}")
