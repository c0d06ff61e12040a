"""``penstock spark prepare`` where it has nothing to do, or cannot. Starts no Spark.

The program ``bench.cold`` makes one and measures what it is worth.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.engine.session.spark import class_archive
from penstock.settings.config import load_settings


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
