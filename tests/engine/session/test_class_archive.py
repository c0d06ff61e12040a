"""Where the archive of Spark's classes is, and when it is used. Starts no Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.engine.session.class_archive import (
    OPTIONS,
    ClassArchive,
    archive_of,
    with_archive,
)
from penstock.settings.config import SparkSettings

RELEASE = 'JAVA_VERSION="17.0.15"\n'


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """An executable below a home that says its release."""
    home = tmp_path / "java-17"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(RELEASE)
    (home / "bin" / "java").touch()
    return home / "bin" / "java"


@pytest.fixture
def archive(tmp_path: Path, java: Path) -> ClassArchive:
    directory = tmp_path / "cache"
    directory.mkdir()
    return ClassArchive.of(directory, java)


def made(archive: ClassArchive, content: bytes = b"classes") -> Path:
    """An archive of some content, in its place."""
    file = archive.directory / "new.jsa"
    file.write_bytes(content)
    return archive.keep(file)


def test_there_is_none_at_first(archive: ClassArchive) -> None:
    assert archive.path is None
    assert with_archive({"a": "b"}, archive) == {"a": "b"}


def test_a_missing_directory_has_none(tmp_path: Path, java: Path) -> None:
    assert ClassArchive.of(tmp_path / "nowhere", java).path is None


def test_what_is_kept_is_used(archive: ClassArchive) -> None:
    path = made(archive)
    assert archive.path == path
    conf = with_archive({OPTIONS: "-Dx=y"}, archive)
    assert conf[OPTIONS].startswith(f"-Dx=y -XX:SharedArchiveFile={path} ")


def test_it_is_the_only_option_where_nothing_else_is_set(archive: ClassArchive) -> None:
    path = made(archive)
    assert with_archive({}, archive)[OPTIONS].startswith(f"-XX:SharedArchiveFile={path} ")


@pytest.mark.parametrize("length", [0, 3, 100])
def test_one_that_is_cut_off_would_crash_java(archive: ClassArchive, length: int) -> None:
    made(archive).write_bytes(b"x" * length)
    assert archive.path is None


def test_a_directory_of_its_name_is_none(archive: ClassArchive) -> None:
    (archive.directory / f"spark-{archive.key}-4096.jsa").mkdir()
    assert archive.path is None


def test_another_java_has_another_one(archive: ClassArchive, java: Path) -> None:
    made(archive)
    (java.parent.parent / "release").write_text('JAVA_VERSION="17.0.16"\n')
    assert ClassArchive.of(archive.directory, java).path is None


def test_other_jars_have_another_one(
    archive: ClassArchive, java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "packages" / "pyspark"
    (package / "jars").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    keys = set()
    for size in (1, 2):
        (package / "jars" / "spark-core.jar").write_bytes(b"x" * size)
        keys.add(ClassArchive.of(archive.directory, java).key)
    assert len(keys | {archive.key}) == 3


def test_a_link_to_java_has_the_same(archive: ClassArchive, java: Path, tmp_path: Path) -> None:
    link = tmp_path / "java"
    link.symlink_to(java)
    assert ClassArchive.of(archive.directory, link) == archive


def test_old_ones_are_removed(archive: ClassArchive) -> None:
    for number in range(4):
        old = archive.directory / f"spark-{number:016x}-1.jsa"
        old.write_bytes(b"x")
        os.utime(old, (number, number))
    path = made(archive)
    assert sorted(archive.directory.glob("*.jsa")) == sorted(
        [path, archive.directory / "spark-0000000000000003-1.jsa"]
    )


def test_making_it_again_leaves_one(archive: ClassArchive) -> None:
    made(archive, b"first")
    path = made(archive, b"second, longer")
    assert list(archive.directory.iterdir()) == [path]


def test_one_with_which_java_ended_is_gone(archive: ClassArchive) -> None:
    made(archive)
    archive.discard()
    assert archive.path is None


@pytest.mark.parametrize("options", ["-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa"])
def test_the_projects_own_options_win(archive: ClassArchive, options: str) -> None:
    made(archive)
    assert with_archive({OPTIONS: options}, archive) == {OPTIONS: options}


def test_a_path_with_a_space_cannot_be_an_option(tmp_path: Path, java: Path) -> None:
    directory = tmp_path / "my cache"
    directory.mkdir()
    archive = ClassArchive.of(directory, java)
    made(archive)
    assert with_archive({}, archive) == {}


def test_it_is_for_spark_of_this_machine_and_environment(tmp_path: Path, java: Path) -> None:
    assert archive_of(SparkSettings(archives=tmp_path), java) is not None
    assert archive_of(SparkSettings(), java) is None
    assert archive_of(SparkSettings(master="yarn", archives=tmp_path), java) is None
    elsewhere = SparkSettings(archives=tmp_path, environ={"SPARK_HOME": "/opt/spark"})
    assert archive_of(elsewhere, java) is None


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java")
@pytest.mark.parametrize("content", [b"", b"no classes" * 10_000])
def test_java_says_nothing_of_one_that_it_cannot_use(archive: ClassArchive, content: bytes) -> None:
    made(archive, content)
    options = with_archive({}, archive)[OPTIONS].split()
    done = subprocess.run(
        ["java", *options, "-version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert "warning" not in done.stderr
