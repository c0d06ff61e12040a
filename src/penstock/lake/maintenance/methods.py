"""The maintenance functions as methods of a lake."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from penstock.lake.maintenance import (
    checkpoint,
    cleanup_old_files,
    delete_orphaned_files,
    expire_snapshots,
    flush_inlined_data,
    merge_adjacent_files,
    rewrite_data_files,
)
from penstock.lake.maintenance.flush_inlined_data import FlushedTable
from penstock.lake.maintenance.parquet_settings import DEFAULT, Resources
from penstock.lake.maintenance.scope import Compacted, Expired, HasCatalog, Removed


class Maintained:
    """What a lake with a ``catalog`` can do for its upkeep; each is explained where it is."""

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

        See `penstock.lake.maintenance.merge_adjacent_files`.
        """
        return merge_adjacent_files.merge_adjacent_files(
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

        Those with many deleted rows are written anew; see `rewrite_data_files`.
        """
        return rewrite_data_files.rewrite_data_files(
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
        return flush_inlined_data.flush_inlined_data(self, table, schema=schema)

    def expire_snapshots(
        self: HasCatalog,
        *,
        older_than: dt.datetime | None = None,
        versions: Sequence[int] | None = None,
        dry_run: bool = False,
    ) -> list[Expired]:
        """Forget snapshots: ``lake.expire_snapshots(versions=[1, 2], dry_run=True)``.

        Never the latest; see `expire_snapshots`.
        """
        return expire_snapshots.expire_snapshots(
            self, older_than=older_than, versions=versions, dry_run=dry_run
        )

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
        return cleanup_old_files.cleanup_old_files(
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
        return delete_orphaned_files.delete_orphaned_files(
            self, older_than=older_than, cleanup_all=cleanup_all, dry_run=dry_run
        )

    def checkpoint(
        self: HasCatalog,
        table: str | None = None,
        *,
        schema: str | None = None,
        dry_run: bool = False,
        resources: Resources = DEFAULT,
    ) -> list[checkpoint.Done]:
        """All of it, by the lake's options: ``lake.checkpoint()``; see `checkpoint`."""
        return checkpoint.checkpoint(
            self, table, schema=schema, dry_run=dry_run, resources=resources
        )
