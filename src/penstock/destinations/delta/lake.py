"""A Delta root as a lake: its tables are known by an index, and commits go to their logs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from penstock.delta.log_files import tables_below
from penstock.destinations.delta import discovery, versions
from penstock.destinations.delta.catalog import DeltaCatalog
from penstock.destinations.delta.discovery import Restore
from penstock.lakes import storage as storages
from penstock.lakes.catalog.database.location import absolute_directory
from penstock.lakes.lake import Lake, opened
from penstock.lakes.limits import LIMITS, Limits
from penstock.lakes.snapshot import LATEST
from penstock.lakes.storage import Storage
from penstock.lakes.transaction import Transaction
from penstock.spark.session import SparkSource, source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DeltaLake(Lake):
    """Tables of ``root/schema/table/``. ``restore`` gets the notes of commits that a process made
    and did not record, as it was killed in between.
    """

    catalog: DeltaCatalog
    restore: Restore | None = None

    @classmethod
    def of_root(
        cls,
        root: str,
        index: str,
        *,
        metadata_schema: str | None = None,
        spark: SparkSession | SparkSource | None = None,
        name: str = "delta",
        storage: Mapping[str, object] | None = None,
        restore: Restore | None = None,
        limits: Limits = LIMITS,
        deletion_vectors: bool = False,
    ) -> DeltaLake:
        """Open the tables below ``root``; ``index`` is the URI of the catalog that knows them.

        ``deletion_vectors``: tables that are made, or lose rows, get ``enableDeletionVectors``.
        """
        open_catalog = partial(open_index, root, index, metadata_schema, restore)
        make = partial(cls, at=LATEST, name=name, limits=limits)
        lake = opened(make, open_catalog, root, Storage.of(storage), spark)
        lake.restore = restore
        lake.catalog.vectors = deletion_vectors
        return lake

    def with_session(self, session: SparkSession) -> DeltaLake:
        """The same tables, read and written by another session."""
        more = partial(storages.spark_settings, self.catalog.data_path)
        other = DeltaLake(self.catalog, source(session, more), self.at, self.name, self.limits)
        other.restore = self.restore
        return other

    def refresh(self) -> None:
        """Look for tables and versions that others made."""
        discovery.look(self.catalog, self.restore)

    def transaction(
        self, author: str | None = None, message: str | None = None, extra: str | None = None
    ) -> Transaction:
        """As a lake's; after a conflict on what the other writer left."""
        if self.catalog.is_behind:
            self.refresh()
        return super().transaction(author, message, extra)


def open_index(
    root: str,
    index: str,
    metadata_schema: str | None,
    restore: Restore | None = None,
    *,
    create: bool = True,
) -> DeltaCatalog:
    """Open the index of a root and bring it up to date. Raises CatalogMissing where there is none
    and the root has no tables, unless it is to be made.
    """
    catalog = DeltaCatalog.open(
        index,
        data_path=root,
        create=create or bool(tables_below(absolute_directory(root))),
        metadata_schema=metadata_schema,
        override_data_path=True,
        inlining_row_limit=0,
        new_catalog=True,
    )
    with catalog.reading() as connection:
        known = versions.root_id(connection)
    if known is None:
        with catalog.writing() as connection:
            known = versions.prepare(connection)
    catalog.root_id = known
    catalog.catch_up = partial(discovery.look, catalog, restore)
    discovery.look(catalog, restore)
    return catalog
