"""The files of Delta logs: the tables below a root, the files of a log, and a new commit's file.

A commit is the creation of ``<version>.json``, which must fail where that file exists. On a local
disk a hard link does that: the file appears whole, or not at all. In S3 it is a conditional put
(``If-None-Match``), by boto3, as pyarrow has none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.errors import EnvironmentMissing
from penstock.lakes import storage

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-f-]{36}))?\.(parquet|json)"
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: its files, by name."""

    version: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Versions with a commit's file, ascending, and complete checkpoints."""

    commits: tuple[int, ...]
    checkpoints: tuple[Checkpoint, ...]

    @property
    def latest(self) -> int | None:
        return max((*self.commits[-1:], *(p.version for p in self.checkpoints)), default=None)


def log_directory(uri: str) -> str:
    return f"{uri.rstrip('/')}/{LOG}"


def commit_path(uri: str, version: int) -> str:
    return f"{log_directory(uri)}/{version:020d}.json"


def list_log(uri: str) -> Listing:
    """List the log of the table in this directory; empty where there is none."""
    return listing_of(_names(log_directory(uri)))


def _names(directory: str) -> list[str]:
    from pyarrow import fs

    if not storage.is_remote(directory):
        try:
            return os.listdir(directory)  # noqa: PTH208 - names alone
        except (FileNotFoundError, NotADirectoryError):
            return []
    system, root = storage.open_system(directory)
    infos = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return [info.base_name for info in infos]


def listing_of(names: Iterable[str]) -> Listing:
    """Read the names of a log's files."""
    commits: list[int] = []
    parts: dict[tuple[int, str], list[str]] = {}
    for name in names:
        if match := _COMMIT.fullmatch(name):
            commits.append(int(match[1]))
        elif match := _CHECKPOINT.fullmatch(name):
            parts.setdefault((int(match[1]), match[4] or match[3] or ""), []).append(name)
    complete = [
        Checkpoint(version, tuple(sorted(found)))
        for (version, kind), found in sorted(parts.items())
        if not kind.isdigit() or len(found) == int(kind)
    ]
    return Listing(tuple(sorted(commits)), tuple(complete))


def put_if_absent(path: str, content: bytes) -> bool:
    """Create a file with this content; False where there is one already.

    Another error leaves it open, in a store, whether the file was made.
    """
    if storage.is_remote(path):
        return _put_in_s3(path, content)
    folder, _, name = path.rpartition("/")
    staged = f"{folder}/.{name}.{uuid4()}.tmp"
    try:
        _write(staged, content)
        with storage.writing_to(path):  # where the file system has no links
            try:
                os.link(staged, path)
            except FileExistsError:
                return False
    finally:
        Path(staged).unlink(missing_ok=True)
    _sync(folder)
    return True


def _write(path: str, content: bytes) -> None:
    with storage.writing_to(path), Path(path).open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: str) -> None:
    """Make the new name last through a loss of power, where the system can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put_in_s3(path: str, content: bytes) -> bool:
    client = _client(path)
    failures: Any = import_module("botocore.exceptions")
    bucket, _, key = path.split("://", 1)[1].partition("/")
    try:
        client.put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
    except (failures.ClientError, failures.BotoCoreError) as error:
        answer = getattr(error, "response", {})  # none where the store was not reached
        # 409: another put of this name was under way.
        if answer.get("ResponseMetadata", {}).get("HTTPStatusCode") in {409, 412}:
            return False
        raise OSError(str(error)) from error
    return True


def _client(path: str) -> Any:
    try:
        boto3 = import_module("boto3")
    except ModuleNotFoundError:
        raise EnvironmentMissing(
            "commits to Delta tables in S3 need boto3, which is not installed",
            hint="pip install 'penstock-spark[delta,s3]'",
        ) from None
    settings = storage.storage_of(path) or storage.Storage()
    style = "path" if settings.path_style else "auto"
    config = import_module("botocore.config").Config(s3={"addressing_style": style})
    return boto3.client(
        "s3",
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        aws_session_token=settings.session_token,
        endpoint_url=settings.endpoint,
        region_name=settings.region,
        config=config,
    )


_THREADS = 16


def find_tables(root: str) -> list[str]:
    """The names (``schema.table``) of the tables at ``root/schema/table``, sorted."""
    return sorted(f"{schema}.{table}" for schema, table in tables_below(root))


def tables_below(root: str) -> list[tuple[str, str]]:
    """Find the tables of a root.

    Only directories are listed, two levels of them, and of each table its log.

    Args:
        root: The directory of the tables.

    Returns:
        The schema and the name of each.
    """
    top = root.rstrip("/")
    tables = [
        (schema, name) for schema in _directories(top) for name in _directories(f"{top}/{schema}")
    ]
    if not tables:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(tables)), "penstock-delta") as pool:
        logs = pool.map(lambda names: list_log("/".join((top, *names))), tables)
        return sorted(
            names for names, log in zip(tables, logs, strict=True) if log.latest is not None
        )


def is_empty(root: str) -> bool:
    """Return whether nothing is below a root, or it is not there.

    Args:
        root: The directory of the tables.

    Returns:
        Whether there is nothing.
    """
    from pyarrow import fs

    system, top = storage.open_system(root.rstrip("/"))
    return not system.get_file_info(fs.FileSelector(top, allow_not_found=True))


def _directories(directory: str) -> list[str]:
    from pyarrow import fs

    system, path = storage.open_system(directory)
    infos = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    names = [info.base_name for info in infos if info.type == fs.FileType.Directory]
    return [name for name in names if not name.startswith((".", "_"))]
