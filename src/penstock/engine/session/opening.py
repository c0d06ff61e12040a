"""Open the Delta roots of a project, and look at them again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.settings.config import LakeSettings

if TYPE_CHECKING:
    from penstock.lake.catalog.catalog import Catalog
    from penstock.lake.lake import Lake
    from penstock.lake.limits import Limits
    from penstock.spark.session import SparkSource

_LOOK = 2.0  # seconds for which a Delta root is taken to be as it was last seen


def attach_root(settings: LakeSettings, spark: SparkSource, limits: Limits) -> Lake:
    """A Delta root for writing; a new one has no tables."""
    from penstock.destinations.delta.lake import DeltaLake
    from penstock.engine.state.carried import restore

    assert settings.data_path is not None, "a root says where it is"
    return DeltaLake.of_root(
        settings.data_path,
        settings.catalog,
        metadata_schema=settings.metadata_schema,
        spark=spark,
        name=settings.name,
        storage=settings.storage or None,
        restore=restore,
        limits=limits,
        deletion_vectors=settings.deletion_vectors,
    )


def open_index_of(settings: LakeSettings) -> Catalog:
    """The index of a Delta root, which is made where the root has tables. Raises CatalogMissing
    where it has none, and no run has made any.
    """
    from weakref import finalize

    from penstock.destinations.delta.lake import open_index
    from penstock.engine.state.carried import restore
    from penstock.lake.storage import Storage, hold

    root = settings.data_path
    assert root is not None, "a root says where it is"
    release = hold(root, Storage.of(settings.storage or None))
    try:
        catalog = open_index(
            root, settings.catalog, settings.metadata_schema, restore, create=False
        )
    except BaseException:
        release()
        raise
    finalize(catalog, release)
    return catalog


def look_again(catalog: Catalog) -> None:
    """Bring the index of a Delta root up to date, unless that was done a moment ago."""
    from penstock.destinations.delta.catalog import DeltaCatalog

    if isinstance(catalog, DeltaCatalog) and time.monotonic() - catalog.looked_at > _LOOK:
        from penstock.destinations.delta.discovery import look
        from penstock.engine.state.carried import restore

        look(catalog, restore)
