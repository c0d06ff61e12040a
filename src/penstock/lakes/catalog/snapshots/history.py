"""Find what changed in a table since a snapshot, and what other writers did.

Whether a table changed decides what may be skipped: a doubtful case counts as a change. What other
writers did is known as far as the catalog still has their snapshots. Rollbacks have undone what the
snapshots after their target wrote.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
)

from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.format.conflicts import ParsedChanges, parse_changes, read_tokens
from penstock.lakes.format.files import BEGIN_COLUMN, END_COLUMN, Table
from penstock.lakes.format.naming import fold, quote_identifier
from penstock.lakes.snapshot import At, Snapshot


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
    """Return whether rows of a slice changed after a snapshot: a column and its value as text.

    When in doubt (rows that the catalog itself holds, another partitioning) the answer is yes.
    """
    if _files_changed(connection, table, snapshot_id, partition):
        return True
    return inlined.changed_since(connection, table.id, snapshot_id)


def renamed_since(
    connection: Connection, ids: Collection[int], snapshot_id: int
) -> Mapping[int, frozenset[int]]:
    """The tables and views of these that were renamed after a snapshot, by the renaming one."""
    t = metadata.of(connection)
    by_snapshot: dict[int, set[int]] = defaultdict(set)
    for part, own in ((t.table, t.table.c.table_id), (t.view, t.view.c.view_id)):
        query = select(part.c.begin_snapshot, own)
        query = query.where(own.in_(ids), part.c.begin_snapshot > snapshot_id)
        for begin, object_id in connection.execute(query):
            by_snapshot[begin].add(object_id)
    return {begin: frozenset(renamed) for begin, renamed in by_snapshot.items()}


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
    """Data files and delete files begun or ended; ``partial_max`` shows later rows in a file.

    In 0.3 merged files lack it, so each of them counts as touched.
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
    # A flush of inlined rows leaves delete files whose snapshots only the file itself holds.
    flushed = and_(
        d.partial_max.is_(None),
        or_(f.partial_max.is_not(None), t.partial_file_info.is_not(None)),
    )
    deletes = exists().where(
        d.table_id == table.id,
        or_(_touched(t.delete_file, snapshot_id), d.partial_max > snapshot_id, flushed),
        f.data_file_id == d.data_file_id,
        *mine,
    )
    return bool(connection.execute(select(or_(data, deletes))).scalar())


def _holds_only_others(t: metadata.Tables, table: Table, name: str, value: str | None) -> Any:
    """Return whether a data file is known by its partitioning to hold other values of a column
    only.
    """
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
    """Return what each snapshot after ``since`` did whose extra information is not like one of
    ``own`` (patterns of LIKE), oldest first.
    """
    c = metadata.of(connection).snapshot_changes.c
    extra = c.commit_extra_info
    query = select(c.snapshot_id, c.changes_made).where(c.snapshot_id > since)
    if own:
        foreign = or_(extra.is_(None), and_(*(extra.not_like(pattern) for pattern in own)))
        query = query.where(foreign)
    rows = connection.execute(query.order_by(c.snapshot_id)).all()
    return without_flushes(connection, since, [(id_, text or "") for id_, text in rows])


def without_flushes(
    connection: Connection, since: int, changes: Iterable[tuple[int, str]]
) -> list[ParsedChanges]:
    """Parse what snapshots did, without deletes that only moved from the catalog to delete files.

    A flush of inlined deletes is noted as a delete. It differs from one by the delete files that it
    made: these are of earlier snapshots.

    Args:
        connection: The catalog.
        since: The snapshot that all of the changes come after.
        changes: The ``changes_made`` of snapshots, by their ids.

    Returns:
        The changes in the same order.
    """
    parsed = {parse_changes(id_, text): text for id_, text in changes}
    if not any(change.deleted for change in parsed):
        return list(parsed)
    flushed = _flushes(connection, since)
    moved = {
        change: flushed.get(change.snapshot_id, set()) - _inlined(text)
        for change, text in parsed.items()
    }
    return [replace(change, deleted=change.deleted - tables) for change, tables in moved.items()]


def _inlined(changes: str) -> set[int]:
    """Return the tables that deletes were inlined of."""
    tokens, _ = read_tokens(changes)
    return {token.id for token in tokens if token.kind == "inlined_delete" and token.id is not None}


def _flushes(connection: Connection, since: int) -> Mapping[int, set[int]]:
    """Return the tables of which snapshots made delete files of earlier ones, and ended no row.

    Ids of files ascend, so that those of a snapshot lie between the next ones of two snapshots.
    """
    t = metadata.of(connection)
    f, d, s = t.data_file.c, t.delete_file.c, t.snapshot.c
    before = t.snapshot.alias().c
    newest = func.coalesce(d.partial_max, d.begin_snapshot)
    beside = t.delete_file.alias().c
    is_of_table = beside.table_id == d.table_id
    ends_rows = or_(
        exists().where(f.table_id == d.table_id, f.end_snapshot == s.snapshot_id),
        exists().where(is_of_table, beside.begin_snapshot == s.snapshot_id),
        exists().where(is_of_table, beside.partial_max == s.snapshot_id),
    )
    query = select(s.snapshot_id, d.table_id).where(
        s.snapshot_id > since,
        before.snapshot_id == s.snapshot_id - 1,
        d.delete_file_id >= before.next_file_id,
        d.delete_file_id < s.next_file_id,
        newest < s.snapshot_id,
        ~ends_rows,
    )
    tables: dict[int, set[int]] = defaultdict(set)
    for snapshot_id, table_id in connection.execute(query):
        tables[snapshot_id].add(table_id)
    return tables


def first_snapshot(connection: Connection) -> int:
    """Return the first snapshot whose changes are still known."""
    c = metadata.of(connection).snapshot_changes.c
    found: int | None = connection.execute(select(func.min(c.snapshot_id))).scalar()
    return 0 if found is None else found


def first_change_by_others(
    connection: Connection, table_id: int, since: int, own: Sequence[str]
) -> Snapshot | None:
    """Return the first snapshot after ``since`` in which others (see `changes_of_others`) changed
    rows of a table, unless all that was rolled back.
    """
    changes = changes_of_others(connection, since, own)
    rolled_back = rollbacks(connection).get(table_id, Rollbacks())
    touched = [c.snapshot_id for c in changes if table_id in c.inserted | c.deleted]
    found = [
        reads.snapshot(connection, At(version=id_))
        for id_ in touched
        if id_ not in rolled_back.snapshots and not rolled_back.undid(id_)
    ]
    return next((each for each in found if each is not None), None)


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
    """For each snapshot after ``since`` the values of the slices whose rows changed.

    None stands for a value that the catalog does not know. ``column`` is the id and name of the
    slices' column.
    """
    by_snapshot: dict[int, set[str | None]] = defaultdict(set)
    queries = (
        *_of_files(connection, table_id, column[0], since),
        *_of_rows(connection, table_id, column[1], since),
    )
    for query in queries:
        for *moments, value in connection.execute(query):
            for moment in moments:
                if moment is not None and moment > since:
                    by_snapshot[moment].add(_text_of(value))
    return {moment: frozenset(values) for moment, values in by_snapshot.items()}


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
    for stored in inlined.row_tables(connection, table_id):
        begin, end = stored.c[BEGIN_COLUMN], stored.c[END_COLUMN]
        value = _inlined_value(connection, stored, column)
        yield select(begin, end, value).where(or_(begin > since, end > since))


def _inlined_value(connection: Connection, stored: FromClause, column: str) -> ColumnElement[Any]:
    """Return a column of inlined rows; NULL where their schema, an earlier one, lacks it."""
    any_row: Select[Any] = select(literal_column("*")).select_from(stored).limit(0)
    columns = list(connection.execute(any_row).keys())
    names = [name for name in columns if fold(name) == fold(column)]
    return literal_column(quote_identifier(names[0])) if names else null()


def _text_of(value: Any) -> str | None:
    """Return the text of a value of an inlined row.

    PostgreSQL has texts as bytes, whose spelling a cast there would return.
    """
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class AddedFile(NamedTuple):
    """A data file as the catalog has it, ``path`` perhaps relative to the table's. A merged one has
    rows of several snapshots.
    """

    path: str
    is_relative: bool | None
    bytes: int
    is_merged: bool


class Touched(NamedTuple):
    """A file, or an inlined row, that snapshots ``first`` to ``last`` changed rows of: one, or of a
    merged file any of them. ``low`` and ``high`` bound a column in it, None where not known. Of a
    file that was added ``file`` says where it is; ``is_row`` of a row that the catalog holds.
    """

    first: int
    last: int
    low: str | None
    high: str | None
    file: AddedFile | None = None
    is_row: bool = False

    @property
    def is_merged(self) -> bool:
        """Return whether it is of several snapshots, of which only the first and last are known."""
        return self.first != self.last

    def holds(self, snapshot_id: int) -> bool:
        return self.first <= snapshot_id <= self.last


def bounds_touched(
    connection: Connection, table_id: int, column: tuple[int, str], since: int
) -> list[Touched]:
    """Return what of a table changed after the snapshot ``since``, with the bounds of a column (its
    id and name) in it.
    """
    found: list[Touched] = []
    for query in _bounds_of_files(connection, table_id, column[0], since):
        for begin, merged, end, low, high, *place in connection.execute(query):
            last = max(begin, merged or begin)
            if last > since:
                file = _added(place, merged)
                found.append(Touched(begin, last, low, high, file))
            if end is not None and end > since:
                found.append(Touched(end, end, low, high))
    for stored in inlined.row_tables(connection, table_id):
        begin, end = stored.c[BEGIN_COLUMN], stored.c[END_COLUMN]
        value = _inlined_value(connection, stored, column[1])
        rows: Select[Any] = select(begin, end, value).where(or_(begin > since, end > since))
        for first, last, inlined_value in connection.execute(rows):
            bound = _text_of(inlined_value)
            moments = (each for each in (first, last) if each is not None and each > since)
            found += [Touched(each, each, bound, bound, is_row=True) for each in moments]
    return found


def _added(place: Sequence[Any], merged: int | None) -> AddedFile | None:
    if not place:
        return None
    path, is_relative, size = place
    return AddedFile(path, is_relative, size, is_merged=merged is not None)


def _bounds_of_files(
    connection: Connection, table_id: int, column_id: int, since: int
) -> Iterable[Select[Any]]:
    t = metadata.of(connection)
    f, d, s = t.data_file.c, t.delete_file.c, t.file_column_stats.c
    stats = and_(s.data_file_id == f.data_file_id, s.column_id == column_id)
    files = t.data_file.outerjoin(t.file_column_stats, stats)
    of_table, bounds = f.table_id == table_id, (s.min_value, s.max_value)
    late = or_(f.begin_snapshot > since, f.end_snapshot > since, f.partial_max > since)
    place = (f.path, f.path_is_relative, f.file_size_bytes)
    query: Select[Any] = select(f.begin_snapshot, f.partial_max, f.end_snapshot, *bounds, *place)
    yield query.select_from(files).where(of_table, late)
    # Of a flush of inlined rows only the file itself has all snapshots of its deletes.
    flush = select(func.min(t.snapshot.c.snapshot_id))
    flush = flush.where(t.snapshot.c.next_file_id > d.delete_file_id)
    is_flushed = and_(d.partial_max.is_(None), f.partial_max.is_not(None))
    newest = case((is_flushed, flush.scalar_subquery()), else_=d.partial_max)
    late = or_(d.begin_snapshot > since, newest > since)
    deleted = files.join(t.delete_file, f.data_file_id == d.data_file_id)
    query = select(d.begin_snapshot, newest, null(), *bounds)
    yield query.select_from(deleted).where(of_table, late)
    for stored in inlined.delete_tables(connection, table_id):
        deleted = files.join(stored, f.data_file_id == stored.c.file_id)
        query = select(stored.c.begin_snapshot, null(), null(), *bounds)
        yield query.select_from(deleted).where(of_table, stored.c.begin_snapshot > since)


def notes(connection: Connection, key: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield what commits note under a key, with their snapshots, as far as these are kept."""
    c = metadata.of(connection).snapshot_changes.c
    query = select(c.snapshot_id, c.commit_extra_info)
    query = query.where(c.commit_extra_info.like(f'{{"{key}": %'))
    for id_, extra in connection.execute(query.order_by(c.snapshot_id)):
        with suppress(ValueError, KeyError, TypeError):  # of another program
            note = json.loads(extra)[key]
            if isinstance(note, dict):
                yield id_, note


NOTE = "penstock_rollback"  # the key of what a rollback notes in its commit


@dataclass(frozen=True, slots=True)
class Rollbacks:
    """The rollbacks of one table, newest first: their snapshots, and those they went back to.

    ``since`` is the snapshot that made the table; ``name`` its schema and name now, folded, None of
    a dropped table.
    """

    made: tuple[tuple[int, int], ...] = ()
    since: int = 0
    name: tuple[str, str] | None = None

    def undid(self, snapshot_id: int) -> bool:
        """Return whether what was written in a snapshot is not part of the table as it is now."""
        newest: int | None = None  # which the table is as of, on the way back
        for rollback, to in self.made:
            if newest is not None and rollback > newest:
                continue  # it was undone itself
            if snapshot_id >= rollback:
                return False
            if snapshot_id > to:
                return True
            newest = to
        return False

    @property
    def last(self) -> int:
        """The last of them."""
        return self.made[0][0]

    @property
    def snapshots(self) -> frozenset[int]:
        return frozenset(rollback for rollback, _ in self.made)


def rollbacks(connection: Connection, after: int = -1) -> Mapping[int, Rollbacks]:
    """Return those of all tables that were rolled back after a snapshot, by their ids, as far as
    snapshots are kept. What was written in that snapshot or later is not concerned by others.
    """
    t = metadata.of(connection)
    c = t.snapshot_changes.c
    noted = (c.snapshot_id > after, c.commit_extra_info.like(f'{{"{NOTE}": %'))
    query = select(c.snapshot_id, c.changes_made, c.commit_extra_info).where(*noted)
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for id_, changes, extra in connection.execute(query.order_by(c.snapshot_id.desc())):
        parsed, to = parse_changes(id_, changes or ""), _went_back_to(extra)
        for table_id in parsed.inserted | parsed.deleted | parsed.altered:
            if to is not None:
                found[table_id].append((id_, to))
    if not found:
        return {}
    return _named(connection, found)


def _named(
    connection: Connection, found: Mapping[int, Sequence[tuple[int, int]]]
) -> Mapping[int, Rollbacks]:
    t = metadata.of(connection)
    table, schema = t.table.c, t.schema.c
    known = select(schema.schema_id, schema.schema_name).where(schema.end_snapshot.is_(None))
    schemas = {row.schema_id: row.schema_name for row in connection.execute(known)}
    known = select(table.table_id, table.schema_id, table.table_name, table.begin_snapshot)
    known = known.add_columns(table.end_snapshot).where(table.table_id.in_(found))
    since: dict[int, int] = {}
    names: dict[int, tuple[str, str]] = {}
    for row in connection.execute(known):
        since[row.table_id] = min(row.begin_snapshot, since.get(row.table_id, row.begin_snapshot))
        if row.end_snapshot is None and row.schema_id in schemas:
            names[row.table_id] = (fold(schemas[row.schema_id]), fold(row.table_name))
    return {
        id_: Rollbacks(tuple(made), since.get(id_, 0), names.get(id_))
        for id_, made in found.items()
    }


def _went_back_to(extra: str) -> int | None:
    try:
        note: Any = json.loads(extra)[NOTE]
        return int(note["to"])
    except (ValueError, KeyError, TypeError):  # of another program
        return None
