"""Read into an index what the logs of a Delta root have and it has not: versions that others made,
and those of a process that was killed before it had recorded them.

Each version becomes a snapshot. A version that changes no rows (a compaction) is noted as one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import Any

from sqlalchemy import Connection, func, select, update

from penstock.delta.actions import Add, DeletionVector, Metadata, Protocol
from penstock.delta.features import check_readable
from penstock.delta.log import well_formed
from penstock.delta.log_files import is_empty, tables_below
from penstock.delta.scan import absolute
from penstock.delta.schema import columns_of, physical_columns, physical_partitions, void_columns
from penstock.delta.vectors import as_delete_file
from penstock.destinations.delta import versions
from penstock.destinations.delta.catalog import DeltaCatalog, without_records
from penstock.destinations.delta.versions import Action, Known, Name
from penstock.errors import CommitConflict, LakeError, SchemaMismatch, UnsupportedFeature
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.format.changes import ChangeSet, NewTable, TableChange
from penstock.lakes.format.files import DataFile, PartitionField, Table
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema, assign_ids, assign_missing_ids
from penstock.lakes.snapshot import Snapshot
from penstock.lakes.writing.adding.files import Reader, hive_texts
from penstock.lakes.writing.adding.fit import Rules
from penstock.uuid7 import new_uuid7

# What records of a commit that was not recorded become: connection, snapshot, the commit's note.
Restore = Callable[[Connection, int, str], None]
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_AS_THEY_ARE = Rules(allow_missing=True, ignore_extra_columns=True, int96_in_utc=True)


class _Seen(Exception):
    """Another process has read the version meanwhile."""


def look(catalog: DeltaCatalog, restore: Restore | None = None) -> None:
    """Bring the index up to date. A table that cannot be read is remembered with its error, which
    is raised where the table is asked for.
    """
    catalog.unreadable.clear()
    with catalog.reading() as connection:
        known, ids = versions.all_known(connection), versions.first_ids(connection)
    there = tables_below(catalog.data_path)
    _forget(catalog, known, there)
    for new in merge(*_logs(catalog, known, ids, there), key=lambda new: new.time):
        key = fold(new.schema), fold(new.table)
        if key not in catalog.unreadable:
            with _errors_kept(catalog, key, f"version {new.version} of {new.path}"):
                _Import(catalog, new, restore).run()
    catalog.is_behind, catalog.looked_at = False, time.monotonic()


@dataclass(frozen=True, slots=True)
class _New:
    """A version that the index has not; ``time`` is not before that of the one before it."""

    schema: str
    table: str
    path: str
    version: int
    actions: Sequence[Action]
    time: datetime


def _logs(
    catalog: DeltaCatalog,
    known: Mapping[Name, int],
    ids: Mapping[Name, str],
    there: Iterable[Name],
) -> Iterator[Sequence[_New]]:
    """The new versions of each table, oldest first."""
    for schema, table in there:
        key = fold(schema), fold(table)
        path = f"{catalog.data_path}{schema}/{table}/"
        found: list[_New] = []
        with _errors_kept(catalog, key, f"the log of {path}"):
            for version, actions in _read_log(catalog, key, path, known.get(key, -1), ids.get(key)):
                time = max(_time(actions), *(each.time for each in found[-1:]), _BEGINNING)
                found.append(_New(schema, table, path, version, actions, time))
        yield found


def _read_log(
    catalog: DeltaCatalog, key: Name, path: str, version: int, table_id: str | None
) -> Iterator[tuple[int, Sequence[Action]]]:
    """The versions after one, or all of them where the table is another by now."""
    try:
        yield from versions.new_versions(path, version, table_id)
    except versions.MadeAnew:
        _drop(catalog, key, "it was made anew")
        yield from versions.new_versions(path, -1)


@contextlib.contextmanager
def _errors_kept(catalog: DeltaCatalog, key: Name, place: str) -> Iterator[None]:
    """Keep an error as that of one table: it stops nobody who does not ask for the table."""
    try:
        with well_formed(place):
            yield
    except LakeError as error:
        catalog.unreadable[key] = error


def _forget(catalog: DeltaCatalog, known: Iterable[Name], there: Collection[Name]) -> None:
    """Drop tables whose directories were removed. A root without anything in it tells nothing: what
    it is on may not be there at the moment.
    """
    gone = set(known) - {(fold(schema), fold(table)) for schema, table in there}
    if not gone or is_empty(catalog.data_path):
        return
    for key in sorted(gone):
        _drop(catalog, key, "its directory was removed")


def _drop(catalog: DeltaCatalog, key: Name, message: str) -> None:
    """Drop a table, and forget its versions."""
    schema, name = key
    base = catalog.latest()
    table = catalog.find_any(schema, name, base.id)
    if table is None:
        with catalog.writing() as connection:
            versions.forget(connection, schema, name)
        return
    with contextlib.suppress(CommitConflict):  # another process has seen it, too
        catalog.publish_nothing(
            base,
            ChangeSet(tables=(TableChange(schema, name, drops=table.id),)),
            message=message,
            on_commit=[lambda connection, _: versions.forget(connection, schema, name)],
        )


def _time(actions: Sequence[Action]) -> datetime:
    """Tell when a version was made, by its writer's clock."""
    for info in versions.only(actions, "commitInfo"):
        stamp = info.get("inCommitTimestamp", info.get("timestamp"))
        if isinstance(stamp, int):
            return _BEGINNING + timedelta(milliseconds=stamp)
    return _BEGINNING


class _Import:
    """One version on its way into the index."""

    def __init__(self, catalog: DeltaCatalog, new: _New, restore: Restore | None) -> None:
        self.catalog, self.restore = catalog, restore
        self.schema, self.table, self.path = new.schema, new.table, new.path
        self.version, self.actions, self.time = new.version, new.actions, new.time

    def run(self) -> None:
        with self.catalog.reading() as connection:
            before = versions.known_of(connection, self.schema, self.table)
        known = self._known(before)
        require_readable(known, self.actions, f"{self.schema}.{self.table}")
        base = self.catalog.latest()
        changes = self._changes(base, before, known)
        try:
            if not changes:
                with self.catalog.writing() as connection:
                    self._note(connection, known, None)
                return
            info = self._info()
            note = info["extra"]
            info["extra"] = without_records(note)
            self.catalog.publish_nothing(
                base,
                changes,
                **info,
                on_commit=[lambda connection, id_: self._at_commit(connection, id_, known, note)],
            )
        except _Seen:
            return

    def _known(self, before: Known) -> Known:
        metadata = versions.only(self.actions, "metaData")
        protocol = versions.only(self.actions, "protocol")
        return Known(
            self.version,
            None,
            Metadata.of(metadata[-1]) if metadata else before.metadata,
            Protocol.of(protocol[-1]) if protocol else before.protocol,
        )

    def _note(self, connection: Connection, known: Known, snapshot_id: int | None) -> None:
        now = versions.known_of(connection, self.schema, self.table)
        if now.version >= self.version:
            raise _Seen
        versions.note(connection, self.schema, self.table, replace(known, snapshot_id=snapshot_id))

    def _at_commit(
        self, connection: Connection, snapshot_id: int, known: Known, extra: str | None
    ) -> None:
        self._note(connection, known, snapshot_id)
        self._date(connection, snapshot_id)
        if not self._changes_rows() and not versions.only(self.actions, "metaData"):
            own = self.catalog.tables_at(connection, snapshot_id, self.schema, self.table)
            row = t.snapshot_changes
            connection.execute(
                update(row)
                .where(row.c.snapshot_id == snapshot_id)
                .values(changes_made=f"rewrite_delete:{own.id}")
            )
        if self.restore is not None and extra is not None and self._is_own():
            self.restore(connection, snapshot_id, extra)

    def _date(self, connection: Connection, snapshot_id: int) -> None:
        """Have the snapshot of the time when the version was made, where that is after the one
        before it.
        """
        c = t.snapshot.c
        last = connection.execute(
            select(func.max(c.snapshot_time)).where(c.snapshot_id < snapshot_id)
        )
        time = max(self.time, last.scalar_one() + timedelta(microseconds=1))
        connection.execute(
            update(t.snapshot).where(c.snapshot_id == snapshot_id).values(snapshot_time=time)
        )

    def _changes_rows(self) -> bool:
        files = [*versions.only(self.actions, "add"), *versions.only(self.actions, "remove")]
        return any(each.get("dataChange", True) for each in files)

    def _is_own(self) -> bool:
        apps = [each["appId"] for each in versions.only(self.actions, "txn")]
        return self.catalog.root_id in apps

    def _info(self) -> dict[str, Any]:
        found: Mapping[str, Any] = {}
        for each in versions.only(self.actions, "commitInfo"):
            found = each
        own = found.get("penstock") if self._is_own() else None
        if own:
            return {key: own.get(key) for key in ("author", "message", "extra")}
        return {
            "author": found.get("engineInfo") or "another writer",
            "message": found.get("operation"),
            "extra": None,
        }

    def _changes(self, base: Snapshot, before: Known, known: Known) -> ChangeSet:
        current = self.catalog.find_any(self.schema, self.table, base.id)
        schemas = {fold(each) for each in self.catalog.schemas(base.id)}
        create = () if fold(self.schema) in schemas else (self.schema,)
        if known.metadata is None:
            raise UnsupportedFeature(
                f"version {self.version} of {self.path} has no metadata, nor any before it",
                hint="read the table with penstock.Delta",
            )
        wanted = columns_of(known.metadata.schema_text)
        if not wanted.columns and current is None and not versions.only(self.actions, "add"):
            return ChangeSet()  # the table is known when its columns come
        redefined = bool(versions.only(self.actions, "metaData"))
        change = TableChange(self.schema, self.table)
        removed = [
            absolute(self.path, each["path"]) for each in versions.only(self.actions, "remove")
        ]
        partition_by = tuple(map(PartitionField, known.metadata.partition_by))
        files: Mapping[str, DataFile] = {}
        if current is not None and (removed or redefined):
            files = {each.path: each for each in self.catalog.files(current, base.id).files}
        altered = None
        if current is not None and redefined:
            altered = self._altered(current, before.metadata, known.metadata)
        anew = current is not None and redefined and altered is None
        if anew and set(files) - set(removed):
            raise SchemaMismatch(
                f"version {self.version} of {self.schema}.{self.table} gives columns other types, "
                "and leaves files that were written before",
                hint="read the table with penstock.Delta",
            )
        if current is None or anew:
            new = NewTable(new_uuid7(), assign_ids(wanted), self.path, partition_by)
            change = replace(change, create=new, drops=None if current is None else current.id)
            schema, of = new.schema, Table(
                0, new.uuid, self.schema, self.table, self.path, new.schema, base.id
            )  # fmt: skip
        else:
            change, schema, of = replace(change, table_id=current.id), current.schema, current
            ended = [files[path].id for path in removed if path in files]
            change = replace(change, end=tuple(id_ for id_ in ended if id_ is not None))
            if altered is not None and altered != schema:
                schema, change = altered, replace(change, schema=altered)
        added = self._added(replace(of, schema=schema), known.metadata)
        change = replace(change, add=tuple(added))
        if not (change.create or change.schema or change.add or change.end):
            return ChangeSet(create_schemas=create)
        return ChangeSet(create_schemas=create, tables=(change,))

    def _altered(self, table: Table, before: Metadata | None, now: Metadata) -> TableSchema | None:
        """The columns of the table with another metadata; ``None`` where it is made anew. They are
        told apart by their names in files, which stay where one is renamed.
        """
        if before is None or physical_partitions(before) != physical_partitions(now):
            return None
        wanted = columns_of(now.schema_text)
        held, named = physical_columns(table.schema, before), physical_columns(wanted, now)
        typed = void_columns(before) - void_columns(now)  # no file has values of these
        held = TableSchema(tuple(column for column in held.columns if column.name not in typed))
        if not _alike(held.columns, named.columns):
            return None
        columns = _named(_kept(held.columns, named.columns), wanted.columns)
        return assign_missing_ids(TableSchema(columns), self.catalog.next_column_id(table))

    def _added(self, table: Table, metadata: Metadata) -> list[DataFile]:
        adds = [Add.of(each) for each in versions.only(self.actions, "add")]
        by_path = {absolute(self.path, each.path): each for each in adds}
        fields = tuple(map(PartitionField, physical_partitions(metadata)))
        columns = physical_columns(table.schema, metadata)
        reader = _LogReader(replace(table, schema=columns, partition_by=fields), _AS_THEY_ARE)
        reader.adds = by_path
        files = reader.read_all(list(by_path))
        return [_less(self.path, file, by_path[file.path].vector) for file in files]


class _LogReader(Reader):
    """Takes the values of partitions from the log, whatever the files' paths say."""

    adds: Mapping[str, Add]

    def texts(self, path: str) -> Mapping[str, str | None]:
        return dict(self.adds[path].values)

    def read(self, path: str) -> DataFile:
        file = super().read(path)
        mapping = file.mapping
        if mapping is None or not mapping.partitions:
            return file
        known, texts = hive_texts(path), self.texts(path)
        named = {
            id_: name if name in known and known[name] == texts[name] else f"={texts[name] or ''}"
            for id_, name in mapping.partitions.items()
        }
        return replace(file, mapping=replace(mapping, partitions=named))


def _less(table: str, file: DataFile, vector: DeletionVector | None) -> DataFile:
    """The file without the rows of its deletion vector, which stays where it is."""
    if vector is None:
        return file
    return replace(file, delete=as_delete_file(table, vector))


def _alike(held: Sequence[Column], wanted: Sequence[Column]) -> bool:
    """Tell whether columns are those of a table with more, or fewer; none of another type."""
    known = {fold(column.name): column for column in held}
    pairs = ((known[fold(new.name)], new) for new in wanted if fold(new.name) in known)
    return all(old.type == new.type and _alike(old.children, new.children) for old, new in pairs)


def _kept(held: Sequence[Column], wanted: Sequence[Column]) -> tuple[Column, ...]:
    """The columns that are wanted, as they are where they were before."""
    known = {fold(column.name): column for column in held}
    return tuple(
        replace(old, nullable=new.nullable, children=_kept(old.children, new.children))
        if (old := known.get(fold(new.name))) is not None
        else new
        for new in wanted
    )


def _named(columns: Sequence[Column], like: Sequence[Column]) -> tuple[Column, ...]:
    """Columns with the names of others, which are of the same structure."""
    return tuple(
        replace(column, name=other.name, children=_named(column.children, other.children))
        for column, other in zip(columns, like, strict=True)
    )


def require_readable(known: Known, actions: Sequence[Action], table: str) -> None:
    """Raise UnsupportedFeature for a table that its files alone do not tell the rows of."""
    if known.metadata is None or known.protocol is None:
        return
    check_readable(known.protocol, known.metadata, table)
    kinds = {column.name: column.type for column in columns_of(known.metadata.schema_text).columns}
    for name in known.metadata.partition_by:
        if kinds[name] in {"timestamptz", "blob"}:  # whose texts depend on their writer
            raise UnsupportedFeature(
                f"the Delta table {table} is partitioned by {name}, which is {kinds[name]}",
                hint="read it with penstock.Delta",
                data={"table": table, "column": name},
            )
    held = (DeletionVector.of(each.get("deletionVector")) for each in versions.only(actions, "add"))
    if any(vector is not None and vector.storage == "i" for vector in held):
        raise UnsupportedFeature(
            f"the Delta table {table} has deletion vectors in its log, beside those in files",
            hint="read it with penstock.Delta",
            data={"table": table, "features": ["deletionVectors"]},
        )
