"""Finding Java, and the settings of a session. Starts no session."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from penstock.config import SparkSettings
from penstock.engine.session.spark import (
    _not_started,
    is_alive,
    parse_java_version,
    require_java,
    session_conf,
)
from penstock.errors import EnvironmentMissing, Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fake_java(root: Path, version: str) -> Path:
    """A Java home of that version."""
    (root / "bin").mkdir(parents=True)
    java = root / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (root / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return root


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('JAVA_VERSION="17.0.15"', 17),
        ('JAVA_VERSION="21"', 21),
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ("no such thing", None),
    ],
)
def test_versions(text: str, version: int | None) -> None:
    assert parse_java_version(text) == version


def test_a_good_java_is_accepted(tmp_path: Path) -> None:
    require_java(SparkSettings(java_home=str(fake_java(tmp_path, "17.0.1"))))


def test_java_on_the_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path, "21.0.1")
    require_java(SparkSettings(path=str(home / "bin")))


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_1"])
def test_an_old_java_is_one_message(tmp_path: Path, version: str) -> None:
    settings = SparkSettings(java_home=str(fake_java(tmp_path, version)))
    with pytest.raises(EnvironmentMissing, match="needs Java 17 or newer") as caught:
        require_java(settings)
    assert "install Java 17" in str(caught.value)
    assert caught.value.exit_code == 2


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="none was found"):
        require_java(SparkSettings(path=str(tmp_path)))


def test_a_wrong_java_home_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="JAVA_HOME is"):
        require_java(SparkSettings(java_home=str(tmp_path), path="/usr/bin"))


def test_a_java_that_says_nothing(tmp_path: Path) -> None:
    home = fake_java(tmp_path, "17")
    (home / "release").unlink()
    with pytest.raises(EnvironmentMissing, match="does not answer"):
        require_java(SparkSettings(java_home=str(home)))


def test_local_sessions_are_quiet_and_sized_to_the_cores() -> None:
    conf = session_conf(SparkSettings(master="local[3]"))
    assert conf["spark.sql.shuffle.partitions"] == "3"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert "log4j2.properties" in conf["spark.driver.extraJavaOptions"]


def test_the_project_settings_win() -> None:
    conf = session_conf(SparkSettings(conf={"spark.ui.enabled": "true"}))
    assert conf["spark.ui.enabled"] == "true"


def test_a_cluster_keeps_its_own_defaults() -> None:
    assert "spark.sql.shuffle.partitions" not in session_conf(SparkSettings(master="yarn"))
    assert session_conf(SparkSettings(master="sc://host")) == {}


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077", "yarn", "k8s://host"])
def test_neither_progress_bars_nor_the_log_run_through_the_output(master: str) -> None:
    conf = session_conf(SparkSettings(master=master))
    assert conf["spark.ui.showConsoleProgress"] == "false"
    (log,) = re.findall(r"configurationFile=(\S+)", conf["spark.driver.extraJavaOptions"])
    text = Path(urlsplit(log).path).read_text()
    assert "rootLogger.level = off" in text
    assert ("TaskSchedulerImpl" in text) is (master != "local[2]")


def test_settings_that_spark_does_not_start_with_are_told_at_their_place() -> None:
    origin = Location("penstock.toml", 7)
    settings = SparkSettings(master="sc://127.0.0.1:1", origin=origin)
    error = _not_started(ConnectionRefusedError("nobody listens"), settings)
    assert error.location == origin
    assert error.message.startswith("Spark does not start with the master 'sc://127.0.0.1:1': ")
    assert error.exit_code == 2


def test_a_master_that_never_answers_is_told_without_a_java_stack() -> None:
    """As PySpark says it when a cluster's master has not answered for a minute."""
    text = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
        "This stopped SparkContext was created at:\n\n\tat py4j.Gateway.invoke(Gateway.java:238)"
    )
    error = _not_started(RuntimeError(text), SparkSettings(master="spark://127.0.0.1:1"))
    assert error.message == (
        "Spark does not start with the master 'spark://127.0.0.1:1': Cannot call methods on a "
        "stopped SparkContext; nothing answers at 127.0.0.1:1"
    )


def test_a_session_that_works_is_alive(spark: SparkSession) -> None:
    assert is_alive(spark)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(is_alive, spark).result()
