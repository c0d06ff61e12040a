"""The places of catalogs, as tests of the catalog have them."""

from __future__ import annotations

from tests.lakes.catalog.conftest import (
    lake,
    place,
    postgres_server,
    postgres_uri,
    sqlite_place,
)

__all__ = ["lake", "place", "postgres_server", "postgres_uri", "sqlite_place"]
