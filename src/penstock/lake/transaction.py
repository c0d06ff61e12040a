"""One transaction over several tables: stage, look at the candidate state, publish it at once."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from sqlalchemy import Connection

from penstock.errors import (
    CatalogError,
    CommitError,
    CommitUnknown,
    LakeError,
    ReadOnlyLake,
    SchemaNotFound,
)
from penstock.lake.candidate import Staged
from penstock.lake.candidate_table import Context
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.state import schemas_at
from penstock.lake.changes import ChangeSet
from penstock.lake.naming import TableRef, directory_name, fold, new_uuid7
from penstock.lake.session import SparkSource
from penstock.lake.snapshot import Snapshot
from penstock.lake.staging import TransactionTable

__all__ = ["Staged", "Transaction", "TransactionTable"]

Also = Callable[[Connection, int], None]


class Transaction:
    """Changes of a lake that are published together, on top of the snapshot ``base``.

    As a context manager: commits on a clean exit, rolls back on an error. Its tables are not for
    several threads at once; several transactions are.
    """

    def __init__(
        self,
        catalog: Catalog,
        spark: SparkSource,
        *,
        author: str | None = None,
        message: str | None = None,
        extra: str | None = None,
    ) -> None:
        if catalog.read_only:
            raise ReadOnlyLake(
                "the lake is attached read-only", hint="attach it without read_only to write"
            )
        self.base: Snapshot = catalog.latest()
        self._catalog = catalog
        self._info = {"author": author, "message": message, "extra": extra}
        self._also: list[Also] = []
        self._tables: dict[tuple[str, str], TransactionTable] = {}
        self._new_schemas: dict[str, str] = {}
        self._outcome_open = False
        self._context = Context(catalog, spark, self.base, self._schema_path)

    def table(self, name: str) -> TransactionTable:
        """The table ``schema.name`` (or ``name`` in ``main``), existing or to be made."""
        ref = TableRef.parse(name)
        key = (fold(ref.schema), fold(ref.name))
        if key not in self._tables:
            self._tables[key] = TransactionTable(self._context, ref.schema, ref.name)
        return self._tables[key]

    def create_schema(self, name: str) -> None:
        """Create a schema; one that exists is left alone."""
        existing = {fold(known) for known in self._catalog.schemas(self.base.id)}
        if fold(name) not in existing:
            self._new_schemas.setdefault(fold(name), name)

    def also(self, write: Also) -> None:
        """Have ``write(connection, snapshot_id)`` run in the data's own catalog transaction."""
        self._also.append(write)

    def commit(self) -> Snapshot | None:
        """Publish what was staged; ``None`` when that is nothing (``also`` is not run then).

        When the commit did not land, the staged files are removed: CommitConflict,
        RetriesExhausted, CatalogLocked. CommitUnknown leaves them alone.
        """
        changes = self._changes()
        if not changes:
            self.rollback()
            return None
        # Whatever ends this call but an answer (Ctrl-C, a fault) leaves it open whether the commit
        # landed: then its files must stay, even when the caller rolls back.
        self._outcome_open = True
        try:
            snapshot = self._catalog.commit(self.base, changes, **self._info, also=self._also)
        except CommitUnknown:
            raise
        except (CommitError, CatalogError, ReadOnlyLake):
            self._outcome_open = False
            self.rollback()
            raise
        self._outcome_open = False
        self._tables.clear()
        return snapshot

    def rollback(self) -> None:
        """Forget everything staged and remove its files.

        After a commit whose outcome is not known the files stay: they may be the table's by now.
        """
        if not self._outcome_open:
            for table in self._tables.values():
                table.discard()
        self._tables.clear()
        self._new_schemas.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.commit()
        elif not isinstance(error, CommitUnknown):
            self.rollback()

    def _changes(self) -> ChangeSet:
        changes = (table.candidate.change() for table in self._tables.values())
        return ChangeSet(
            create_schemas=tuple(self._new_schemas.values()),
            tables=tuple(change for change in changes if change is not None),
        )

    def _schema_path(self, name: str) -> str:
        with self._catalog.reading() as connection:
            entries = schemas_at(connection, self._catalog.data_path, self.base)
        if fold(name) in entries:
            return entries[fold(name)].path
        if fold(name) in self._new_schemas:
            new = self._new_schemas[fold(name)]
            return f"{self._catalog.data_path}{directory_name(new, new_uuid7())}"
        raise _no_schema(name, [entry.name for entry in entries.values()])


def _no_schema(name: str, known: list[str]) -> LakeError:
    return SchemaNotFound(
        f"there is no schema {name!r}",
        hint=f"create it (Transaction.create_schema); there are {', '.join(sorted(known))}",
        data={"schema": name},
    )
