"""See which files that models wait for are new or changed, as events of the scheduler.

Files are listed. A file is known by its size and the time of its last change: who writes another
one of the same size within the resolution of that time (a second in some stores) is not seen. A
file that is written slowly is seen when it appears, and again when it has changed. It makes no
difference who wrote it.
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

_VARIES = re.compile(r"[*?\[\]{}]")
_LISTED = "listed"


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Hold the events of a look at files.

    Attributes:
        events: One for each file that is new or changed, and pattern.
        fingerprints: Those of the files that there are, which the next look compares with.
        errors: Why patterns could not be listed; they are as they were seen before.
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
    """A watch of files of this machine and of S3. The buckets stay open until `close`."""

    def __init__(self, settings: Settings) -> None:
        """Watch files.

        Args:
            settings: Of the project: paths are from its root, and buckets have the credentials of
                the lake on them.
        """
        self._settings = settings
        self._held: dict[str, Callable[[], None]] = {}

    def changes(self, patterns: Iterable[str], fingerprints: Mapping[str, str]) -> FileChanges:
        """Return the files that are new or changed since the last look.

        The files that a pattern names when it is listed for the first time have no events. What is
        not asked for any more is forgotten.

        Args:
            patterns: Paths and URIs; ``{partition}`` stands for a part of one name.
            fingerprints: What the last look returned; empty at the first one.

        Returns:
            The events, and what is known now.
        """
        events: list[TriggerEvent] = []
        listed: dict[str, str] = {}
        errors: dict[str, str] = {}
        for pattern in sorted({one_spelling(text, self._settings.root) for text in patterns}):
            before = _of_pattern(fingerprints, pattern)
            try:
                files = list(self._files(pattern))
            except (OSError, PenstockError) as error:
                errors[pattern] = str(error)
                listed |= before
                continue
            current = {_key(pattern, file.name): file.fingerprint for file in files}
            if pattern in before:
                events += (
                    _event(pattern, file)
                    for file in files
                    if before.get(_key(pattern, file.name)) != file.fingerprint
                )
            listed |= {pattern: _LISTED, **current}
        return FileChanges(tuple(events), listed, errors)

    def close(self) -> None:
        """Close the buckets."""
        for release in self._held.values():
            release()
        self._held.clear()

    def _files(self, pattern: str) -> Iterator[_File]:
        if is_remote(pattern):
            yield from self._remote_files(pattern)
            return
        root = self._settings.root
        for path in files_named(pattern.replace(TOKEN, "*"), root):
            try:
                file = file_read(path, root)
            except FileNotFoundError:  # it was listed, and is gone by now
                continue
            yield _File(name_of(path, root), file.size or 0, file.time or 0)

    def _remote_files(self, pattern: str) -> Iterator[_File]:
        from pyarrow import fs

        self._open(pattern)
        system, place = open_system(pattern)
        scheme = pattern.removesuffix(place)
        above = _VARIES.split(place)[0]
        infos: list[fs.FileInfo] = []
        if above == place:
            infos = system.get_file_info([place])
        is_below = above != place or infos[0].type == fs.FileType.Directory
        if is_below:
            folder = above.rpartition("/")[0] if above != place else place
            below = fs.FileSelector(folder, recursive=True, allow_not_found=True)
            infos = system.get_file_info(below)
        for info in infos:
            name = f"{scheme}{info.path}"
            if (
                info.is_file
                and info.base_name[0] not in "._"
                and may_be(pattern, name, directories=True)
            ):
                yield _File(name, info.size, info.mtime_ns)

    def _open(self, uri: str) -> None:
        """Open the bucket of a URI by the settings of a lake that is on it."""
        bucket = bucket_of(uri)
        if bucket == "":
            raise ConfigError(
                f"{uri} names no bucket",
                hint="write it as s3://BUCKET/PATH: there is no default one",
            )
        if bucket is None:
            raise UnsupportedFeature(
                f"files of {uri.partition('://')[0]}:// are not watched",
                hint="wait for a file of S3 or of this machine, or send a message",
            )
        if bucket in self._held:
            return
        lakes = self._settings.lakes.values()
        on_it = (lake for lake in lakes if lake.data_path and bucket_of(lake.data_path) == bucket)
        storage = next((lake.storage for lake in on_it if lake.storage), None)
        self._held[bucket] = hold(uri, Storage.of(storage))


def _key(pattern: str, name: str) -> str:
    return f"{pattern}\n{name}"


def _of_pattern(fingerprints: Mapping[str, str], pattern: str) -> dict[str, str]:
    start = _key(pattern, "")
    return {
        key: fingerprint
        for key, fingerprint in fingerprints.items()
        if key == pattern or key.startswith(start)
    }


def _event(pattern: str, file: _File) -> TriggerEvent:
    partition = partition_in(pattern, file.name)
    suffix = "" if partition is None else f"/{partition}"
    return TriggerEvent(
        id=f"asset:{file.name}@{file.fingerprint}{suffix}",
        kind=EventKind.ASSET,
        source=file.name,
        time=datetime.fromtimestamp(file.time / 1e9, UTC),
        partition=partition,
    )
