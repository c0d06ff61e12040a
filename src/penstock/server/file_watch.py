"""Find new and changed files that models wait for, as events of the scheduler.

The files are listed. The fingerprint of a file is its size and modification time. So a new version
of the same size is not detected within the resolution of that time (a second in some stores). A
file that is written slowly has an event when it appears, and another one after it has changed. The
writer of a file does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from penstock.engine.planning.files_read import file_read, files_named, name_of
from penstock.errors import ConfigError, PenstockError, UnsupportedFeature
from penstock.lakes.storage import Storage, bucket_of, hold, is_remote, open_system
from penstock.model.script.file_uris import may_be, one_spelling, partition_in
from penstock.model.time.time_macros import TOKEN
from penstock.scheduler.values import EventKind, TriggerEvent

if TYPE_CHECKING:
    from pyarrow import fs

    from penstock.settings.config import Settings

_WILDCARD = re.compile(r"[*?\[\]{}]")
_LISTED = "listed"


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The result of listing files.

    Attributes:
        events: An event for each new or changed file and pattern.
        fingerprints: The fingerprints of the listed files. The next call compares with them.
        errors: The errors of patterns that could not be listed. They keep the old fingerprints.
    """

    events: tuple[TriggerEvent, ...]
    fingerprints: Mapping[str, str]
    errors: Mapping[str, str] = field(default_factory=dict)


class _File(NamedTuple):
    name: str
    size: int
    time: int  # of the last change, in nanoseconds since 1970

    @property
    def fingerprint(self) -> str:
        return f"{self.size}-{self.time}"


class FileWatch:
    """Finds changes of local files and of files on S3. Buckets stay open until `close`."""

    def __init__(self, settings: Settings) -> None:
        """Create a watch without open buckets.

        Args:
            settings: The settings of the project. Paths are relative to its root. A bucket is
                opened with the credentials of a lake on it.
        """
        self._settings = settings
        self._buckets: dict[str, Callable[[], None]] = {}  # the functions that close them

    def changes(self, patterns: Iterable[str], fingerprints: Mapping[str, str]) -> FileChanges:
        """Return the files that are new or changed since the last call.

        When a pattern is listed for the first time, its files have no events. The fingerprints of a
        pattern that is no longer given are dropped.

        Args:
            patterns: Paths and URIs. ``{partition}`` matches a part of a file name.
            fingerprints: The result of the last call; empty in the first call.

        Returns:
            The events, and the current fingerprints.
        """
        events: list[TriggerEvent] = []
        listed: dict[str, str] = {}
        errors: dict[str, str] = {}
        for pattern in sorted({one_spelling(text, self._settings.root) for text in patterns}):
            previous = _select_pattern(fingerprints, pattern)
            try:
                files = list(self._list_files(pattern))
            except (OSError, PenstockError) as error:
                errors[pattern] = str(error)
                listed |= previous
                continue
            current = {_make_key(pattern, file.name): file.fingerprint for file in files}
            if pattern in previous:
                events += (
                    _make_event(pattern, file)
                    for file in files
                    if previous.get(_make_key(pattern, file.name)) != file.fingerprint
                )
            listed |= {pattern: _LISTED, **current}
        return FileChanges(tuple(events), listed, errors)

    def close(self) -> None:
        """Close the buckets."""
        for close in self._buckets.values():
            close()
        self._buckets.clear()

    def _list_files(self, pattern: str) -> Iterator[_File]:
        if is_remote(pattern):
            yield from self._list_remote_files(pattern)
            return
        root = self._settings.root
        for path in files_named(pattern.replace(TOKEN, "*"), root):
            try:
                file = file_read(path, root)
            except FileNotFoundError:  # removed after it was listed
                continue
            yield _File(name_of(path, root), file.size or 0, file.time or 0)

    def _list_remote_files(self, pattern: str) -> Iterator[_File]:
        from pyarrow import fs

        self._open_bucket(pattern)
        system, path = open_system(pattern)
        scheme = pattern.removesuffix(path)
        prefix = _WILDCARD.split(path)[0]
        infos: list[fs.FileInfo] = []
        if prefix == path:
            infos = system.get_file_info([path])
        if prefix != path or infos[0].type == fs.FileType.Directory:
            folder = prefix.rpartition("/")[0] if prefix != path else path
            selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
            infos = system.get_file_info(selector)
        for info in infos:
            name = f"{scheme}{info.path}"
            if (
                info.is_file
                and info.base_name[0] not in "._"
                and may_be(pattern, name, directories=True)
            ):
                yield _File(name, info.size, info.mtime_ns)

    def _open_bucket(self, uri: str) -> None:
        """Open the bucket of a URI with the settings of a lake on the same bucket."""
        bucket = bucket_of(uri)
        if bucket == "":
            raise ConfigError(
                f"{uri} names no bucket",
                hint="write it as s3://BUCKET/PATH: there is no default bucket",
            )
        if bucket is None:
            raise UnsupportedFeature(
                f"files of {uri.partition('://')[0]}:// are not watched",
                hint="use a local file or a file on S3, or send a message",
            )
        if bucket in self._buckets:
            return
        storages = (
            lake.storage
            for lake in self._settings.lakes.values()
            if lake.data_path and lake.storage and bucket_of(lake.data_path) == bucket
        )
        storage = next(storages, None)
        self._buckets[bucket] = hold(uri, Storage.of(storage))


def _make_key(pattern: str, name: str) -> str:
    return f"{pattern}\n{name}"


def _select_pattern(fingerprints: Mapping[str, str], pattern: str) -> dict[str, str]:
    start = _make_key(pattern, "")
    return {
        key: fingerprint
        for key, fingerprint in fingerprints.items()
        if key == pattern or key.startswith(start)
    }


def _make_event(pattern: str, file: _File) -> TriggerEvent:
    partition = partition_in(pattern, file.name)
    suffix = "" if partition is None else f"/{partition}"
    return TriggerEvent(
        id=f"asset:{file.name}@{file.fingerprint}{suffix}",
        kind=EventKind.ASSET,
        source=file.name,
        time=datetime.fromtimestamp(file.time / 1e9, UTC),
        partition=partition,
    )
