"""``[serve]``: its values, its defaults, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings.config import load_settings
from penstock.settings.serve_settings import ServeSettings

LAKE = '[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\n[serve]\n'
DSN = "host=db user=penstock password=hunter2"


def load(root: Path, text: str, environ: dict[str, str] | None = None) -> ServeSettings:
    (root / "penstock.toml").write_text(LAKE + text)
    return load_settings(root, environ=environ or {}).serve


def test_without_the_section_it_listens_to_this_machine(tmp_path: Path) -> None:
    assert load(tmp_path, "") == ServeSettings(
        host="127.0.0.1",
        port=8600,
        allowed_hosts=(),
        trusted_proxy=False,
        slots=2,
        backfill_share=0.5,
        share=True,
        poll=1.0,
        file_poll=30.0,
        drain_timeout=60.0,
        idle_timeout=600.0,
        max_body=1 << 20,
        max_catchup=100,
        catchup_window=30 * 86_400.0,
    )


def test_each_value_is_read_from_the_file(tmp_path: Path) -> None:
    text = (
        'host = "0.0.0.0"\nport = 0\nallowed_hosts = ["a.example.com", "b"]\n'
        'trusted_proxy = "10.0.0.0/8"\nslots = 4\nbackfill_share = 1\npoll = "2"\n'
        'file_poll = "1m"\ndrain_timeout = "none"\nidle_timeout = "none"\nmax_body = "64k"\n'
        'catchup = "latest"\nmax_catchup = 5\ncatchup_window = "none"\n'
        f'kafka_servers = ["k1:9092"]\npostgres_dsn = "{DSN}"\n'
    )
    serve = load(tmp_path, text)
    assert (serve.allowed_hosts, serve.trusted_proxy) == (("a.example.com", "b"), "10.0.0.0/8")
    assert (serve.backfill_share, serve.poll, serve.file_poll) == (1.0, 2.0, 60.0)
    assert (serve.drain_timeout, serve.idle_timeout, serve.max_body) == (None, None, 65_536)
    assert (serve.catchup, serve.max_catchup, serve.catchup_window) == ("latest", 5, None)
    assert (serve.kafka_servers, serve.postgres_dsn) == (("k1:9092",), DSN)


def test_a_connection_is_a_secret(tmp_path: Path) -> None:
    assert "hunter2" not in repr(load(tmp_path, f'postgres_dsn = "{DSN}"\n'))


@pytest.mark.parametrize(
    ("text", "seconds"), [("0.2s", 0.2), ("500ms", 0.5), ("1.5m", 90.0), ("0.25", 0.25), ("+2s", 2)]
)
def test_a_period_may_be_a_part_of_a_second(tmp_path: Path, text: str, seconds: float) -> None:
    serve = load(tmp_path, f'poll = "{text}"\nfile_poll = "{text}"\n')
    assert (serve.poll, serve.file_poll) == (seconds, seconds)


def test_values_come_from_the_environment_as_texts(tmp_path: Path) -> None:
    environ = {
        "PENSTOCK_SERVE_ALLOWED_HOSTS": "a, b",
        "PENSTOCK_SERVE_TRUSTED_PROXY": "true",
        "PENSTOCK_SERVE_BACKFILL_SHARE": "0.25",
        "PENSTOCK_SERVE_PORT": "9000",
    }
    serve = load(tmp_path, "port = 1\n", environ)
    assert (serve.allowed_hosts, serve.trusted_proxy) == (("a", "b"), True)
    assert (serve.backfill_share, serve.port) == (0.25, 9000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("port = 70000", "serve.port is 70000, which is not a port"),
        ("port = -1", "is not a port"),
        ('port = "8600"', "port must be a whole number"),
        ('allowed_hosts = "a"', "allowed_hosts must be a list of texts"),
        ("allowed_hosts = [1]", "serve.allowed_hosts must be a list of texts"),
        ('kafka_servers = [""]', "serve.kafka_servers must be a list of texts"),
        ('trusted_proxy = "proxy"', "serve.trusted_proxy is 'proxy', which is not an address"),
        ("slots = 0", "serve.slots must be 1 or more"),
        ("backfill_share = 0", "serve.backfill_share must be above 0"),
        ("backfill_share = 1.5", "at most 1, not 1.5"),
        ("backfill_share = nan", "at most 1, not nan"),
        ("backfill_share = true", "backfill_share must be"),
        ('share = "no"', "share must be"),
        ('poll = "none"', "serve.poll cannot be 'none'"),
        ('poll = ""', "serve.poll is '', which is not a duration"),
        ('poll = "0ms"', "serve.poll is '0ms', which is not a duration"),
        ('poll = "0.0"', "serve.poll is '0.0', which is not a duration"),
        ('poll = ".5s"', "serve.poll is '.5s', which is not a duration"),
        ('file_poll = "-0.2s"', "serve.file_poll is '-0.2s', which is not a duration"),
        ('drain_timeout = "0.5s"', "serve.drain_timeout is '0.5s', which is not a duration"),
        ('file_poll = "often"', "serve.file_poll is 'often', which is not a duration"),
        ('drain_timeout = "0"', "serve.drain_timeout is '0'"),
        ('max_body = "much"', "serve.max_body is 'much', which is not a size"),
        ('catchup = "some"', "serve.catchup must be none, latest or all, not 'some'"),
        ("max_catchup = 0", "serve.max_catchup must be 1 or more"),
        ('window = "1d"', "unknown key in [serve]: 'window'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"{text}\n")
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == 4


def test_a_wrong_number_of_the_environment_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="backfill_share must be a number, not 'half'"):
        load(tmp_path, "", {"PENSTOCK_SERVE_BACKFILL_SHARE": "half"})


def test_an_environment_has_its_own_port(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(f"{LAKE}port = 1\n[environments.dev.serve]\nport = 2\n")
    assert load_settings(tmp_path, environment="dev", environ={}).serve.port == 2
