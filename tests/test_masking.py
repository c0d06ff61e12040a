"""No form of a setting lets its secret out, in a message or in a ``repr``."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from penstock.errors import ConfigError
from penstock.lakes.catalog.database.engine import make_engine
from penstock.lakes.catalog.database.location import parse_location
from penstock.lakes.storage import Storage
from penstock.masking import is_secret, masked, shown
from penstock.settings.config import SparkSettings, load_settings

URIS = (
    "postgres:dbname=x password=hush host=h",
    "postgres:dbname=x host=h password = 'hush hush'",
    "postgres:password='hu\\'hush' dbname=x",
    "postgres:dbname=x password=some hush host=h",
    "postgres:dbname=x password='hush'hush",
    "postgres:dbname=x passwd=hush",
    "postgres:dbname=x PWD=hush",
    "postgres:dbname=x sslpassword=hush",
    "postgres://u:hush@h/db",
    "postgres://u:a@hush@h/db",
    "postgres://u@corp:hush@h/db",
    "postgres://u:a/hush?b@h/db",
    "postgresql://h/db?user=u&password=hush&sslmode=require",
    "ducklake:postgres:dbname=x password=hush",
)


@pytest.mark.parametrize("uri", URIS)
def test_a_catalog_is_never_shown_with_its_password(uri: str, tmp_path: Path) -> None:
    assert "hush" not in masked(uri)
    assert "hush" not in shown("lakes.main.catalog", [uri])
    (tmp_path / "penstock.toml").write_text(f"[lakes.main]\ncatalog = '''{uri}'''\n")
    assert "hush" not in repr(load_settings(tmp_path, environ={}))
    assert "hush" not in said_of(uri)


def said_of(uri: str) -> str:
    """What is said when the catalog is opened, but for connecting to its server."""
    try:
        where = parse_location(uri)
        make_engine(where, create=False, read_only=True, lock_timeout=1.0, metadata_schema=None)
    except ConfigError as error:
        return str(error)
    return f"{where} {where!r}"


def test_what_is_no_secret_stays() -> None:
    text = "postgres:dbname=lake host=db.example.org user=ada passfile=/etc/pass sslmode=require"
    assert masked(text) == text
    assert masked("postgres:dbname=x password=a host=h") == "postgres:dbname=x password=*** host=h"


@pytest.mark.parametrize(
    "line",
    [
        "s3_secret_key = 1234567",
        "s3_session_token = ['1234567']",
        "catalog = ['postgres:dbname=x password=1234567']",
        "catalog = {url = 'postgres://u:1234567@h/x'}",
        "catalog = {password = 1234567}",
    ],
)
def test_a_wrong_setting_is_told_without_its_value(line: str, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(f"[lakes.main]\n{line}\n")
    with pytest.raises(ConfigError, match=r"penstock.toml:2: .* must be a text") as caught:
        load_settings(tmp_path, environ={})
    assert "1234567" not in str(caught.value)


def test_storage_refuses_a_number_and_does_not_show_it() -> None:
    with pytest.raises(ConfigError, match="secret_key must be a text") as caught:
        Storage.of({"secret_key": 1234567})
    assert "1234567" not in str(caught.value)


def test_settings_of_spark_and_of_stores_are_masked() -> None:
    conf = {"fs.s3a.secret.key": "hush", "spark.x": "jdbc:postgresql://u:hush@h/db", "a": "seen"}
    text = repr(SparkSettings(conf=conf)) + repr(Storage(secret_key="hush", access_key="seen"))
    assert "hush" not in text
    assert text.count("seen") == 2


@pytest.mark.parametrize("name", ["s3_secret_key", "fs.s3a.session.token", "PASSWD", "sslpassword"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "part", ["a", "pass", "://a:", "password=' ", "password=a     ", "token = b "]
)
def test_long_texts_take_no_time(part: str) -> None:
    """Linear: a tenth of a second, not hours, as where each letter of a run begins again."""
    began = monotonic()
    masked(part * (300_000 // len(part)))
    assert monotonic() - began < 5
