"""Paths at the three levels, relative and absolute, lead where DuckDB finds the files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlalchemy import text

from penstock.errors import DataPathError
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database import metadata
from tests import duck
from tests.lakes.catalog.conftest import Place

# Where the schema, the table and the file are said to be ("{}": the directory of the test), and
# where the file is then. What does not begin with "/" is relative.
PLACED = {
    "as they are made": ("s/", "t/", "f.parquet", "data/s/t/f.parquet"),
    "without slashes": ("s", "t", "f.parquet", "data/stf.parquet"),
    "absolute without slashes": ("{}/x", "t", "f.parquet", "xtf.parquet"),
    "deeper": ("a/b/", "c/d/", "e/f.parquet", "data/a/b/c/d/e/f.parquet"),
    "absolute schema": ("{}/x/", "t/", "f.parquet", "x/t/f.parquet"),
    "absolute table": ("s/", "{}/y/", "f.parquet", "y/f.parquet"),
    "absolute schema and table": ("{}/x/", "{}/y/", "f.parquet", "y/f.parquet"),
    "absolute file": ("s/", "t/", "{}/z/f.parquet", "z/f.parquet"),
    "all absolute": ("{}/x/", "{}/y/", "{}/z/f.parquet", "z/f.parquet"),
    "upwards": ("s/", "../t/", "f.parquet", "data/t/f.parquet"),
    "nothing": ("", "", "f.parquet", "data/f.parquet"),
    "spaces and signs": ("a b/", "ü%20/", "f=1 #.parquet", "data/a b/ü%20/f=1 #.parquet"),
}


@pytest.fixture
def file(place: Place, tmp_path: Path) -> Iterator[Path]:
    """A lake with one table of one file; the test has ``tmp_path`` as its working directory."""
    with duck.attach(place.uri, place.data_path) as theirs:
        theirs.execute("CREATE SCHEMA s")
        theirs.execute("CREATE TABLE s.t AS SELECT 42 AS i")
    before = Path.cwd()
    os.chdir(tmp_path)
    yield next(tmp_path.rglob("*.parquet"))
    os.chdir(before)


def say(place: Place, **paths: str) -> None:
    """Set what the catalog has as the path of the schema, of the table, of the file."""
    with place.open(override_data_path=True) as lake, lake.writing() as connection:
        for kind, path in paths.items():
            relative = not path.startswith("/")
            connection.execute(
                getattr(metadata, kind).update().values(path=path, path_is_relative=relative)
            )


def same(first: str | Path, other: str | Path) -> bool:
    return Path(first).samefile(other)


def both(uri: str, **options: Any) -> tuple[str, str]:
    """The path of the file of ``s.t`` that DuckDB reads, having read it, and ours."""
    rows = duck.rows(uri, "SELECT i FROM s.t", **options)
    assert rows == [(42,)]
    query = "SELECT data_file FROM ducklake_list_files('lk', 't', schema => 's')"
    (listed,) = duck.rows(uri, query, **options)
    with Catalog.open(uri, **options) as lake:
        (registered,) = lake.files(lake.table("s", "t", 2), 2).files
    return listed[0], registered.path


def test_where_files_are(place: Place, file: Path, tmp_path: Path) -> None:
    for case, (schema, table, data_file, stored) in PLACED.items():
        target = tmp_path / stored
        target.parent.mkdir(parents=True, exist_ok=True)
        file = file.rename(target)
        said = {"schema": schema, "table": table, "data_file": data_file}
        say(place, **{kind: path.format(tmp_path) for kind, path in said.items()})
        theirs, ours = both(place.uri)
        assert same(theirs, ours), case
        assert same(ours, target), case


def test_a_relative_data_path_is_relative_to_the_working_directory(
    place: Place, file: Path, tmp_path: Path
) -> None:
    """Neither to the catalog's folder nor to where the lake was made."""
    for path in ("data", "./data/", f"../{tmp_path.name}/data/"):
        with place.open(override_data_path=True) as lake, lake.writing() as connection:
            connection.execute(
                text("UPDATE ducklake_metadata SET value = :path WHERE key = 'data_path'"),
                {"path": path},
            )
        theirs, ours = both(place.uri)
        assert same(theirs, ours)
        assert same(ours, file)
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    with pytest.raises(duckdb.Error, match="No such file"):
        both(place.uri)
    with Catalog.open(place.uri) as lake:
        assert not Path(lake.files(lake.table("s", "t", 2), 2).files[0].path).exists()


def test_a_data_path_that_overrides(place: Place, file: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "data", tmp_path / "moved")
    there = "moved"
    with pytest.raises(duckdb.Error, match="does not match"):
        both(place.uri, data_path=there)
    with pytest.raises(DataPathError, match="override_data_path"):
        Catalog.open(place.uri, data_path=there)
    theirs, ours = both(place.uri, data_path=there, override_data_path=True)
    assert same(theirs, ours)
    assert ours.startswith(f"{tmp_path}/moved/")
    there = f"{tmp_path}/moved"
    say(place, data_file=str(file))  # what is absolute stays where it is
    theirs, ours = both(place.uri, data_path=there, override_data_path=True)
    assert theirs == ours == str(file)


def test_a_file_with_a_path_that_only_claims_to_be_absolute(place: Place, file: Path) -> None:
    """It is relative to the working directory then."""
    say(place, data_file=str(file))
    with place.open() as lake, lake.writing() as connection:
        relative = file.relative_to(Path.cwd())
        connection.execute(text("UPDATE ducklake_data_file SET path = :p"), {"p": str(relative)})
    theirs, ours = both(place.uri)
    assert same(theirs, ours)


def test_the_default_data_path_is_the_same(tmp_path: Path) -> None:
    """SQLite has a default only in Penstock: DuckDB requires a data path."""
    paths = []
    for attach, name in ((duck.attach, "theirs"), (Catalog.open, "ours")):
        attach(f"ducklake:{tmp_path}/{name}.ducklake").close()
        with Catalog.open(f"ducklake:{tmp_path}/{name}.ducklake") as lake:
            paths.append(lake.data_path.replace(name, "x"))
    assert paths == [f"{tmp_path}/x.ducklake.files/"] * 2
