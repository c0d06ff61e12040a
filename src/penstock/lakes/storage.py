"""Files and directories of a lake, wherever they are: on a local disk or in an object store.

Paths are local ones or URIs, as in the catalog; pyarrow's file systems do the work. The settings of
an object store are held by bucket, as Hadoop holds its file systems, while a lake on it is
attached: a path in a catalog is enough to open it, from any thread. So lakes on one bucket that are
attached at the same time must have the same settings.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from penstock.errors import ConfigError, DataPathError, UnsupportedFeature
from penstock.lazy import pq
from penstock.masking import shown

if TYPE_CHECKING:
    from pyarrow import fs

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_S3 = frozenset({"s3", "s3a"})
_COMMITTERS = frozenset({"magic", "file"})


@dataclass(frozen=True, slots=True)
class Storage:
    """The settings of an S3 store for Spark (S3A) and pyarrow. ``None``: the SDKs' own defaults.

    ``endpoint`` is a URL, ``http://127.0.0.1:9000``; without one it is AWS. ``path_style`` puts the
    bucket in the path instead of the host's name. ``committer`` is how Spark publishes its files:
    ``file`` (renames, which S3 copies) or ``magic`` (uploads that are completed when the job is; it
    needs ``spark-hadoop-cloud`` on Spark's class path): an option of each write, no setting.
    """

    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    committer: str = "file"

    @classmethod
    def of(cls, settings: Mapping[str, object] | Storage | None) -> Storage | None:
        """Settings from a mapping. Raises ConfigError for unknown names and wrong values."""
        if settings is None or isinstance(settings, Storage):
            return settings
        unknown = sorted(set(settings) - set(cls.__slots__))
        if unknown:
            raise ConfigError(
                f"storage has no setting {unknown[0]!r}",
                hint=f"its settings are {', '.join(cls.__slots__)}",
            )
        for name, value in settings.items():
            if name != "path_style" and not isinstance(value, str | None):
                raise ConfigError(
                    f"storage.{name} must be a text, not {shown(name, value)}",
                    hint="put the value in quotes",
                )
        values = dict(settings)
        style = values.get("path_style", False)
        values["path_style"] = str(style).lower() in {"true", "1"}
        storage = cls(**values)  # type: ignore[arg-type] # checked below
        if storage.committer not in _COMMITTERS:
            raise ConfigError(
                f"storage.committer is {storage.committer!r}", hint="it is 'magic' or 'file'"
            )
        return storage

    def spark_settings(self, bucket: str) -> dict[str, str]:
        """Runtime settings of a Spark session for this bucket, of ``s3://`` and ``s3a://`` paths.

        Hadoop's "Configuring different S3 buckets with Per-Bucket Configuration" has the names.
        """
        own = f"fs.s3a.bucket.{bucket}"
        simple = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
        if self.session_token is not None:
            simple = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
        values = {
            "access.key": self.access_key,
            "secret.key": self.secret_key,
            "session.token": self.session_token,
            "aws.credentials.provider": None if self.access_key is None else simple,
            "endpoint": self.endpoint,
            "endpoint.region": self.region,
            "path.style.access": str(self.path_style).lower(),
            "connection.ssl.enabled": str(not (self.endpoint or "").startswith("http:")).lower(),
        }
        settings = {f"{own}.{name}": value for name, value in values.items() if value is not None}
        settings["fs.s3.impl"] = "org.apache.hadoop.fs.s3a.S3AFileSystem"
        return settings

    def open(self) -> fs.FileSystem:
        from pyarrow import fs

        url = urlsplit(self.endpoint or "")
        if self.endpoint and url.scheme not in {"http", "https"}:
            raise ConfigError(
                f"storage.endpoint is {shown('endpoint', self.endpoint)}",
                hint="give a URL such as https://s3.example.org",
            )
        where = {"endpoint_override": url.netloc, "scheme": url.scheme} if self.endpoint else {}
        return fs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            session_token=self.session_token,
            region=self.region or ("us-east-1" if self.endpoint else None),
            force_virtual_addressing=bool(self.endpoint) and not self.path_style,
            **where,
        )


@dataclass(slots=True)
class _Store:
    """A bucket of the lakes that are attached now, all with the same settings."""

    storage: Storage
    system: fs.FileSystem | None = None
    lakes: int = 0


_STORES: dict[str, _Store] = {}  # by bucket
_IN_SPARK: dict[str, Mapping[str, str]] = {}  # by bucket, as Hadoop keeps what it opened
_LOCK = Lock()


def bucket_of(path: str) -> str | None:
    """The bucket of an ``s3://`` or ``s3a://`` path; ``None`` for all others."""
    url = urlsplit(path) if "://" in path else None
    return url.netloc if url is not None and url.scheme in _S3 else None


def hold(path: str, storage: Storage | None) -> Callable[[], None]:
    """Open the bucket of ``path`` with ``storage`` until the returned function is called.

    A lake's credentials are neither lent to another lake on the bucket nor taken from one. Raises
    ConfigError where an attached lake has other settings for the bucket.
    """
    bucket = bucket_of(path)
    if bucket is None:
        if storage is not None:
            raise storage_elsewhere(path)
        return lambda: None
    wanted = storage or Storage()
    with _LOCK:
        store = _STORES.get(bucket)
        if store is None:
            store = _STORES[bucket] = _Store(wanted, None if storage is None else storage.open())
        elif store.storage != wanted:
            raise _other_storage(bucket, "a lake that is attached has", "close that lake first")
        store.lakes += 1
    released = False

    def release() -> None:
        nonlocal released
        with _LOCK:
            if released:
                return
            released = True
            store.lakes -= 1
            if not store.lakes and _STORES.get(bucket) is store:
                del _STORES[bucket]

    return release


def use(path: str, storage: Storage | None) -> None:
    """Open the bucket of ``path`` with these settings from now on, in a process without lakes."""
    bucket = bucket_of(path)
    if bucket is not None:
        _STORES[bucket] = _Store(storage or Storage())


def _other_storage(bucket: str, whose: str, next_step: str) -> ConfigError:
    return ConfigError(
        f"{whose} other storage settings (credentials, endpoint, ...) for the bucket {bucket}",
        hint=f"give both the same, or {next_step}: credentials are not shared between lakes",
        data={"bucket": bucket},
    )


def storage_elsewhere(path: str) -> ConfigError:
    """The error of settings for S3 beside a data path that is not in S3."""
    return ConfigError(
        f"storage is set, and the data path {path} is not in S3",
        hint="leave storage out, or give a data path such as s3://bucket/lake/",
    )


def spark_settings(path: str) -> dict[str, str]:
    """The settings that a Spark session needs before it opens ``path``; none for local paths.

    Hadoop opens a bucket once in a process and ignores later settings. Raises ConfigError where it
    was opened with other settings.
    """
    bucket = bucket_of(path)
    if bucket is None:
        return {}
    wanted = (storage_of(path) or Storage()).spark_settings(bucket)
    with _LOCK:
        if _IN_SPARK.setdefault(bucket, wanted) != wanted:
            raise _other_storage(
                bucket, "Spark has been used in this process with", "start another process"
            )
    return wanted


def storage_of(path: str) -> Storage | None:
    """The settings of the bucket of ``path``, to send to another process; ``None`` if unset."""
    store = _STORES.get(bucket_of(path) or "")
    return None if store is None else store.storage


def is_remote(path: str) -> bool:
    """Return whether it is a URI, of S3 or another store, and not a local path."""
    return _URI.match(path) is not None


def open_system(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of ``path``, and the path within it."""
    from pyarrow import fs

    if not is_remote(path):
        return fs.LocalFileSystem(), path
    bucket = bucket_of(path)
    if bucket is None:
        system, root = fs.FileSystem.from_uri(path)
        return system, root
    store = _STORES.get(bucket) or _Store(Storage())
    if store.system is None:
        store.system = store.storage.open()
    return store.system, path.split("://", 1)[1]


def list_files(directory: str, suffix: str = ".parquet") -> list[str]:
    """Paths of the files below ``directory``, sorted; hidden and ``_`` names left out."""
    from pyarrow import fs

    system, root = open_system(directory)
    root = root.rstrip("/")
    infos = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    names = [info.path for info in infos if info.is_file and info.path.endswith(suffix)]
    prefix = directory.rstrip("/")
    below = [name[len(root) :] for name in names]
    return sorted(prefix + path for path in below if not _hidden(path))


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) and "=" not in part for part in path.split("/"))


def remove_directory(directory: str) -> None:
    """Remove a directory of staged files, which may be missing.

    Such directories are named by a UUID. Any other name is a mistake that would remove a table.
    """
    from pyarrow import fs

    UUID(directory.rsplit("/", 1)[-1])
    system, root = open_system(directory)
    if system.get_file_info(root).type != fs.FileType.NotFound:
        system.delete_dir(root)


def remove_file(path: str) -> bool:
    """Remove one file, and the checksum that Spark keeps beside it on a local disk.

    Whether it was there.
    """
    from pyarrow import fs

    folder, _, name = path.rpartition("/")
    places = (path,) if is_remote(path) else (path, f"{folder}/.{name}.crc")
    there: list[bool] = []
    for file_path in places:
        system, place = open_system(file_path)
        there.append(system.get_file_info(place).type == fs.FileType.File)
        if there[-1]:
            system.delete_file(place)
    return there[0]


def move_files(pairs: Iterable[tuple[str, str]]) -> None:
    """Rename local files, creating directories; removes Spark's checksum files."""
    for source, target in pairs:
        place = Path(target)
        place.parent.mkdir(parents=True, exist_ok=True)
        Path(source).rename(place)
        folder, _, name = source.rpartition("/")
        Path(f"{folder}/.{name}.crc").unlink(missing_ok=True)


def remove_empty(directory: str) -> None:
    """Remove the empty directories below a local one."""
    for folder, _, _ in os.walk(directory, topdown=False):
        place = Path(folder)
        if folder != directory and not any(place.iterdir()):
            place.rmdir()


def read_bytes(path: str) -> bytes:
    """The whole of a small file. Raises FileNotFoundError."""
    system, place = open_system(path)
    with system.open_input_file(place) as file:
        return bytes(file.read())


def read_ends(path: str, length: int) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file. Raises FileNotFoundError."""
    system, place = open_system(path)
    with system.open_input_file(place) as file:
        first = bytes(file.read(length))
        file.seek(max(file.size() - length, 0))
        return first, bytes(file.read(length))


def size_of(path: str) -> int | None:
    """The size of a file in bytes; ``None`` where it does not exist."""
    from pyarrow import fs

    system, place = open_system(path)
    info = system.get_file_info(place)
    return int(info.size) if info.type == fs.FileType.File else None


def exists(path: str) -> bool:
    """Return whether there is a file or a directory of this name."""
    from pyarrow import fs

    system, place = open_system(path)
    there: bool = bool(system.get_file_info(place).type != fs.FileType.NotFound)
    return there


def first_value(path: str, column: str) -> Any:
    """The first row's value of a top-level column of a Parquet file that has rows."""
    system, place = open_system(path)
    with system.open_input_file(place) as source, pq.ParquetFile(source) as file:
        batch = next(file.iter_batches(batch_size=1, columns=[column]))
    return batch.column(0)[0].as_py()


def make_parent(directory: str) -> None:
    """Create the parent directory of a local path; object stores have none.

    Raises DataPathError where that is impossible, UnsupportedFeature for untested stores.
    """
    if is_remote(directory):
        refuse_unknown(directory)
        return
    parent = Path(directory).parent
    make_directory(str(parent))
    if not os.access(parent, os.W_OK | os.X_OK):
        raise _unwritable(parent, "permission denied")


def make_directory(directory: str) -> None:
    """Create a local directory with its parents where it is missing. Raises DataPathError."""
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(directory, error.strerror or str(error), error.errno) from error


@contextmanager
def output(path: str) -> Iterator[fs.NativeFile]:
    """A new file to write to. Opening and writing raise DataPathError."""
    with writing_to(path):
        system, place = open_system(path)
        with system.open_output_stream(place) as out:
            yield out


@contextmanager
def writing_to(path: str) -> Iterator[None]:
    """Raise DataPathError for the system's errors while a file is written or copied."""
    try:
        yield
    except OSError as error:
        why = str(error).splitlines()[0] if error.errno is None else os.strerror(error.errno)
        raise _unwritable(path, why, error.errno) from error


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def _unwritable(path: str | Path, why: str, number: int | None = None) -> DataPathError:
    return DataPathError(
        f"{path} cannot be written: {why}",
        hint="nothing was changed: free some space there and run again"
        if number in _FULL
        else "check that its directory exists and is writable",
        data={"path": str(path)},
    )


def refuse_unknown(path: str) -> None:
    """Raise UnsupportedFeature for a path in an untested store."""
    scheme = urlsplit(path).scheme
    if scheme not in _S3:
        raise UnsupportedFeature(
            f"writing to {scheme}:// is not supported",
            hint="give a local directory, or one in S3: s3://bucket/lake/",
            data={"path": path},
        )
