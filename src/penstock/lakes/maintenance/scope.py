"""Arguments and results of maintenance functions: a lake's catalog, its tables, rows of results.

The results have the columns of DuckDB's functions of the same name. Tables are maintained one after
the other, and a table that fails does not stop the rest.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from penstock.errors import CommitUnknown, LakeError, SchemaNotFound
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.changes import ChangeSet, Compaction
from penstock.lakes.format.files import Table
from penstock.lakes.format.naming import TableRef, fold
from penstock.lakes.snapshot import Snapshot
from penstock.lakes.transaction import Transaction
from penstock.spark.session import SparkSource


class HasCatalog(Protocol):
    """A lake, as far as maintenance needs one."""

    @property
    def catalog(self) -> Catalog: ...


@runtime_checkable
class HasSpark(Protocol):
    """A lake that may have a Spark session; without one the source raises EnvironmentMissing."""

    @property
    def spark_source(self) -> SparkSource: ...


@runtime_checkable
class InTransaction(Protocol):
    """A lake in which a transaction may be open, which then commits the compaction."""

    @property
    def open_transaction(self) -> Transaction | None: ...


def base_of(lake: HasCatalog) -> Snapshot:
    """The snapshot to compact: the open transaction's, or the latest."""
    transaction = _open_in(lake)
    return lake.catalog.latest() if transaction is None else transaction.base


def publish(
    lake: HasCatalog,
    base: Snapshot,
    compactions: Sequence[Compaction],
    discard: Callable[[], None],
    what: str,
) -> None:
    """Commit compactions of the snapshot ``base``, or have the open transaction do so.

    ``discard`` removes their files if that transaction is rolled back. ``what`` is the commit
    message in a lake that requires one; otherwise there is no message, as in DuckDB.
    """
    transaction, catalog = _open_in(lake), lake.catalog
    if transaction is not None:
        transaction.compact(compactions, discard)
        return
    message = what if catalog.option("require_commit_message") == "true" else None
    catalog.commit(base, ChangeSet(compactions=tuple(compactions)), message=message)


def _open_in(lake: HasCatalog) -> Transaction | None:
    return lake.open_transaction if isinstance(lake, InTransaction) else None


def tables_meant(
    catalog: Catalog, table: str | None, schema: str | None, base: Snapshot
) -> list[Table]:
    """The tables at the snapshot ``base``: one, those of a schema, or all.

    ``table`` may be ``schema.table``. Tables with the option ``auto_compact`` off are skipped even
    where they are named, as in DuckDB 1.5.5. Raises TableNotFound, SchemaNotFound.
    """
    latest = base.id
    if table is not None:
        ref = TableRef.parse(table) if schema is None else TableRef(schema, table)
        tables = [catalog.table(ref.schema, ref.name, latest)]
    else:
        tables = catalog.tables(latest)
        if schema is not None:
            _check_schema(catalog, schema, latest)
            tables = [
                table_at_base
                for table_at_base in tables
                if fold(table_at_base.schema_name) == fold(schema)
            ]
    return [
        table_at_base
        for table_at_base in tables
        if catalog.option("auto_compact", table_at_base) != "false"
    ]


def _check_schema(catalog: Catalog, schema: str, snapshot_id: int) -> None:
    names = catalog.schemas(snapshot_id)
    if fold(schema) not in map(fold, names):
        raise SchemaNotFound(
            f"schema {schema!r} does not exist at snapshot {snapshot_id}",
            hint=f"the schemas are {', '.join(names)}",
            data={"schema": schema},
        )


T = TypeVar("T")


def each(tables: Sequence[Table], run: Callable[[Table], list[T]]) -> list[T]:
    """Call ``run`` for each table in order, and return the rows of all.

    The first error is raised at the end, with the other errors and the number of tables that
    succeeded in its data. After a commit with an unknown outcome no further table is tried.
    """
    results: list[T] = []
    failed: list[tuple[Table, LakeError]] = []
    for table in tables:
        try:
            results += run(table)
        except CommitUnknown:
            raise
        except LakeError as error:
            failed.append((table, error))
    if failed:
        raise _summary(failed, len(tables))
    return results


def _summary(failed: Sequence[tuple[Table, LakeError]], tables: int) -> LakeError:
    (table, first), *more = failed
    first.data["table"] = table.qualified_name
    if tables > 1:
        first.data["tables_done"] = tables - len(failed)
        first.data["also_failed"] = {table.qualified_name: str(error) for table, error in more}
        others = f"; so did {len(more)} more" if more else ""
        done = f"this table failed{others}; {tables - len(failed)} of {tables} are done"
        first.hint = f"{first.hint} ({done})" if first.hint else done
    return first


@dataclass(frozen=True, slots=True)
class Compacted:
    """The number of files that were compacted, and into how many (0 where no row remained)."""

    schema_name: str
    table_name: str
    files_processed: int
    files_created: int


@dataclass(frozen=True, slots=True)
class Expired:
    """A snapshot that was expired, or would be. ``changes`` is the catalog's text."""

    snapshot_id: int
    snapshot_time: dt.datetime
    schema_version: int
    changes: str
    author: str | None
    commit_message: str | None
    commit_extra_info: str | None


@dataclass(frozen=True, slots=True)
class Removed:
    """A file that was removed, or would be; or that was left, with the reason."""

    path: str
    left: str | None = None
