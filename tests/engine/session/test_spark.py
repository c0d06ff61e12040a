"""Finding Java, and the settings of a session. Starts no session."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from penstock.engine.session.spark import (
    _filtered_stderr,
    _not_started,
    _require_tls,
    called,
    is_alive,
    parse_java_version,
    require_java,
    session_conf,
    standing,
    told_start,
)
from penstock.errors import ConfigError, EnvironmentMissing, Location
from penstock.events import Event, SparkStarted, SparkStarting, SparkWaiting
from penstock.settings.config import SparkSettings
from penstock.sinks.progress.lines import text_line
from penstock.spark.memory import Machine

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


SMALL = Machine(physical=64 << 30, container=3 << 30, cores=16)  # a container on a large machine


def test_the_heap_fits_into_the_container_and_the_tasks_into_the_heap() -> None:
    conf = session_conf(SparkSettings(), SMALL)
    assert conf["spark.driver.memory"] == "1664m"
    assert conf["spark.master"] == "local[6]"
    assert conf["spark.sql.shuffle.partitions"] == "6"


def test_cores_are_left_to_java_where_memory_allows_them() -> None:
    conf = session_conf(SparkSettings(), Machine(64 << 30, None, 4))
    assert conf["spark.master"] == "local[*]"
    assert conf["spark.sql.shuffle.partitions"] == "4"


def test_a_heap_and_a_master_of_the_project_win() -> None:
    settings = SparkSettings(master="local[8]", conf={"spark.driver.memory": "2g"})
    conf = session_conf(settings, SMALL)
    assert (conf["spark.driver.memory"], conf["spark.master"]) == ("2g", "local[8]")


def test_the_project_settings_win() -> None:
    conf = session_conf(SparkSettings(conf={"spark.ui.enabled": "true"}))
    assert conf["spark.ui.enabled"] == "true"


def test_a_cluster_keeps_its_own_defaults() -> None:
    assert "spark.sql.shuffle.partitions" not in session_conf(SparkSettings(master="yarn"))
    assert session_conf(SparkSettings(master="sc://host")) == {}
    for master in ("yarn", "spark://host:7077", "sc://host"):
        assert "spark.driver.memory" not in session_conf(SparkSettings(master=master), SMALL)


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


def test_a_token_that_is_refused_is_called_one() -> None:
    text = "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAUTHENTICATED"
    error = _not_started(RuntimeError(text), SparkSettings(master="sc://localhost:1/;token=x"))
    assert error.message == (
        "Spark does not start with the master 'sc://localhost:1': the server refused the token"
    )


def test_a_token_for_a_server_without_tls_is_refused_at_once() -> None:
    def answer(server: socket.socket) -> None:
        client, _ = server.accept()
        with client:
            client.recv(10_000)  # and ends, as a server does that does not know TLS

    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=answer, args=(server,))
        answering.start()
        port = server.getsockname()[1]
        with pytest.raises(ConfigError, match=r"at 127\.0\.0\.1 does not answer by TLS") as caught:
            _require_tls(SparkSettings(master=f"sc://127.0.0.1:{port}/;token=x"))
        answering.join()
    assert "sc://localhost" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "master", ["sc://localhost:1/;token=x", "sc://127.0.0.1:1", "sc://127.0.0.1:1/;token=x", None]
)
def test_a_server_that_needs_no_tls_or_is_not_there_is_left_to_spark(master: str | None) -> None:
    _require_tls(SparkSettings(master=master))


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


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def silent() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_master_is_asked_whether_it_answers(listening: int, silent: int) -> None:
    up, down = f"127.0.0.1:{listening}", f"127.0.0.1:{silent}"
    assert standing(f"spark://{up}") == f"{up} answers; the session is not ready yet"
    assert standing(f"spark://{up},{down}") == f"nothing answers at {down}"
    assert standing(f"sc://{down}") == f"nothing answers at {down}"
    assert standing(f"k8s://https://{up}") == f"{up} answers; the session is not ready yet"
    assert standing("yarn") == "it has not given the session its resources yet"


def test_a_master_is_named_without_its_token() -> None:
    assert called("sc://host:15002/;token=secret") == "sc://host:15002"
    assert [called(each) for each in (None, "local[*]", "yarn")] == [None, None, "yarn"]


def test_a_long_start_tells_where_it_stands(silent: int) -> None:
    told: list[Event] = []
    master, until = f"spark://127.0.0.1:{silent}", monotonic() + 10
    with told_start(SparkSettings(master=master), told.append, every=0.02):
        while len(told) < 3 and monotonic() < until:
            sleep(0.01)
    first, second, *_, last = told
    assert first == SparkStarting(master)
    assert isinstance(second, SparkWaiting)
    assert isinstance(last, SparkStarted)
    assert text_line(first) == f"starting Spark on {master}"
    assert text_line(second) == (
        f"starting Spark on {master}: 0.0 s, nothing answers at 127.0.0.1:{silent}"
    )


def test_a_session_of_this_process_is_only_said_to_start_and_to_have_started() -> None:
    told: list[Event] = []
    with told_start(SparkSettings(master="local[2]"), told.append, every=0.001):
        sleep(0.05)
    assert [type(event) for event in told] == [SparkStarting, SparkStarted]


def test_a_session_that_starts_says_how_much_memory_it_takes() -> None:
    event = SparkStarted(4.2, heap=1664 << 20, memory=3 << 30, memory_of="container")
    text = "Spark started in 4.2 s, with a heap of 1.6 GiB, of the container's 3 GiB"
    assert text_line(event) == text
    assert text_line(SparkStarted(4.2)) == "Spark started in 4.2 s"


def test_a_session_on_a_cluster_says_nothing_of_memory() -> None:
    told: list[Event] = []
    with told_start(SparkSettings(master="yarn"), told.append):
        pass
    assert isinstance(told[-1], SparkStarted)
    assert told[-1].heap is None


def test_two_threads_that_start_spark_leave_stderr_as_it_was() -> None:
    """Else one puts back the pipe of the other, and what is logged goes nowhere."""
    before, inside = os.fstat(2), threading.Barrier(2)

    def start(seconds: float) -> None:
        inside.wait(5)
        with _filtered_stderr():
            sleep(seconds)

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(start, seconds) for seconds in (0.05, 0.2)]:
            future.result(10)
    assert (os.fstat(2).st_dev, os.fstat(2).st_ino) == (before.st_dev, before.st_ino)
