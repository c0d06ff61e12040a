"""Where a catalog is: the text after ``ducklake:`` taken apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigError, UnsupportedFeature

_PREFIX = "ducklake:"
_SECRET = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)
_URL_SECRET = re.compile(r"(://[^:/@\s]*:)[^@\s]*@")
_HINT = "write ducklake:sqlite:PATH or ducklake:postgres:dbname=NAME host=HOST"
_SCHEME = re.compile(r"(?!duckdb:)[A-Za-z][A-Za-z0-9+]+:")  # one letter: a drive of Windows


@dataclass(frozen=True, slots=True)
class CatalogLocation:
    """``target`` is the absolute path of a SQLite file or a libpq connection string."""

    kind: str  # "sqlite" or "postgres"
    target: str

    def __str__(self) -> str:
        """For messages: without the password."""
        masked = _URL_SECRET.sub(r"\1***@", _SECRET.sub(r"\1***", self.target))
        return f"{self.kind}:{masked}"


def parse_location(uri: str) -> CatalogLocation:
    """Read a catalog's URI, with or without ``ducklake:`` in front.

    A relative path is relative to the working directory, as for DuckDB. Raises ConfigError for
    what is no URI, UnsupportedFeature for a DuckDB file as the catalog.
    """
    text = uri.removeprefix(_PREFIX)
    scheme, colon, rest = text.partition(":")
    reader = _READERS.get(scheme.lower()) if colon else None
    if reader is None:
        return _duckdb(text)
    return reader(rest)


def _sqlite(rest: str) -> CatalogLocation:
    if not rest or "\x00" in rest:
        raise ConfigError("the catalog's URI names no SQLite file", hint=_HINT)
    return CatalogLocation("sqlite", str(Path(rest).expanduser().absolute()))


def _postgres(rest: str) -> CatalogLocation:
    """``rest`` is ``key=value ...``, a whole URL, or what follows the scheme of one."""
    target = f"postgresql:{rest}" if rest.startswith("//") else rest
    return CatalogLocation("postgres", target.strip())


def _duckdb(rest: str) -> CatalogLocation:
    if not rest:
        raise ConfigError("the catalog's URI is empty", hint=_HINT)
    if found := _SCHEME.match(rest):
        raise ConfigError(f"there are no catalogs of kind {found[0][:-1]!r}", hint=_HINT)
    raise UnsupportedFeature(
        f"{rest!r} is a catalog in a DuckDB file, which this version does not open", hint=_HINT
    )


def _mysql(rest: str) -> CatalogLocation:
    del rest  # may hold a password
    raise UnsupportedFeature("catalogs in MySQL are not supported", hint=_HINT)


_READERS: Mapping[str, Callable[[str], CatalogLocation]] = {
    "sqlite": _sqlite,
    "postgres": _postgres,
    "postgresql": _postgres,
    "mysql": _mysql,
}
