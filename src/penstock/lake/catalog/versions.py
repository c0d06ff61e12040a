"""Versions of the format: which this build reads and writes."""

from __future__ import annotations

from penstock.errors import CatalogVersionUnsupported
from penstock.lake.catalog.location import CatalogLocation

WRITTEN = "1.0"

# What to do about a catalog of another version. Reading them is to come; none is guessed at.
_ADVICE = {
    "0.1": "attach it once with DuckDB 1.5 and AUTOMATIC_MIGRATION TRUE",
    "0.2": "attach it once with DuckDB 1.5 and AUTOMATIC_MIGRATION TRUE",
    "0.3": "attach it once with DuckDB 1.5 and AUTOMATIC_MIGRATION TRUE",
    "0.4": "attach it once with DuckDB 1.5.2 or later and AUTOMATIC_MIGRATION TRUE",
    "1.1": "this version of Penstock works with 1.0; look for a newer one",
}


def check_version(where: CatalogLocation, version: str | None) -> str:
    """``version`` if it is one that is read; else CatalogVersionUnsupported with what to do."""
    if version == WRITTEN:
        return version
    said = "no version" if version is None else f"version {version}"
    raise CatalogVersionUnsupported(
        f"the catalog {where} has {said} of the format; this is for version {WRITTEN}",
        hint=_ADVICE.get(version or "", "look for a version of Penstock that knows it"),
        data={"version": version, "supported": (WRITTEN,)},
    )
