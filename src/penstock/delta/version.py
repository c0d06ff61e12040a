"""Versions of a Delta table: each the catalog of a lake's transaction, and the commit of the next.

The catalog of one version of a Delta table, by which a lake's transaction changes its rows.

A database holds the definition of the table for as long as the change lasts. The statistics of the
log choose the files. Only a partitioned table has the footer of each chosen file read as well.

Commit a change of a Delta table's rows: a lake's transaction stages it, the log gets a version.

Rows that go are marked by deletion vectors where the table has these on, or else their files are
written again without them (copy on write), by Spark. Nothing is visible before the commit. Files of
a commit that did not land are removed; those of a commit whose outcome is open stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from penstock.delta import commit, vectors
from penstock.delta import commit as history
from penstock.delta.actions import Add, DeletionVector, Metadata, encoded
from penstock.delta.commit import Proposal
from penstock.delta.commit import commit as land
from penstock.delta.features import VECTORS, check_writable, protocol_for
from penstock.delta.log import LogState
from penstock.delta.place import Place, Version
from penstock.delta.scan import Scan, absolute, in_utc, marked, physical_rows, read
from penstock.delta.schema import table_schema
from penstock.delta.statistics import matching, stats_of
from penstock.errors import CommitUnknown, PenstockError, TableNotFound, UnsupportedFeature
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.files.registration import mapping_paths
from penstock.lakes.format.changes import ChangeSet, NewTable, TableChange
from penstock.lakes.format.files import DataFile, DeleteFile, FileSet, NameMapping, Table
from penstock.lakes.format.partitioning import partition_fields
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.reading.deleted.positions import Whose, load
from penstock.lakes.storage import remove_directory, remove_file
from penstock.lakes.transaction import Staged, Transaction, TransactionTable
from penstock.lakes.writing.adding.files import hive_texts
from penstock.sql.identifiers import DEFAULT_SCHEMA, fold, quote_identifier
from penstock.sql.text import Predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lazy import pa


@dataclass(frozen=True, slots=True)
class Draft:
    """A version in the making, before rows change.

    Attributes:
        place: The table.
        base: The version that it follows; None for a new table.
        metadata: What the table will be.
        files: The files that it begins with. Others of the base are removed.
    """

    place: Place
    base: Version | None
    metadata: Metadata
    files: tuple[Add, ...] = ()

    @classmethod
    def of_version(cls, place: Place, base: Version | None) -> Draft:
        """Begin with a version as it is.

        Args:
            place: The table.
            base: The version; None where there is no table.

        Returns:
            The draft.

        Raises:
            TableNotFound: The table does not exist.
        """
        if base is None:
            raise TableNotFound(
                f"there is no Delta table {place.name} at {place.uri}",
                hint="make it: append rows to it, or create it",
                data={"table": place.name},
            )
        return cls(place, base, base.metadata, base.files)

    @property
    def schema(self) -> TableSchema:
        """Return the columns, with ids by their order."""
        return table_schema(self.metadata.schema_text)


@dataclass(slots=True)
class _Files:
    """The files of a draft as a lake's, each with its number from 1 on."""

    by_key: dict[tuple[str, str | None], DataFile] = field(default_factory=dict)
    adds: dict[int, Add] = field(default_factory=dict)
    mappings: dict[int, NameMapping] = field(default_factory=dict)


class VersionCatalog(Catalog):
    """The table and the files of a draft. Nothing is committed to it: see `version`."""

    draft: Draft
    _visible: tuple[Add, ...]
    _folder: Path
    _listed: _Files | None = None

    @classmethod
    def of_draft(cls, draft: Draft, files: Sequence[Add], folder: str) -> Self:
        """Open the catalog of a draft.

        Args:
            draft: The version to be made.
            files: The files that are in the catalog.
            folder: A temporary directory, which lasts as long as the change.

        Returns:
            The catalog.
        """
        catalog = cls.open(
            f"ducklake:sqlite:{folder}/version.sqlite",
            data_path=draft.place.uri,
            inlining_row_limit=0,
            new_catalog=True,
        )
        catalog.draft, catalog._visible, catalog._folder = draft, tuple(files), Path(folder)
        catalog._define()
        return catalog

    def _define(self) -> None:
        schema, _, name = self.draft.place.name.partition(".")
        metadata = self.draft.metadata
        table = NewTable(
            str(uuid4()),
            self.draft.schema,
            f"{self.draft.place.uri.rstrip('/')}/",
            partition_fields(self.draft.schema, metadata.partition_by),
        )
        changes = ChangeSet(
            create_schemas=() if fold(schema) == DEFAULT_SCHEMA else (schema,),
            tables=(TableChange(schema, name, create=table),),
        )
        self.commit(self.latest(), changes)

    def files(self, table: Table, snapshot_id: int, predicate: Predicate | None = None) -> FileSet:  # noqa: ARG002 - of the shape of a lake's
        """Return the files of the table, chosen by the statistics of the log.

        Args:
            table: The table.
            snapshot_id: Its only snapshot.
            predicate: What rows satisfy; files that cannot hold some are left out.

        Returns:
            The files, with their numbers as ids.
        """
        listed = self._list(table)
        adds = matching(self._visible, self.draft.metadata, predicate)
        return FileSet(tuple(listed.by_key[file.key] for file in adds), listed.mappings)

    def pair_of(self, file_id: int) -> tuple[Add, DataFile]:
        """Return a file as the log has it, and as a lake's.

        Args:
            file_id: The number of the file.

        Returns:
            The two.
        """
        assert self._listed is not None, "a number is one of `files`"
        add = self._listed.adds[file_id]
        return add, self._listed.by_key[add.key]

    def _list(self, table: Table) -> _Files:
        if self._listed is not None:
            return self._listed
        listed, uri = _Files(), self.draft.place.uri
        numbers: dict[tuple[tuple[int, str], ...], int] = {}
        rows = [physical_rows(uri, add) for add in self._visible]
        starts = accumulate(rows, initial=0)
        for number, (add, count, start) in enumerate(
            zip(self._visible, rows, starts, strict=False), 1
        ):
            file = DataFile(
                path=absolute(uri, add.path),
                record_count=count,
                size_bytes=add.size,
                footer_size=0,
                id=number,
                begin_snapshot=table.begin_snapshot,
                row_id_start=start,
                uses_mapping=not table.partition_by,
                delete=self._deleted(number, add.vector),
            )
            if table.partition_by:
                mapping = _mapping(table, file.path, dict(add.values))
                partitions = tuple(mapping.partitions.items())
                mapping_id = numbers.setdefault(partitions, len(numbers) + 1)
                listed.mappings.setdefault(mapping_id, replace(mapping, id=mapping_id))
                file = replace(file, mapping_id=mapping_id)
            listed.by_key[add.key], listed.adds[number] = file, add
        self._listed = listed
        return listed

    def _deleted(self, number: int, vector: DeletionVector | None) -> DeleteFile | None:
        """The rows that are deleted already; those of a vector in the log itself as a file."""
        if vector is None:
            return None
        if vector.storage != "i":
            return vectors.as_delete_file(self.draft.place.uri, vector)
        content = vectors.framed(vectors.decoded(vector.path)[: vector.size])
        path = self._folder / f"{number}.bin"
        path.write_bytes(content)
        return DeleteFile(str(path), vector.cardinality, len(content), 0, format="vector")


def _mapping(table: Table, path: str, values: Mapping[str, str | None]) -> NameMapping:
    """The names of columns in a file of a partitioned table.

    Values of partitions are in its path, or else in the mapping itself.
    """
    keys = {key.column for key in table.partition_by}
    inside = hive_texts(path)
    partitions: dict[int, str] = {}
    for column in table.schema.columns:
        if column.name not in keys:
            continue
        text = values.get(column.name)
        if column.type == "timestamptz":
            text = in_utc(text)
        is_told = column.name in inside and inside[column.name] == text
        partitions[column.id or 0] = column.name if is_told else f"={text or ''}"
    held = [column for column in table.schema.columns if column.name not in keys]
    return NameMapping(None, dict(mapping_paths(held)), partitions)


Apply = Callable[[TransactionTable], Staged]


@dataclass(frozen=True, slots=True)
class Change:
    """Counts of the rows of a change."""

    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_written: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers of rows by their names in `commit`."""
        return {
            history.INSERTED: self.rows_inserted,
            history.UPDATED: self.rows_updated,
            history.DELETED: self.rows_deleted,
            history.WRITTEN: self.rows_written,
        }

    @classmethod
    def of_staged(cls, staged: Staged) -> Change:
        """Return the counts of what a transaction staged.

        Args:
            staged: The answer of the transaction's table.

        Returns:
            The counts.
        """
        return cls(
            staged.rows_inserted, staged.rows_updated, staged.rows_deleted, staged.rows_written
        )


@dataclass(frozen=True, slots=True)
class Work:
    """A change of a draft, to be carried out.

    Attributes:
        draft: The version to be made, before rows change.
        operation: The name of the commit, as Delta's writers call it.
        apply: Stages the change of rows; None where only the definition changes.
        depends_on: What rows satisfy that the change depends on, which are all that it sees; None
            where it depends on none.
        replaced: The number of rows in files that the draft leaves out.
        held: Rows that are cached for as long as the change lasts.
    """

    draft: Draft
    operation: str
    apply: Apply | None = None
    depends_on: Predicate | None = None
    replaced: int = 0
    held: DataFrame | None = None

    @property
    def visible_files(self) -> tuple[Add, ...]:
        """Return the files that may hold rows which the change depends on."""
        if self.depends_on is None:
            return ()
        return matching(self.draft.files, self.draft.metadata, self.depends_on)


def carry_out(work: Work) -> tuple[Change, LogState | None]:
    """Stage a change and commit it.

    Where nothing landed, the files are removed. Where that cannot be told (CommitUnknown, or an
    interrupt during the commit), they stay.

    Args:
        work: The change.

    Returns:
        The counts of its rows, and the version that it made; None where it changes nothing.
    """
    try:
        _check(work.draft)
        if work.apply is None:
            change, state = Change(), _commit(work, work.draft.files, Change())
        else:
            change, state = _staged(work, work.apply)
    finally:
        if work.held is not None:
            work.held.unpersist()
    if state is not None:
        commit.write_if_due(work.draft.place.uri, state.number, state.metadata)
    return change, state


def _staged(work: Work, apply: Apply) -> tuple[Change, LogState | None]:
    with (
        TemporaryDirectory(prefix="penstock-delta-", ignore_cleanup_errors=True) as folder,
        VersionCatalog.of_draft(work.draft, work.visible_files, folder) as catalog,
    ):
        transaction = Transaction(catalog, work.draft.place.spark_source)
        table = transaction.table(
            ".".join(map(quote_identifier, work.draft.place.name.split(".", 1)))
        )
        try:
            change = Change.of_staged(apply(table))
            change = replace(change, rows_deleted=change.rows_deleted + work.replaced)
            settled = _settle(catalog, table)
        except BaseException:
            transaction.rollback()
            raise
        with settled.without_positions():
            try:
                state = _commit(work, settled.files, change)
            except CommitUnknown:
                raise
            except (PenstockError, OSError):
                settled.discard(transaction)
                raise
        if state is None:
            settled.discard(transaction)
        return change, state


def _check(draft: Draft) -> None:
    """Raise UnsupportedFeature where the table's rules would not be kept."""
    before = None if draft.base is None else draft.base.state.protocol
    protocol = protocol_for(before, draft.metadata)
    check_writable(protocol, draft.metadata, draft.place.name, deletes=False)


@dataclass(frozen=True, slots=True)
class _Settled:
    """The files of the version.

    ``vectors`` is the new file of deletion vectors, and ``positions`` are directories of rows that
    go, which nothing names.
    """

    files: tuple[Add, ...]
    vectors: str | None = None
    positions: frozenset[str] = frozenset()

    def discard(self, transaction: Transaction) -> None:
        """Remove all that was written.

        Args:
            transaction: What staged the files.
        """
        transaction.rollback()
        if self.vectors is not None:
            remove_file(self.vectors)

    @contextmanager
    def without_positions(self) -> Iterator[None]:
        """Remove the directories of rows that go, whatever becomes of the commit."""
        try:
            yield
        finally:
            for directory in self.positions:
                with suppress(Exception):  # the commit has landed, or its error is the one to tell
                    remove_directory(directory)


def _settle(catalog: VersionCatalog, table: TransactionTable) -> _Settled:
    """The files of the version, from what a transaction staged."""
    draft, change = catalog.draft, table.candidate.change()
    if change is None:
        return _Settled(draft.files)
    deletes = change.deletes or {}
    positions = frozenset(delete.path.rsplit("/", 2)[0] for delete in deletes.values())
    ended = {catalog.pair_of(file_id)[0].key for file_id in change.end}
    hit = {add.path: add for add, _ in map(catalog.pair_of, deletes)}
    deleted = _positions(catalog, change)
    if draft.metadata.is_on(VECTORS):
        marks, path = vectors.write(draft.place.uri, deleted)
        replaced = {
            hit[name].key: marked(draft.place.uri, hit[name], vector)
            for name, vector in marks.items()
        }
        new = change.add
    else:
        replaced, path = {}, None
        ended |= {file.key for file in hit.values()}
        new = (*change.add, *_rewritten(draft, table, tuple(hit.values()), deleted))
    remaining = (replaced.get(file.key, file) for file in draft.files if file.key not in ended)
    try:
        files = (*remaining, *_added(draft, table, new))
    except BaseException:
        if path is not None:
            remove_file(path)
        raise
    return _Settled(files, path, positions)


def _positions(catalog: VersionCatalog, change: TableChange) -> dict[str, pa.Int64Array]:
    """All rows that are deleted from files, by the files' paths in the log."""
    deletes = change.deletes or {}
    pairs = [catalog.pair_of(file_id) for file_id in deletes]
    files = [
        replace(file, delete=delete)
        for (_, file), delete in zip(pairs, deletes.values(), strict=True)
    ]
    loaded = load(files, Whose(catalog.draft.place.name, None))
    by_path = {rows.file.path: rows.positions for rows in loaded}
    return {add.path: by_path[file.path] for add, file in pairs}


def _rewritten(
    draft: Draft, table: TransactionTable, hit: Sequence[Add], deleted: dict[str, pa.Int64Array]
) -> Sequence[DataFile]:
    """New files with the rows that are left in these."""
    if not hit:
        return ()
    scan = Scan(
        table=draft.place.name,
        uri=draft.place.uri,
        metadata=draft.metadata,
        files=tuple(replace(file, vector=None) for file in hit),  # whose rows are in `deleted`
        deleted=deleted,
    )
    return table.write_frame(read(draft.place.spark(), scan)).files


def _added(draft: Draft, table: TransactionTable, files: Sequence[DataFile]) -> list[Add]:
    """New files as the log has them."""
    columns = [table.schema.find(name) for name in draft.metadata.partition_by]
    keys = [column for column in columns if column is not None]
    written_at = time.time_ns() // 1_000_000
    return [
        Add(
            path=encoded(draft.place.uri, file.path),
            values=tuple(
                (column.name, _text(column, text))
                for column, text in zip(keys, file.partition_values or (), strict=True)
            ),
            size=file.size_bytes,
            modified=written_at,
            stats=stats_of(file, table.schema),
        )
        for file in files
    ]


def _text(column: Column, text: str | None) -> str | None:
    """A partition value as Delta's log has it, from how a lake's catalog does."""
    if text == "":
        raise UnsupportedFeature(
            f"column {column.name} has an empty text, which Delta reads as NULL in a column that "
            "the table is partitioned by",
            hint=f"write nullif({column.name}, '') in the SELECT, or another text",
            data={"column": column.name},
        )
    if text is not None and column.type == "timestamptz":
        return text.removesuffix("+00").replace(" ", "T") + "Z"
    return text


def _commit(work: Work, files: tuple[Add, ...], change: Change) -> LogState | None:
    """Commit a version with these files; None where it would be the base."""
    draft = work.draft
    base = None if draft.base is None else draft.base.state
    before = {} if base is None else base.by_key
    keys = {file.key for file in files}
    added = tuple(file for file in files if file.key not in before)
    removed = tuple(file for key, file in before.items() if key not in keys)
    if base is not None and not (added or removed) and draft.metadata == base.metadata:
        return None
    counts = {
        **change.counts,
        history.FILES: len(added),
        history.BYTES: sum(file.size for file in added),
    }
    partitions = draft.metadata.partition_by
    proposal = Proposal(
        base=base,
        metadata=draft.metadata,
        added=added,
        removed=removed,
        reads=() if work.depends_on is None else (work.depends_on,),
        operation=work.operation,
        parameters=history.name_parameters(work.operation, partitions, is_overwrite=bool(removed)),
        metrics=history.name_metrics(work.operation, counts),
    )
    return land(draft.place.uri, draft.place.name, proposal)
