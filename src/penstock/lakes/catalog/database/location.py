"""Locate a catalog (the text after ``ducklake:``) and its files.

Paths are absolute inside Penstock, and relative in the catalog wherever that is possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from penstock.errors import ConfigError, UnsupportedFeature
from penstock.lakes.storage import is_remote
from penstock.masking import masked

_PREFIX = "ducklake:"
_HINT = "write ducklake:PATH, ducklake:sqlite:PATH or ducklake:postgres:dbname=NAME host=HOST"
_PATH = re.compile(r"[/\\.~\x00]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+]+:")  # one letter: a drive of Windows


@dataclass(frozen=True, slots=True, repr=False)
class CatalogLocation:
    """``target`` is the absolute path of a file or a libpq connection string."""

    kind: str  # "sqlite", "duckdb" or "postgres"
    target: str

    def __str__(self) -> str:
        """For messages: without the password."""
        return f"{self.kind}:{masked(self.target) if self.kind == 'postgres' else self.target}"

    def __repr__(self) -> str:
        return f"CatalogLocation({str(self)!r})"


def parse_location(uri: str) -> CatalogLocation:
    """Read a catalog's URI, with or without ``ducklake:`` in front.

    A relative path is relative to the working directory, as for DuckDB. Raises ConfigError for
    what is not a URI. A path without a kind is a DuckDB file.
    """
    text = uri.removeprefix(_PREFIX)
    scheme, colon, rest = text.partition(":")
    reader = _READERS.get(scheme.lower()) if colon else None
    if reader is None:
        return _bare(text)
    return reader(rest)


def _sqlite(rest: str) -> CatalogLocation:
    if not rest or "\x00" in rest:
        raise ConfigError("the catalog's URI names no SQLite file", hint=_HINT)
    return CatalogLocation("sqlite", str(Path(rest).expanduser().absolute()))


def _postgres(rest: str) -> CatalogLocation:
    """``rest`` is ``key=value ...``, a whole URL, or what follows the scheme of one."""
    target = f"postgresql:{rest}" if rest.startswith("//") else rest
    if "://" in target and target.partition("?")[0].count("@") > 1:
        raise ConfigError(
            "the catalog's URL has more than one @, which ends the password",
            hint="write an @ in the user's name or the password as %40",
        )
    return CatalogLocation("postgres", target.strip())


def _duckdb(rest: str) -> CatalogLocation:
    if not rest or "\x00" in rest:
        raise ConfigError("the catalog's URI names no DuckDB file", hint=_HINT)
    return CatalogLocation("duckdb", str(Path(rest).expanduser().absolute()))


def _bare(rest: str) -> CatalogLocation:
    if not rest:
        raise ConfigError("the catalog's URI is empty", hint=_HINT)
    if scheme := _SCHEME.match(rest):
        raise ConfigError(f"there are no catalogs of kind {scheme[0][:-1]!r}", hint=_HINT)
    if not _PATH.search(rest) and not Path(rest).exists():
        raise ConfigError(
            f"{_PREFIX}{rest} is neither a path nor a file that exists; DuckDB looks for a secret "
            "of that name, and Penstock has none",
            hint=f"{_HINT}; for a new DuckDB file write ducklake:duckdb:{rest}",
        )
    if _is_sqlite(rest):
        raise ConfigError(
            f"{rest} is a SQLite file, and a path alone means one of DuckDB",
            hint=f"write ducklake:sqlite:{rest}",
        )
    return _duckdb(rest)


def _is_sqlite(path: str) -> bool:
    """Return whether the file begins as SQLite's files do (https://sqlite.org/fileformat.html,
    1.3).

    DuckDB 1.5.5 refuses such a file as well, with "Unsupported parameter for SQLite Attach".
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(16) == b"SQLite format 3\x00"
    except (OSError, ValueError):
        return False


def _mysql(rest: str) -> CatalogLocation:
    del rest  # may hold a password
    raise UnsupportedFeature("catalogs in MySQL are not supported", hint=_HINT)


_READERS: Mapping[str, Callable[[str], CatalogLocation]] = {
    "sqlite": _sqlite,
    "duckdb": _duckdb,
    "postgres": _postgres,
    "postgresql": _postgres,
    "mysql": _mysql,
}


def absolute_directory(text: str) -> str:
    """``text`` as an absolute directory that ends in ``/``; remote URIs stay what they are.

    ``file:`` URIs become plain paths. What is relative is relative to the working directory, as
    for DuckDB.
    """
    if text.startswith("file:"):
        text = unquote("/" + text.removeprefix("file:").lstrip("/"))
    path = text if is_remote(text) else str(Path(text).expanduser().absolute())
    return path if path.endswith("/") else f"{path}/"


def resolve(base: str, path: str, is_relative: bool | None) -> str:
    """The absolute path of what the catalog stores; a NULL flag counts as relative.

    The texts are concatenated, as in DuckDB: a directory without ``/`` at its end is the beginning
    of a name.
    """
    if is_relative is None or is_relative:
        return f"{base}{path}"
    is_absolute = is_remote(path) or Path(path).is_absolute()
    return path if is_absolute else f"{Path.cwd()}/{path}"


def resolve_directory(base: str, path: str | None, is_relative: bool | None) -> str:
    """`resolve` of a schema's or a table's path, which may be missing."""
    return resolve(base, path or "", is_relative)


def store(base: str, path: str) -> tuple[str, bool]:
    """Return what the catalog stores for an absolute path: the text, and whether it is relative."""
    if path.startswith(base) and len(path) > len(base):
        return path[len(base) :], True
    return path, False


def stored_path(base: str, path: str) -> dict[str, Any]:
    """`store` as the two columns it goes to."""
    text, is_relative = store(base, path)
    return {"path": text, "path_is_relative": is_relative}
