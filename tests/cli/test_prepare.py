"""``penstock spark prepare`` where it has nothing to do, or cannot, and when a run prepares later.

The program ``bench.cold`` makes one and measures what it is worth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.cli.prepare import may_prepare_later, open_log, prepare_later
from penstock.engine.session.class_archive import ClassArchive
from penstock.engine.session.spark import class_archive
from penstock.settings.config import SparkSettings, load_settings
from penstock.spark.memory import Machine

KEY = "0" * 16


def prepare(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["spark", "prepare", *arguments])


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that is there already, in a cache of its own."""
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    (tmp_path / "penstock.toml").write_text('[lakes.main]\ncatalog = "sqlite:a.sqlite"\n')
    archive = class_archive(load_settings(tmp_path).spark)
    assert archive is not None
    archive.directory.mkdir(parents=True)
    file = archive.directory / "new.jsa"
    file.write_bytes(b"x" * (3 << 20))
    return archive.keep(file)


def test_it_is_made_once(made: Path) -> None:
    done = prepare()
    assert done.exit_code == 0
    assert done.output == f"The archive is there already: {made}, 3 MiB\n"


def test_it_says_where_as_json(made: Path) -> None:
    said = json.loads(prepare("--json").output)
    assert said == {"schema_version": 1, "path": str(made), "bytes": 3 << 20, "new": False}


def test_without_a_cache_there_is_nowhere_to_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", "")
    done = prepare()
    assert done.exit_code == 2
    assert "PENSTOCK_CACHE_DIR" in done.output


def test_another_spark_is_not_archived(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(made.parent))
    assert prepare().exit_code == 2


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkSettings:
    """Settings with an empty cache, in which an archive may be built."""
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    environ = {**os.environ, "PENSTOCK_SPARK_CLASS_ARCHIVE": "true"}
    (tmp_path / "penstock.toml").write_text('[lakes.main]\ncatalog = "sqlite:a.sqlite"\n')
    return load_settings(tmp_path, environ=environ).spark


def archive_in(settings: SparkSettings) -> ClassArchive:
    archive = class_archive(settings)
    assert archive is not None
    return archive


def test_a_run_prepares_later_once(
    settings: SparkSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.prepare._LATER", "raise SystemExit('no room')")
    process = prepare_later(settings)
    assert process is not None
    assert process.wait() == 1
    assert prepare_later(settings) is None
    (log,) = archive_in(settings).directory.iterdir()
    assert log.read_text() == "no room\n"


def test_a_build_that_cannot_begin_claims_nothing(
    settings: SparkSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as context:
        context.setattr("subprocess.Popen", refuse)
        with pytest.raises(BlockingIOError):
            prepare_later(settings)
    assert list(archive_in(settings).directory.iterdir()) == []


def test_a_build_has_no_secrets_and_no_modules_of_the_directory(
    settings: SparkSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import json, os, sys; print(json.dumps([dict(os.environ), sys.path])); sys.exit(1)"
    monkeypatch.setattr("penstock.cli.prepare._LATER", program)
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    process = prepare_later(settings)
    assert process is not None
    process.wait()
    (log,) = archive_in(settings).directory.iterdir()
    environ, places = json.loads(log.read_text())
    assert environ.keys().isdisjoint({"PGPASSWORD", "SPARK_CONF_DIR"})
    assert environ["PENSTOCK_CACHE_DIR"] == str(tmp_path / "cache")
    assert {"", str(tmp_path)}.isdisjoint(places)


def test_a_cluster_needs_no_java_to_prepare_nothing() -> None:
    settings = SparkSettings(master="sc://host:15002", java_home="/nowhere", class_archive=True)
    assert prepare_later(settings) is None


def test_a_run_with_an_archive_prepares_nothing(settings: SparkSettings) -> None:
    archive = archive_in(settings)
    archive.directory.mkdir(parents=True)
    file = archive.directory / "new.jsa"
    file.write_bytes(b"classes")
    archive.keep(file)
    assert prepare_later(settings) is None


def test_a_run_prepares_nothing_where_the_settings_say_so(made: Path) -> None:
    made.unlink()
    settings = load_settings(made.parents[2]).spark
    assert settings.class_archive is False  # by the environment of all tests
    assert prepare_later(settings) is None


def test_one_process_claims_a_build(tmp_path: Path) -> None:
    log = open_log(ClassArchive(tmp_path, KEY))
    assert log is not None
    with log:
        assert open_log(ClassArchive(tmp_path, KEY)) is None


def test_a_build_that_failed_is_tried_again_after_a_week(tmp_path: Path) -> None:
    with open_log(ClassArchive(tmp_path, KEY)) or pytest.fail("no log") as log:
        log.write(b"Java has written no archive")
    assert open_log(ClassArchive(tmp_path, KEY)) is None
    old = time.time() - 8 * 86_400
    os.utime(log.name, (old, old))
    with open_log(ClassArchive(tmp_path, KEY)) or pytest.fail("no log") as again:
        assert Path(again.name).read_bytes() == b""


def test_no_build_begins_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert open_log(ClassArchive(tmp_path / "file" / "java", KEY)) is None


@pytest.mark.parametrize("limit", [None, 1 << 30])
def test_none_is_built_in_containers_and_ci(
    limit: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(physical=4 << 30, container=limit, cores=2)
    monkeypatch.setattr("penstock.spark.memory.this_machine", lambda: machine)
    mark = tmp_path / "containerenv"
    monkeypatch.setattr("penstock.cli.prepare._CONTAINER_MARKS", (mark,))
    assert may_prepare_later(SparkSettings()) is (limit is None)
    assert not may_prepare_later(SparkSettings(ci=True))
    mark.touch()
    assert not may_prepare_later(SparkSettings())
    assert may_prepare_later(SparkSettings(ci=True, class_archive=True))
    assert not may_prepare_later(SparkSettings(class_archive=False))


@pytest.mark.slow
def test_a_cold_run_builds_an_archive_that_the_next_one_uses(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environ = {
        **os.environ,
        "PENSTOCK_CACHE_DIR": str(cache),
        "PENSTOCK_SPARK_CLASS_ARCHIVE": "true",
    }
    program = [sys.executable, "-c", "from penstock.cli.main import main; main()"]
    subprocess.run([*program, "init", "shop"], cwd=tmp_path, check=True, env=environ)
    subprocess.run([*program, "run"], cwd=tmp_path / "shop", check=True, env=environ)
    (log,) = (cache / "java").glob("*.log")
    until = time.monotonic() + 600
    while log.exists():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.5)
    (archive,) = (cache / "java").iterdir()
    subprocess.run([*program, "run", "--force"], cwd=tmp_path / "shop", check=True, env=environ)
    assert list((cache / "java").iterdir()) == [archive]
