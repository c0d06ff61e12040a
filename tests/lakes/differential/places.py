"""Lakes of the three kinds of catalogs, each in a folder of its own, and copies of them."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

_MARK = "postgres:dbname="


@dataclass(frozen=True)
class Home:
    """``uri`` is as DuckDB and Penstock both take it; ``postgres`` the server's libpq string."""

    kind: str
    uri: str
    folder: Path
    postgres: str | None = None

    @property
    def data_path(self) -> str:
        return f"{self.folder}/data/"

    @property
    def files(self) -> Path:
        """For what a script writes beside the lake."""
        return self.folder / "files"


def make(kind: str, folder: Path, postgres: str | None = None) -> Home:
    """A place for a lake in an empty folder; a database of its own where it needs one."""
    (folder / "files").mkdir(parents=True)
    uri = _MAKERS[kind](folder, postgres)
    return Home(kind, uri, folder, postgres)


def _postgres_uri(folder: Path, postgres: str | None) -> str:
    del folder
    assert postgres is not None
    name = f"lake_{uuid.uuid4().hex}"
    _administer(postgres, f"CREATE DATABASE {name}")
    return f"ducklake:{_MARK}{name} {postgres}"


_MAKERS: Mapping[str, Callable[[Path, str | None], str]] = {
    "sqlite": lambda folder, _: f"ducklake:sqlite:{folder / 'meta.sqlite'}",
    "duckdb": lambda folder, _: f"ducklake:{folder / 'meta.ducklake'}",
    "postgres": _postgres_uri,
}


def copy(home: Home, folder: Path) -> Home:
    """The lake as it is now; nothing may be connected to it. Data files are linked, not copied."""
    folder.mkdir(parents=True)
    data = Path(home.data_path)
    if data.exists():
        shutil.copytree(data, folder / "data", copy_function=os.link)
    if home.postgres is None:
        for path in home.folder.glob("meta.*"):
            shutil.copy2(path, folder / path.name)
        return Home(home.kind, home.uri.replace(str(home.folder), str(folder)), folder)
    name = f"lake_{uuid.uuid4().hex}"
    database = _database(home)
    # DuckDB's pool may hold connections that it no longer uses.
    gone = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
    _administer(home.postgres, gone)
    _administer(home.postgres, f"CREATE DATABASE {name} TEMPLATE {_database(home)}")
    return Home(home.kind, home.uri.replace(_database(home), name), folder, home.postgres)


def drop(home: Home) -> None:
    shutil.rmtree(home.folder, ignore_errors=True)
    if home.postgres is not None:
        _administer(home.postgres, f"DROP DATABASE {_database(home)} WITH (FORCE)")


def _database(home: Home) -> str:
    return home.uri.partition(_MARK)[2].partition(" ")[0]


def _administer(postgres: str, statement: str) -> None:
    with closing(psycopg.connect(f"{postgres} dbname=postgres", autocommit=True)) as connection:
        connection.execute(statement.encode())
