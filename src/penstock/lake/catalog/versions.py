"""Versions of the format: which this build reads and writes."""

from __future__ import annotations

from penstock.errors import CatalogVersionUnsupported, UnsupportedFeature
from penstock.lake.catalog.location import CatalogLocation

WRITTEN = "1.0"
READ = ("0.3", "0.4", "1.0", "1.1")

_READS = ", ".join(READ[:-1]) + f" and {READ[-1]}"
_MIGRATE = "attach it once with DuckDB 1.5 and AUTOMATIC_MIGRATION TRUE, which makes it a 1.0"
_ADVICE = {"0.1": _MIGRATE, "0.2": _MIGRATE}
_TO_WRITE = {
    "0.3": _MIGRATE + " (that loses time travel inside merged files)",
    "0.4": _MIGRATE,
    "1.1": "write to it with DuckDB 2.0, or look for a newer version of Penstock",
}


def check_version(where: CatalogLocation, version: str | None) -> str:
    """``version`` if it is one that is read; else CatalogVersionUnsupported with what to do."""
    if version in READ:
        return version
    said = "no version" if version is None else f"version {version}"
    raise CatalogVersionUnsupported(
        f"the catalog {where} has {said} of the format; versions {_READS} are read",
        hint=_ADVICE.get(version or "", "look for a version of Penstock that knows it"),
        data={"version": version, "supported": READ},
    )


def check_writable(where: CatalogLocation, version: str) -> None:
    """Raise UnsupportedFeature for a catalog that is read only, being of another version."""
    if version != WRITTEN:
        raise UnsupportedFeature(
            f"the catalog {where} has version {version} of the format, which is read but not "
            f"written: only {WRITTEN} is",
            hint=f"to write to it, {_TO_WRITE[version]}",
            data={"version": version, "written": WRITTEN},
        )
