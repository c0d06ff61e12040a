"""The maintenance functions, by name for SQL's CALL and the command line, and as methods of a lake.

Names and parameters are DuckDB's, and those that are positional there are so in CALL. A function is
called with the lake and these parameters by name; it returns rows of one frozen class.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.lake.maintenance.checkpoint import Done, checkpoint
from penstock.lake.maintenance.compaction import merge_adjacent_files, rewrite_data_files
from penstock.lake.maintenance.flush_inlined_data import FlushedTable, flush_inlined_data
from penstock.lake.maintenance.removal import cleanup_old_files, delete_orphaned_files
from penstock.lake.maintenance.scope import Compacted, Expired, HasCatalog, Removed
from penstock.lake.maintenance.snapshots import (
    RolledBackTable,
    expire_snapshots,
    rollback_to_snapshot,
)
from penstock.lake.maintenance.writing import DEFAULT, Resources


@dataclass(frozen=True, slots=True)
class Parameter:
    """``type`` is DuckDB's: VARCHAR, BOOLEAN, UBIGINT, UBIGINT[], DOUBLE, TIMESTAMPTZ.

    A TIMESTAMPTZ is given as an aware datetime, a list as a sequence.
    """

    name: str
    type: str
    default: Any = None
    positional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """``returns`` is the class of its rows."""

    name: str
    function: Callable[..., Sequence[Any]]
    returns: type
    parameters: tuple[Parameter, ...] = field(default=())

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


_TABLE = Parameter("table", "VARCHAR", positional=True)
_SCHEMA = Parameter("schema", "VARCHAR")
_DRY_RUN = Parameter("dry_run", "BOOLEAN", default=False)
_OLDER_THAN = Parameter("older_than", "TIMESTAMPTZ")
_ALL = Parameter("cleanup_all", "BOOLEAN", default=False)
_CALLS = (
    Call(
        "merge_adjacent_files",
        merge_adjacent_files,
        Compacted,
        (
            *(_TABLE, _SCHEMA),
            Parameter("max_compacted_files", "UBIGINT"),
            Parameter("min_file_size", "UBIGINT"),
            Parameter("max_file_size", "UBIGINT"),
            _DRY_RUN,
        ),
    ),
    Call(
        "rewrite_data_files",
        rewrite_data_files,
        Compacted,
        (_TABLE, _SCHEMA, Parameter("delete_threshold", "DOUBLE"), _DRY_RUN),
    ),
    Call(
        "expire_snapshots",
        expire_snapshots,
        Expired,
        (_OLDER_THAN, Parameter("versions", "UBIGINT[]"), _DRY_RUN),
    ),
    Call("flush_inlined_data", flush_inlined_data, FlushedTable, (_TABLE, _SCHEMA)),
    Call(
        "cleanup_old_files",
        cleanup_old_files,
        Removed,
        (_OLDER_THAN, _ALL, Parameter("outside_data_path", "BOOLEAN", default=False), _DRY_RUN),
    ),
    Call("delete_orphaned_files", delete_orphaned_files, Removed, (_OLDER_THAN, _ALL, _DRY_RUN)),
    Call(
        "rollback_to_snapshot",
        rollback_to_snapshot,
        RolledBackTable,
        (
            _TABLE,
            Parameter("snapshot", "UBIGINT", positional=True),
            _SCHEMA,
            Parameter("timestamp", "TIMESTAMPTZ"),
        ),
    ),
    Call("checkpoint", checkpoint, Done, (_TABLE, _SCHEMA, _DRY_RUN)),  # the statement CHECKPOINT
)
CALLS: Mapping[str, Call] = {call.name: call for call in _CALLS}


class Maintained:
    """The maintenance functions as methods of a lake, which has a ``catalog``."""

    def merge_adjacent_files(
        self: HasCatalog,
        table: str | None = None,
        *,
        schema: str | None = None,
        max_compacted_files: int | None = None,
        min_file_size: int | None = None,
        max_file_size: int | None = None,
        dry_run: bool = False,
        resources: Resources = DEFAULT,
    ) -> list[Compacted]:
        """Merge small files: ``lake.merge_adjacent_files("orders")``.

        See `penstock.lake.maintenance.compaction`.
        """
        return merge_adjacent_files(
            self,
            table,
            schema=schema,
            max_compacted_files=max_compacted_files,
            min_file_size=min_file_size,
            max_file_size=max_file_size,
            dry_run=dry_run,
            resources=resources,
        )

    def rewrite_data_files(
        self: HasCatalog,
        table: str | None = None,
        *,
        schema: str | None = None,
        delete_threshold: float | None = None,
        dry_run: bool = False,
        resources: Resources = DEFAULT,
    ) -> list[Compacted]:
        """Rewrite files: ``lake.rewrite_data_files("orders", delete_threshold=0.5)``.

        Files with many deleted rows are rewritten without those; see `rewrite_data_files`.
        """
        return rewrite_data_files(
            self,
            table,
            schema=schema,
            delete_threshold=delete_threshold,
            dry_run=dry_run,
            resources=resources,
        )

    def flush_inlined_data(
        self: HasCatalog, table: str | None = None, *, schema: str | None = None
    ) -> list[FlushedTable]:
        """Move inlined rows to files: ``lake.flush_inlined_data()``; see `flush_inlined_data`."""
        return flush_inlined_data(self, table, schema=schema)

    def expire_snapshots(
        self: HasCatalog,
        *,
        older_than: dt.datetime | None = None,
        versions: Sequence[int] | None = None,
        dry_run: bool = False,
    ) -> list[Expired]:
        """Expire snapshots: ``lake.expire_snapshots(versions=[1, 2], dry_run=True)``.

        Never the latest; see `expire_snapshots`.
        """
        return expire_snapshots(self, older_than=older_than, versions=versions, dry_run=dry_run)

    def cleanup_old_files(
        self: HasCatalog,
        *,
        older_than: dt.datetime | None = None,
        cleanup_all: bool = False,
        outside_data_path: bool = False,
        dry_run: bool = False,
    ) -> list[Removed]:
        """Remove files that are scheduled for deletion: ``lake.cleanup_old_files(dry_run=True)``.

        See `cleanup_old_files`.
        """
        return cleanup_old_files(
            self,
            older_than=older_than,
            cleanup_all=cleanup_all,
            outside_data_path=outside_data_path,
            dry_run=dry_run,
        )

    def delete_orphaned_files(
        self: HasCatalog,
        *,
        older_than: dt.datetime | None = None,
        cleanup_all: bool = False,
        dry_run: bool = False,
    ) -> list[Removed]:
        """Remove files unknown to the catalog: ``lake.delete_orphaned_files(dry_run=True)``.

        See `delete_orphaned_files`.
        """
        return delete_orphaned_files(
            self, older_than=older_than, cleanup_all=cleanup_all, dry_run=dry_run
        )

    def checkpoint(
        self: HasCatalog,
        table: str | None = None,
        *,
        schema: str | None = None,
        dry_run: bool = False,
        resources: Resources = DEFAULT,
    ) -> list[Done]:
        """All maintenance by the lake's options: ``lake.checkpoint()``; see `checkpoint`."""
        return checkpoint(self, table, schema=schema, dry_run=dry_run, resources=resources)
