"""The settings of an object store, and files on a local disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError, UnsupportedFeature
from penstock.lakes import storage
from penstock.lakes.lake import Lake
from penstock.lakes.storage import Storage

LOCAL = {"access_key": "k", "secret_key": "hidden", "endpoint": "http://127.0.0.1:1", "region": "r"}


def test_one_setting_for_both() -> None:
    parsed = Storage.of({**LOCAL, "path_style": True})
    assert parsed is not None
    settings = parsed.spark_settings("b")
    assert settings["fs.s3a.bucket.b.endpoint"] == "http://127.0.0.1:1"
    assert settings["fs.s3a.bucket.b.path.style.access"] == "true"
    assert settings["fs.s3a.bucket.b.connection.ssl.enabled"] == "false"
    assert settings["fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    # Of how files are published a user's other writes are to see nothing.
    magic = Storage.of({**LOCAL, "path_style": True, "committer": "magic"})
    assert magic is not None
    assert magic.spark_settings("b") == settings
    assert not any("commit" in key for key in settings)
    assert parsed.open().region == "r"


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(Storage.of(LOCAL))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"key": "x"}, "no setting 'key'"),
        ({"committer": "directory"}, "'directory'"),
    ],
)
def test_what_is_no_setting(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Storage.of(values)


def test_an_endpoint_is_a_url() -> None:
    with pytest.raises(ConfigError, match="127"):
        Storage(endpoint="127.0.0.1:9000").open()


def test_storage_is_for_s3(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with pytest.raises(ConfigError, match="not in S3"):
        Lake.attach(uri, data_path=str(tmp_path), storage=LOCAL)


def test_stores_that_nothing_was_tried_with() -> None:
    with pytest.raises(UnsupportedFeature, match="gs://"):
        storage.make_parent("gs://bucket/x/")


def test_local_files(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.parquet"
    path.parent.mkdir()
    path.write_bytes(b"123")
    (path.parent / ".x.parquet.crc").write_bytes(b"")
    target = tmp_path / "b=1" / "y.parquet"
    storage.move_files([(str(path), str(target))])
    storage.remove_empty(str(tmp_path))
    assert storage.list_files(str(tmp_path)) == [str(target)]
    assert not path.parent.exists()
    assert storage.read_bytes(str(target)) == b"123"
    assert (storage.size_of(str(target)), storage.size_of(str(path))) == (3, None)
    assert storage.remove_file(str(target))
    assert not storage.remove_file(str(target))


def test_only_directories_of_a_write_are_removed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="badly formed"):
        storage.remove_directory(str(tmp_path))


def _attach(folder: Path, name: str, settings: dict[str, str] | None) -> Lake:
    path = f"s3://shared-bucket/{name}/"
    uri = f"ducklake:sqlite:{folder}/{name}.sqlite"
    return Lake.attach(uri, data_path=path, storage=settings, new_catalog=True)


def test_credentials_are_neither_lent_nor_taken(tmp_path: Path) -> None:
    other = {**LOCAL, "access_key": "other"}
    with _attach(tmp_path, "a", LOCAL) as a:
        assert storage.storage_of(a.catalog.data_path) == Storage.of(LOCAL)
        for settings in (None, other):
            with pytest.raises(ConfigError, match="shared-bucket") as error:
                _attach(tmp_path, "b", settings)
            assert "hidden" not in str(error.value)
        with _attach(tmp_path, "b", LOCAL):
            pass
        assert storage.storage_of(a.catalog.data_path) == Storage.of(LOCAL)
    assert storage.storage_of("s3://shared-bucket/a/") is None
    with _attach(tmp_path, "b", None), pytest.raises(ConfigError, match="credentials"):
        _attach(tmp_path, "a", LOCAL)
    forgotten = _attach(tmp_path, "a", LOCAL)
    del forgotten
    _attach(tmp_path, "b", other).close()


def test_spark_opens_a_bucket_once(tmp_path: Path) -> None:
    with _attach(tmp_path, "a", LOCAL) as lake:
        settings = storage.spark_settings(lake.catalog.data_path)
        assert settings["fs.s3a.bucket.shared-bucket.access.key"] == "k"
    with _attach(tmp_path, "a", {**LOCAL, "committer": "magic"}) as lake:  # of writes, not of that
        assert storage.spark_settings(lake.catalog.data_path) == settings
    with (
        _attach(tmp_path, "b", {**LOCAL, "access_key": "other"}) as lake,
        pytest.raises(ConfigError, match="another process"),
    ):
        storage.spark_settings(lake.catalog.data_path)
