"""Which session a project gets, without Spark: `open_session`."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.session import open_session as opening
from penstock.engine.session import warm as warming
from penstock.engine.session.open_session import lasting, open_session, stays, unfit, why_alone
from penstock.engine.session.spark import REMOTE, warm_address
from penstock.engine.session.warm import place_of
from penstock.engine.session.warm_files import ServerPlace, ServerRecord
from penstock.engine.session.warm_servers import servers, start, stop
from penstock.errors import ArgumentError, ConfigError, EnvironmentMissing
from penstock.events import Event, Notice, ignore
from penstock.settings.config import Settings, SparkSettings, load_settings

COLD: Any = object()  # what stands in for a session of this process


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(opening, "start_session", lambda *_: COLD)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    (tmp_path / "penstock.toml").write_text('[lakes.main]\ncatalog = "sqlite:meta.sqlite"\n')
    return load_settings(tmp_path, environ={"PENSTOCK_CACHE_DIR": str(tmp_path / "cache")})


def terminal(monkeypatch: pytest.MonkeyPatch, *, is_one: bool) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_one, raising=False)


def lacking(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr("penstock.engine.session.warm.missing_packages", lambda: list(names))


def test_nobody_watches_a_pipe(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, is_one=False)
    lacking(monkeypatch, "grpc")
    told: list[Event] = []
    assert open_session(settings, None, told.append) is COLD
    assert told == []


def test_nobody_watches_ci(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, is_one=True)
    lacking(monkeypatch, "grpc")
    told: list[Event] = []
    spark = replace(settings.spark, ci=True)
    assert open_session(replace(settings, spark=spark), None, told.append) is COLD
    assert told == []


def test_missing_packages_are_said_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(monkeypatch, is_one=True)
    lacking(monkeypatch, "grpc")
    told: list[Event] = []
    for _ in range(2):
        assert open_session(settings, None, told.append) is COLD
    (notice,) = told
    assert isinstance(notice, Notice)
    assert "pip install 'penstock-spark[warm]'" in notice.message


def test_who_asks_is_told_what_is_missing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, "grpc", "pandas")
    with pytest.raises(EnvironmentMissing, match="needs grpc, pandas") as raised:
        open_session(settings, True, ignore)
    assert raised.value.hint == "pip install 'penstock-spark[warm]'"
    with pytest.raises(EnvironmentMissing, match="needs"):
        start(settings)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"warm": None}, "spark.warm is false"),
        ({"master": "spark://host:7077"}, "the master is spark://host:7077"),
        ({"master": "sc://host/;token=abc"}, "the master is sc://host"),
        ({"master": "local-cluster[2,1,1024]"}, "the master is"),
        ({"environ": {"SPARK_REMOTE": "sc://host"}}, "SPARK_REMOTE"),
    ],
)
def test_where_there_is_no_warm_session(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, changes: Mapping[str, Any], why: str
) -> None:
    spark = replace(settings.spark, **changes)
    settings = replace(settings, spark=spark)
    assert why in str(unfit(settings))
    assert "abc" not in str(unfit(settings))
    with pytest.raises(ArgumentError, match="no warm session"):
        open_session(settings, True, ignore)
    with pytest.raises(ArgumentError, match="no warm session"):
        start(settings)
    terminal(monkeypatch, is_one=True)
    assert open_session(settings, None, ignore) is COLD


def test_the_address_of_a_warm_server_is_no_server_of_the_user(settings: Settings) -> None:
    environ = {"SPARK_REMOTE": warm_address(4711, "0123"), "SPARK_CONNECT_MODE_ENABLED": "1"}
    assert unfit(replace(settings, spark=replace(settings.spark, environ=environ))) is None


@pytest.mark.parametrize("master", [None, "local", "local[2]", "local[*]"])
def test_sessions_of_this_machine_may_be_warm(settings: Settings, master: str | None) -> None:
    assert unfit(replace(settings, spark=SparkSettings(master=master))) is None


def test_no_warm_is_heeded(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, is_one=True)
    assert open_session(settings, False, ignore) is COLD


def test_trouble_ends_in_a_session_of_the_process(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    terminal(monkeypatch, is_one=True)
    lacking(monkeypatch)
    directory = tmp_path / f"penstock-spark-{os.getuid()}"
    directory.mkdir()
    directory.chmod(0o755)
    told: list[Event] = []
    assert open_session(settings, None, told.append) is COLD
    (notice,) = told
    assert isinstance(notice, Notice)
    assert "Spark runs in this process" in notice.message
    assert "open to other users" in notice.message
    with pytest.raises(EnvironmentMissing, match="open to other users"):
        open_session(settings, True, ignore)


def test_there_are_no_servers_at_first(settings: Settings) -> None:
    assert servers() == ()
    assert stop() == ()


@pytest.mark.parametrize(
    ("duration", "text"), [(900, "15 min"), (7200, "2 h"), (90, "90 s"), (3600, "1 h")]
)
def test_durations_are_said_shortly(duration: float, text: str) -> None:
    assert lasting(duration) == text
    assert text in stays(duration)


def write(root: Path, text: str) -> Path:
    (root / "penstock.toml").write_text(f'[lakes.main]\ncatalog = "sqlite:l.sqlite"\n{text}\n')
    return root


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 900.0), ('warm = "15m"', 900.0), ('warm = "2h"', 7200.0), ("warm = false", None)],
)
def test_warm_is_a_duration_or_false(tmp_path: Path, text: str, seconds: float | None) -> None:
    assert load_settings(write(tmp_path, f"[spark]\n{text}"), environ={}).spark.warm == seconds


@pytest.mark.parametrize("text", ['"soon"', '"0"', "true", '""'])
def test_other_values_of_warm_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="not a duration"):
        load_settings(write(tmp_path, f"[spark]\nwarm = {text}"), environ={})


def test_the_environment_says_warm(tmp_path: Path) -> None:
    write(tmp_path, "")
    for text, seconds in (("false", None), ("90s", 90.0)):
        environ = {"PENSTOCK_SPARK_WARM": text}
        assert load_settings(tmp_path, environ=environ).spark.warm == seconds


def test_what_spark_reads_of_the_environment_is_known(tmp_path: Path) -> None:
    names = ("SPARK_CONF_DIR", "AWS_PROFILE", "JDK_JAVA_OPTIONS", "TZ", "https_proxy", "LC_ALL")
    environ = dict.fromkeys((*names, "HOME", "TERM", "PWD", "PENSTOCK_CACHE_DIR"), "x")
    spark = load_settings(write(tmp_path, ""), environ=environ).spark
    assert set(spark.environ) == set(names)
    assert not spark.ci
    assert load_settings(tmp_path, environ={"CI": "true"}).spark.ci
    assert not load_settings(tmp_path, environ={"CI": "false"}).spark.ci


def silent(event: Event) -> None:
    """Fail for whatever is told."""
    pytest.fail(f"{event}")


class WarmClient:
    """What stands in for a session of a server."""

    is_stopped = False

    def stop(self) -> None:
        """End the session."""
        self.is_stopped = True


@pytest.fixture
def server(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ServerPlace, list[Any]]]:
    """A server that lives, with the sessions that were opened on it; nobody watches."""
    terminal(monkeypatch, is_one=False)
    lacking(monkeypatch)
    sessions = list[Any]()

    def connect(_: ServerRecord) -> WarmClient:
        client = WarmClient()
        sessions.append(client)
        return client

    monkeypatch.setattr(warming, "connect", connect)
    monkeypatch.setenv(REMOTE, "")  # which joining sets
    place = place_of(settings.spark)
    with place.hold_server() or ExitStack(), socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        place.write_record(ServerRecord(os.getpid(), port, "t", 0.0, "4.3.0", "local[*]"))
        yield place, sessions


Server = tuple[ServerPlace, list[Any]]


def test_a_run_joins_the_process_that_serves_its_project(
    settings: Settings, server: Server
) -> None:
    told, place = list[Event](), server[0]
    place.set_idle(60)
    with ExitStack() as serving, ExitStack() as run:
        served = open_session(settings, None, told.append, serving, is_serving=True)
        assert told == []
        joined = open_session(settings, None, told.append, run)
        assert (served, joined) == tuple(server[1])
        (notice,) = told
        assert isinstance(notice, Notice)
        assert notice.message == (
            "Spark is that of `penstock serve` of this project; --no-warm starts another"
        )
    assert place.idle(0) == 60  # neither lets the server stay longer
    assert not place.is_used()
    assert all(session.is_stopped for session in server[1])


@pytest.mark.parametrize("warm", [None, False])
def test_a_run_joins_no_server_that_serves_nothing(
    settings: Settings, server: Server, warm: bool | None
) -> None:
    assert open_session(settings, warm, silent) is COLD
    assert server[1] == []


def test_a_run_joins_only_who_serves_its_project_with_its_settings(
    settings: Settings, server: Server, tmp_path: Path
) -> None:
    others = (
        replace(settings, root=tmp_path / "other"),
        replace(settings, environment="prod"),
        replace(settings, spark=replace(settings.spark, conf={"spark.driver.memory": "2g"})),
        replace(settings, spark=replace(settings.spark, warm=None)),
        replace(settings, spark=replace(settings.spark, master="spark://host:7077")),
    )
    with ExitStack() as serving:
        open_session(settings, None, ignore, serving, is_serving=True)
        assert open_session(settings, False, silent) is COLD
        for other in others:
            assert open_session(other, None, silent) is COLD
    assert len(server[1]) == 1


def test_a_run_starts_its_own_spark_when_serve_has_released_its(
    settings: Settings, server: Server
) -> None:
    place, serving = server[0], ExitStack()
    open_session(settings, None, ignore, serving, is_serving=True)
    serving.close()
    assert not place.is_used()
    assert open_session(settings, None, silent) is COLD
    with serving:  # the next firing of serve
        open_session(settings, None, ignore, serving, is_serving=True)
        assert open_session(settings, None, ignore) in server[1]


def test_who_has_joined_keeps_the_server_when_serve_ends(
    settings: Settings, server: Server
) -> None:
    place, serving, run = server[0], ExitStack(), ExitStack()
    open_session(settings, None, ignore, serving, is_serving=True)
    joined = open_session(settings, None, ignore, run)
    serving.close()
    assert place.is_used()
    with place.alone() as unused:
        assert not unused
    assert not server[1][1].is_stopped
    assert joined is server[1][1]
    run.close()
    assert not place.is_used()


def test_a_server_that_is_silent_ends_in_a_session_of_the_run(
    settings: Settings, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: ServerRecord) -> None:
        raise PermissionError("UNAUTHENTICATED")

    told = list[Event]()
    with ExitStack() as serving:
        open_session(settings, None, ignore, serving, is_serving=True)
        monkeypatch.setattr(warming, "connect", refuse)
        assert open_session(settings, None, told.append) is COLD
        assert server[0].record() is not None  # others use it: it is left alone
    (notice,) = told
    assert isinstance(notice, Notice)
    assert "Spark runs in this process: the warm Spark server" in notice.message


def test_serve_says_why_nobody_can_join_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch)
    assert why_alone(settings) is None
    lacking(monkeypatch, "grpc")
    assert "penstock-spark[warm]" in str(why_alone(settings))
    assert open_session(settings, None, silent, is_serving=True) is COLD
    cluster = replace(settings, spark=replace(settings.spark, master="spark://host:7077"))
    assert why_alone(cluster) == "the master is spark://host:7077"
    assert open_session(cluster, None, silent, is_serving=True) is COLD
