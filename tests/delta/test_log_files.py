"""The names of a log's files, and one writer of each version."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.delta import log_files
from penstock.delta.log_files import (
    Checkpoint,
    commit_path,
    find_tables,
    list_log,
    listing_of,
    put_if_absent,
)
from penstock.errors import DataPathError
from penstock.lakes.storage import Storage, hold, read_bytes
from tests import s3


def name(version: int, ending: str = "json") -> str:
    return f"{version:020d}.{ending}"


def test_commits_and_checkpoints() -> None:
    uuid = "80a083e8-7026-4e79-81be-64bd76c43a11"
    listing = listing_of(
        [
            *(name(at) for at in (3, 2)),
            name(2, "checkpoint.parquet"),
            name(1, f"checkpoint.{uuid}.json"),
            name(3, "checkpoint.0000000001.0000000002.parquet"),  # the other part is missing
            "_last_checkpoint",
            name(1, "crc"),
            ".00000000000000000004.json.tmp",
        ]
    )
    assert (listing.commits, listing.latest) == ((2, 3), 3)
    assert listing.checkpoints == (
        Checkpoint(1, (name(1, f"checkpoint.{uuid}.json"),)),
        Checkpoint(2, (name(2, "checkpoint.parquet"),)),
    )


def test_all_parts_of_a_checkpoint() -> None:
    parts = [name(3, f"checkpoint.{at:010d}.0000000002.parquet") for at in (1, 2)]
    assert listing_of(parts).checkpoints == (Checkpoint(3, tuple(parts)),)


def test_a_directory_without_a_log(tmp_path: Path) -> None:
    assert list_log(str(tmp_path)).latest is None


def test_the_second_of_two_writers_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "a.json")
    assert put_if_absent(path, b"first")
    assert not put_if_absent(path, b"second")
    assert Path(path).read_bytes() == b"first"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataPathError, match="cannot be written"):
        put_if_absent(str(tmp_path / "none" / "a.json"), b"")


class _Failure(Exception):
    response: Any = {}  # noqa: RUF012 - as that of botocore's errors


class _Unreachable(Exception):
    """As botocore's errors without an answer of the store."""


@pytest.mark.parametrize(
    ("failure", "status", "expected"),
    [
        (_Unreachable, None, OSError),
        (_Failure, 500, OSError),
        (_Failure, 409, False),
        (_Failure, 412, False),
    ],
)
def test_errors_of_a_store(
    monkeypatch: pytest.MonkeyPatch, failure: Any, status: int | None, expected: Any
) -> None:
    """Also those that botocore raises where it has no answer, or no credentials."""

    def put_object(**_: object) -> None:
        error = failure("the line is cut")
        if status is not None:
            error.response = {"ResponseMetadata": {"HTTPStatusCode": status}}
        raise error

    names = SimpleNamespace(ClientError=_Failure, BotoCoreError=_Unreachable)
    monkeypatch.setattr(log_files, "import_module", lambda _: names)
    monkeypatch.setattr(log_files, "_client", lambda _: SimpleNamespace(put_object=put_object))
    if expected is False:
        assert put_if_absent("s3://bucket/a.json", b"") is False
        return
    with pytest.raises(expected, match="the line is cut"):
        put_if_absent("s3://bucket/a.json", b"")


def test_a_log_in_s3(tmp_path: Path) -> None:
    """Of two puts of a name the second changes nothing; logs are found by listing."""
    root = f"s3://{s3.BUCKET}/{tmp_path.name}"
    with s3.server(tmp_path) as store:
        release = hold(root, Storage.of(store))
        path = commit_path(f"{root}/shop/orders", 0)
        assert put_if_absent(path, b"first")
        assert not put_if_absent(path, b"second")
        assert read_bytes(path) == b"first"
        assert find_tables(root) == ["shop.orders"]
        assert list_log(f"{root}/shop/orders").commits == (0,)
        release()
