"""Flushing: inlined rows and deletes of a table move from the catalog to files.

Each schema version with inlined rows gets files of its own, with all rows that ever began, so that
every snapshot reads the same rows as before. The catalog is left as DuckDB 1.5.5 leaves it
(measured), but for the inlined tables of older versions, which stay, empty, until expiry: a DuckDB
that is attached knows them, and on PostgreSQL it fails for good where one is gone. The data file
begins with its first row, its delete file with the first row that ended; inlined deletes are folded
into the delete files of their data files.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, func, select, text

from penstock.errors import CommitConflict
from penstock.lakes.catalog.commit_context import CommitContext
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.location import resolve, stored_path
from penstock.lakes.catalog.database.round_trips import chunks
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.catalog.inlined.columns import Schemas, settle
from penstock.lakes.catalog.inlined.writes import qualified
from penstock.lakes.catalog.statistics import totals
from penstock.lakes.format.changes import Flushed, FlushInlined
from penstock.lakes.format.files import (
    BEGIN_COLUMN,
    END_COLUMN,
    DataFile,
    DeleteFile,
    InlinedPart,
    Table,
)


@dataclass(frozen=True, slots=True)
class Held:
    """The rows of one inlined table, ended ones too, with all the columns of its version."""

    name: str
    part: InlinedPart


def load_held(connection: Connection, of: Table, snapshot_id: int) -> list[Held]:
    """The inlined rows of ``of`` up to a snapshot, by inlined table; empty ones are left out."""
    settle(connection)
    schemas = Schemas(connection, of)
    held: list[Held] = []
    for stored in inlined.stored_tables(connection, of.id):
        of_version = replace(of, schema=schemas.at(stored.version))
        part = inlined.load_part(
            connection, stored, schemas, of_version, lambda begin, _: begin <= snapshot_id
        )
        if part.rows.num_rows:
            held.append(Held(stored.rows.name, part))
    return held


Register = Callable[["CommitContext", FlushInlined, Sequence[tuple[int, DataFile]]], None]


def write(context: CommitContext, flush: FlushInlined, register: Register) -> None:
    """Register the files of a flush, by ``register``, and delete the inlined rows in them.

    Raises CommitConflict where an inlined row or delete has changed since they were read.
    """
    for flushed in flush.flushed:
        _empty(context, flush, flushed)
    ids: dict[int, DeleteFile] = dict(flush.deletes)
    new = [file for flushed in flush.flushed for file in flushed.files]
    numbered = list(zip(context.ids.files(len(new)), new, strict=True))
    for file_id, file in numbered:
        if file.delete is not None:
            ids[file_id] = file.delete
    register(context, flush, numbered)
    if flush.deletes:
        _empty_deletes(context, flush)
        context.tokens.of("deleted_from_table", flush.table_id)
    _write_deletes(context, flush, ids)
    if new:
        context.tokens.of("inline_flush", flush.table_id)
        # The rows and their ids were counted when they were inlined.
        totals.grow(context, flush.table_id, sum(file.size_bytes for file in new))


def _stored(context: CommitContext, flush: FlushInlined, name: str) -> inlined.Stored:
    for stored in inlined.stored_tables(context.connection, flush.table_id):
        if stored.rows.name == name:
            return stored
    raise _changed(flush)


def _empty(context: CommitContext, flush: FlushInlined, flushed: Flushed) -> None:
    """Delete the rows that were read. Rows that others have inserted since stay."""
    rows = _stored(context, flush, flushed.name).rows
    begin, end = rows.c[BEGIN_COLUMN], rows.c[END_COLUMN]
    read = begin <= flush.snapshot_id
    ended = select(func.count()).where(read, end > flush.snapshot_id)
    if context.connection.execute(ended).scalar_one():
        raise _changed(flush)
    gone = context.connection.execute(rows.delete().where(read))
    if gone.rowcount != flushed.rows:
        raise _changed(flush)


def drop_superseded(connection: Connection, table_id: int, oldest: int) -> None:
    """Drop the empty inlined tables that were superseded at or before the schema version
    ``oldest``, which is that of the oldest snapshot.
    """
    stored = sorted(inlined.stored_tables(connection, table_id), key=lambda each: each.version)
    for table, newer in pairwise(stored):
        name = qualified(connection, table.rows.name)
        if newer.version > oldest:
            return
        if connection.execute(text(f"SELECT 1 FROM {name} LIMIT 1")).first() is not None:
            continue
        connection.execute(text(f"DROP TABLE {name}"))
        c = t.inlined_data_tables.c
        connection.execute(t.inlined_data_tables.delete().where(c.table_name == table.rows.name))


def _empty_deletes(context: CommitContext, flush: FlushInlined) -> None:
    """Delete the inlined deletes that were read, of the files that get delete files."""
    gone = 0
    for stored in inlined.delete_tables(context.connection, flush.table_id):
        for ids in chunks(list(flush.deletes)):
            mine = stored.c.file_id.in_(ids)
            later = select(func.count()).where(mine, stored.c.begin_snapshot > flush.snapshot_id)
            if context.connection.execute(later).scalar_one():
                raise _changed(flush)
            gone += int(context.connection.execute(stored.delete().where(mine)).rowcount)
    c = t.data_file.c
    for ids in chunks(list(flush.deletes)):
        there = (c.data_file_id.in_(ids), c.table_id == flush.table_id, c.end_snapshot.is_(None))
        if context.connection.execute(select(func.count()).where(*there)).scalar_one() != len(ids):
            raise _changed(flush)
    if gone != flush.deleted:
        raise _changed(flush)


def fold(context: CommitContext, folded: FlushInlined) -> None:
    """Register delete files with inlined deletes of data files that end in this commit, and which
    end with them; before these do.

    Raises CommitConflict where such a delete has changed since they were read.
    """
    _empty_deletes(context, folded)
    _write_deletes(context, folded, folded.deletes, end=context.snapshot_id)


def _write_deletes(
    context: CommitContext,
    flush: FlushInlined,
    deletes: Mapping[int, DeleteFile],
    *,
    end: int | None = None,
) -> None:
    """Register delete files; each replaces an older one, which is scheduled for deletion."""
    c = t.delete_file.c
    before: list[Any] = []
    for ids in chunks(list(flush.deletes)):
        query = t.delete_file.select().where(c.data_file_id.in_(ids), c.end_snapshot.is_(None))
        before += context.connection.execute(query.where(c.table_id == flush.table_id)).all()
    if {row.delete_file_id for row in before} != flush.replaces:
        raise _changed(flush)
    for ids in chunks([row.delete_file_id for row in before]):
        context.connection.execute(t.delete_file.delete().where(c.delete_file_id.in_(ids)))
    now = dt.datetime.now(dt.UTC)
    context.insert(
        t.files_scheduled_for_deletion,
        [
            {"data_file_id": row.delete_file_id, "schedule_start": now}
            | stored_path(
                context.data_path, resolve(flush.table_path, row.path, row.path_is_relative)
            )
            for row in before
        ],
    )
    context.insert(
        t.delete_file,
        [
            {
                "delete_file_id": context.ids.file(),
                "table_id": flush.table_id,
                "begin_snapshot": file.begin_snapshot,
                "end_snapshot": end,
                "partial_max": file.partial_max,
                "data_file_id": key,
                "format": file.format,
                "delete_count": file.delete_count,
                "file_size_bytes": file.size_bytes,
                "footer_size": file.footer_size,
            }
            | stored_path(flush.table_path, file.path)
            for key, file in deletes.items()
        ],
    )


def _changed(flush: FlushInlined) -> CommitConflict:
    return CommitConflict(
        f"rows of table {flush.table_name} changed while they were flushed",
        hint="nothing was changed; flush again",
    )
