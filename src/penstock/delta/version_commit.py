"""Commit a change of a Delta table's rows: a lake's transaction stages it, the log gets a version.

Rows that go are marked by deletion vectors where the table has these on, or else their files are
written again without them (copy on write), by Spark. Nothing is visible before the commit. Files of
a commit that did not land are removed; those of a commit whose outcome is open stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from penstock.delta import checkpoints, vectors
from penstock.delta import history_entries as history
from penstock.delta.actions import Add, encoded
from penstock.delta.commit import Proposal
from penstock.delta.commit import commit as land
from penstock.delta.features import VECTORS, check_writable, protocol_for
from penstock.delta.log import LogState
from penstock.delta.pruning import matching
from penstock.delta.scan import Scan, marked, read
from penstock.delta.statistics import stats_of
from penstock.delta.version_catalog import Draft, VersionCatalog
from penstock.errors import CommitUnknown, PenstockError, UnsupportedFeature
from penstock.lake.format.changes import TableChange
from penstock.lake.format.files import DataFile
from penstock.lake.format.schema import Column
from penstock.lake.reading.deleted.positions import Whose, load
from penstock.lake.storage import remove_directory, remove_file
from penstock.lake.transaction import Staged, Transaction, TransactionTable
from penstock.sql.identifiers import quote_identifier
from penstock.sql.text import Predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lazy import pa

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
        """Return the numbers of rows by their names in `history_entries`."""
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
        checkpoints.write_if_due(work.draft.place.uri, state.number, state.metadata)
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
