"""List what changed the rows of tables and the definitions of views, by the names of then.

A change of rows is an insert or a delete. A table that gets a name by its creation or by renaming
is `is_new`: whether it has rows is not looked at. Compactions, flushes, comments and other changes
of definitions are not listed.

Snapshots that are expired leave gaps. What they changed is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, exists, func, or_, select

from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.snapshots import history
from penstock.lakes.format.conflicts import ParsedChanges, read_tokens
from penstock.lakes.format.naming import fold
from penstock.lakes.snapshot import Snapshot

Name = tuple[str, str]  # schema and table, folded
_WRITES = frozenset({"inserted_into_table", "inlined_insert", "inlined_delete"})
_CREATED = ("created_table", "created_view")


@dataclass(frozen=True, slots=True)
class RowChange:
    """A change of one table or view by one snapshot.

    Attributes:
        snapshot: The snapshot.
        name: The schema and the name that the table had then, folded.
        table_id: The table; None of a view, and where the change is not understood.
        is_new: The table got the name in the snapshot, and no token says that rows changed.
    """

    snapshot: Snapshot
    name: Name
    table_id: int | None = None
    is_new: bool = False

    @property
    def only_deletes(self) -> bool:
        """Return whether its tokens say no more than that files lost rows, as those of a flush."""
        tokens, _ = read_tokens(self.snapshot.changes)
        kinds = {token.kind for token in tokens if token.id == self.table_id}
        return "deleted_from_table" in kinds and not kinds & _WRITES


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The changes after a snapshot.

    Attributes:
        newest: The newest snapshot, up to which they were read.
        changes: The changes, by snapshot and name.
        after_gaps: The first snapshot after each gap of expired ones, with the number of the last
            one before it that is known.
        named: Those of the names that a table has at the newest snapshot.
        without_base: The snapshots of which the one before is expired: files that ended in them are
            not on record.
    """

    newest: Snapshot
    changes: tuple[RowChange, ...] = ()
    after_gaps: tuple[tuple[Snapshot, int], ...] = ()
    named: frozenset[Name] = frozenset()
    without_base: frozenset[int] = frozenset()


def newest_id(connection: Connection) -> int | None:
    """Return the id of the newest snapshot, by one indexed query.

    Args:
        connection: The catalog.

    Returns:
        The id; None where there is no snapshot.
    """
    query = select(func.max(metadata.of(connection).snapshot.c.snapshot_id))
    newest: int | None = connection.execute(query).scalar()
    return newest


def deletes_across(connection: Connection, change: RowChange) -> list[tuple[str, bool]]:
    """Return the delete files that tell whether a snapshot deleted rows, or only moved deletes.

    A later delete takes the place of the delete file of a flush, with its deletes and those after.

    Args:
        connection: The catalog.
        change: A change that `only_deletes`.

    Returns:
        Paths, each with whether it is relative to the table's; none where the catalog has files
        that ended or began in the snapshot.
    """
    t = metadata.of(connection)
    f, d = t.data_file.c, t.delete_file.c
    snapshot_id, of_table = change.snapshot.id, d.table_id == change.table_id
    evidence = or_(
        exists().where(f.table_id == change.table_id, f.end_snapshot == snapshot_id),
        exists().where(
            of_table, or_(d.begin_snapshot == snapshot_id, d.partial_max == snapshot_id)
        ),
    )
    if connection.execute(select(evidence)).scalar():
        return []
    query = select(d.path, d.path_is_relative)
    query = query.where(of_table, d.begin_snapshot < snapshot_id, d.partial_max > snapshot_id)
    return [(path, bool(is_relative)) for path, is_relative in connection.execute(query)]


def load_row_changes(connection: Connection, names: Collection[Name], since: int) -> RowChanges:
    """Read the changes of tables and views after a snapshot.

    Args:
        connection: The catalog.
        names: The folded names of the tables and views.
        since: The snapshot.

    Returns:
        The changes, oldest first.
    """
    newest = reads.newest(connection)
    tables = _tables(connection, min(since, newest.id))
    current = frozenset(table.name for table in tables if table.end is None) & frozenset(names)
    if since > newest.id:  # the catalog was put back: what is different now is not known
        return RowChanges(newest, after_gaps=((newest, since),), named=current)
    later = _snapshots(connection, since)
    texts = [(snapshot.id, snapshot.changes) for snapshot in later]
    parsed = history.without_flushes(connection, since, texts)
    rolled_back = history.rollbacks(connection, since)
    history_of_names, row_changes = _Names.of(tables), list[RowChange]()
    for snapshot, changes in zip(later, parsed, strict=True):
        if changes.unknown is None:
            changed = _of_snapshot(snapshot, changes, history_of_names, rolled_back)
            mine = (change for change in changed if change.name in names)
            row_changes += sorted(mine, key=_by_name)
        else:  # another version of the format: it may have changed anything
            row_changes += [RowChange(snapshot, name) for name in sorted(names)]
    gaps = tuple(_after_gaps(later, since))
    loose = {snapshot.id for snapshot, _ in gaps}
    if later and not reads.has_snapshot(connection, since):
        loose.add(later[0].id)
    return RowChanges(newest, tuple(row_changes), gaps, current, frozenset(loose))


def _by_name(change: RowChange) -> Name:
    return change.name


def _snapshots(connection: Connection, since: int) -> Sequence[Snapshot]:
    key = metadata.snapshot.c.snapshot_id
    query = reads.snapshots_query().where(key > since).order_by(key)
    return [reads.as_snapshot(row) for row in connection.execute(query)]


def _after_gaps(snapshots: Sequence[Snapshot], since: int) -> Iterator[tuple[Snapshot, int]]:
    before = since
    for snapshot in snapshots:
        if snapshot.id > before + 1:
            yield snapshot, before
        before = snapshot.id


class _Named(NamedTuple):
    """A table, or one that was renamed, from the snapshot that named it to its end."""

    id: int
    name: Name
    begin: int
    end: int | None


def _tables(connection: Connection, since: int) -> Sequence[_Named]:
    """The tables that were there after a snapshot, by each of their names."""
    t = metadata.of(connection)
    c, s = t.table.c, t.schema.c
    query = select(c.table_id, s.schema_name, c.table_name, c.begin_snapshot, c.end_snapshot).where(
        c.schema_id == s.schema_id,
        s.begin_snapshot <= c.begin_snapshot,
        or_(s.end_snapshot.is_(None), s.end_snapshot > c.begin_snapshot),
        or_(c.end_snapshot.is_(None), c.end_snapshot > since),
    )
    return [
        _Named(id_, (fold(schema), fold(name)), begin, end)
        for id_, schema, name, begin, end in connection.execute(query)
    ]


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of tables by their ids, and which table got a name in a snapshot."""

    by_id: Mapping[int, Sequence[_Named]]
    begun: Mapping[tuple[Name, int], int]

    @classmethod
    def of(cls, tables: Sequence[_Named]) -> _Names:
        by_id: dict[int, list[_Named]] = defaultdict(list)
        for table in tables:
            by_id[table.id].append(table)
        return cls(by_id, {(table.name, table.begin): table.id for table in tables})

    def name_of(self, table_id: int, snapshot_id: int) -> Name | None:
        """Return the name of a table at a snapshot.

        Args:
            table_id: The table.
            snapshot_id: The snapshot.

        Returns:
            The name; None where the table is dropped.
        """
        for named in self.by_id.get(table_id, ()):
            if named.begin <= snapshot_id and (named.end is None or named.end > snapshot_id):
                return named.name
        return None


def _of_snapshot(
    snapshot: Snapshot,
    changes: ParsedChanges,
    names: _Names,
    rolled_back: Mapping[int, history.Rollbacks],
) -> Iterator[RowChange]:
    back = {id_ for id_, undone in rolled_back.items() if snapshot.id in undone.snapshots}
    rows = changes.inserted | changes.deleted | (changes.altered & back)
    for table_id in rows:
        name = names.name_of(table_id, snapshot.id)
        if name is not None:
            yield RowChange(snapshot, name, table_id)
    for name, kind in _created(snapshot):
        table_id = names.begun.get((name, snapshot.id), -1)
        if kind == "created_view":
            yield RowChange(snapshot, name)
        elif table_id >= 0 and table_id not in rows:
            yield RowChange(snapshot, name, table_id, is_new=True)


def _created(snapshot: Snapshot) -> Iterator[tuple[Name, str]]:
    """Yield the names of tables and views that a snapshot created, each with the kind of token."""
    tokens, _ = read_tokens(snapshot.changes)
    for token in tokens:
        if token.kind in _CREATED:
            schema, name = token.names
            yield (fold(schema), fold(name)), token.kind
