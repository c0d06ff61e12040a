"""Places, keys and locks of warm servers, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.engine.session.warm_files import (
    ServerPlace,
    ServerRecord,
    key_of,
    places,
    servers_directory,
)
from penstock.errors import EnvironmentMissing

RECORD = ServerRecord(os.getpid(), 4711, "secret", 1.0, "4.3.0", "local[2]")


@contextmanager
def living(place: ServerPlace) -> Iterator[None]:
    """A server lives there meanwhile."""
    life = place.hold_server()
    assert life is not None
    with life:
        yield


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerPlace:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return ServerPlace.of("0123")


def test_a_key_is_the_same_for_the_same_settings_only() -> None:
    conf, environ = {"spark.master": "local[2]", "a": "1"}, {"TZ": "UTC"}
    key = key_of(conf, environ)
    assert key == key_of(dict(reversed(conf.items())), environ)
    assert key != key_of({**conf, "a": "2"}, environ)
    assert key != key_of(conf, {})
    assert key != key_of(conf, {"TZ": "CET"})


def test_a_key_tells_users_and_pythons_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of({}, {})
    monkeypatch.setattr(sys, "prefix", "/elsewhere")
    python = key_of({}, {})
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    assert len({key, python, key_of({}, {})}) == 3


def test_names_of_one_python_have_one_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = key_of({}, {})
    monkeypatch.setattr(sys, "executable", f"{sys.executable}3")
    (link := tmp_path / "venv").symlink_to(sys.prefix)
    monkeypatch.setattr(sys, "prefix", str(link))
    assert key_of({}, {}) == key


def test_files_are_readable_by_their_user_only(place: ServerPlace) -> None:
    with_life = place.hold_server()
    place.write_record(RECORD)
    place.set_idle(10)
    for path in (place.path.parent, place.path, *place.path.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path
    assert with_life is not None
    with_life.close()


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(RECORD)


def test_a_record_counts_while_its_server_lives(place: ServerPlace) -> None:
    place.write_record(RECORD)
    assert place.record() is None
    life = place.hold_server()
    assert life is not None
    assert place.record() == RECORD
    assert place.has_record(RECORD)
    life.close()
    assert place.record() is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "other": 2}'])
def test_what_is_no_record_is_none(place: ServerPlace, content: str) -> None:
    with living(place):
        place.write_record(RECORD)
        (place.path / "server.json").write_text(content)
        assert place.record() is None
        assert not place.has_record(RECORD)


def test_a_record_that_others_can_read_is_none(place: ServerPlace) -> None:
    with living(place):
        place.write_record(RECORD)
        (place.path / "server.json").chmod(0o644)
        assert place.record() is None


def test_a_place_has_one_server(place: ServerPlace) -> None:
    with living(place):
        assert place.hold_server() is None
        assert place.is_alive()
    assert not place.is_alive()


def test_who_uses_a_server_keeps_it(place: ServerPlace) -> None:
    first, second = place.use(), place.use()
    assert place.is_used()
    first.close()
    with place.alone() as unused:
        assert not unused
    second.close()
    assert not place.is_used()
    with place.alone() as unused:
        assert unused
        assert place.is_used()  # for others


def test_nobody_begins_to_use_a_server_that_is_about_to_end(place: ServerPlace) -> None:
    began = threading.Event()

    def use() -> None:
        with place.use():
            began.set()

    with place.alone() as unused:
        assert unused
        thread = threading.Thread(target=use)
        thread.start()
        assert not began.wait(0.1)
    assert began.wait(5)
    thread.join()


def test_a_killed_client_uses_nothing(place: ServerPlace) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from penstock.engine.session.warm_files import ServerPlace\n"
        "use = ServerPlace(Path(sys.argv[1])).use(); print('used', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(place.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "used\n"
        assert place.is_used()
        client.kill()
        client.wait()
    assert not place.is_used()


def test_two_starts_at_once_are_one(place: ServerPlace) -> None:
    with place.starting(1) as mine:
        assert mine
        with place.starting(0.1) as others:
            assert not others
    with place.starting(0.1) as mine:
        assert mine


def test_the_last_to_join_says_when_a_server_ends(place: ServerPlace) -> None:
    assert place.idle(900) == 900
    place.set_idle(60)
    assert place.idle(900) == 60
    (place.path / "idle").write_text("soon")
    assert place.idle(900) == 900


def test_places_are_those_of_the_user(place: ServerPlace) -> None:
    assert places() == (place,)
    place.path.parent.chmod(0o755)
    assert places() == ()


def test_there_are_no_places_before_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert places() == ()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_others_can_read_is_refused(place: ServerPlace) -> None:
    place.path.parent.chmod(0o755)
    with pytest.raises(EnvironmentMissing, match="open to other users"):
        servers_directory()


def test_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / f"penstock-spark-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentMissing, match="belongs to another user"):
        servers_directory()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of another user")
def test_a_directory_of_another_user_is_refused(place: ServerPlace) -> None:
    os.chown(place.path.parent, 12345, 12345)
    with pytest.raises(EnvironmentMissing, match="belongs to another user"):
        servers_directory()


def test_a_directory_that_cannot_be_made_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(EnvironmentMissing, match="cannot be made"):
        servers_directory()
