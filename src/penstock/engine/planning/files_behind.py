"""Find the slices whose files have changed since they were read, or have got others beside them.

Only files of this machine are looked at, each once, by its size and time; by its content where only
the time is another. A file that is gone puts nobody behind: the rows that came of it stay.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import filter as matching_names
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.planning.files_read import MOST, files_named, hash_of, name_of
from penstock.engine.planning.slices import bindings_at
from penstock.engine.state import reading
from penstock.engine.state.records import InputRead, ReadRecord, SliceRecord
from penstock.engine.state.store import State
from penstock.errors import PenstockError
from penstock.model.definition.model import Model
from penstock.model.script.file_uris import path_of, texts_of
from penstock.model.time.interval import interval_of
from penstock.model.time.slice import WHOLE, Part
from penstock.model.time.time_macros import TOKEN

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog

Records = Mapping[str, Sequence[SliceRecord]]  # of models, by their names
_PATTERN = re.compile(r"[*?\[\]{}]")


@dataclass(slots=True)
class Disk:
    """The files of this machine, each looked at once; names are from the directory ``root``."""

    root: Path
    stats: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)
    listed: dict[str, list[str]] = field(default_factory=dict)

    def has_changed(self, file: InputRead) -> bool:
        """Return whether a file that was read is another now; not where it is gone."""
        now = self._stat(file.name)
        if now is None or now == (file.size, file.time):
            return False
        if now[0] != file.size or file.hash is None:
            return True
        if file.name not in self.hashes:
            self.hashes[file.name] = hash_of(self.root / file.name)
        return self.hashes[file.name] != file.hash

    def _stat(self, name: str) -> tuple[int, int] | None:
        if name not in self.stats:
            found = None
            with suppress(OSError):
                stat = os.stat(os.path.join(self.root, name))  # noqa: PTH116, PTH118 - of thousands
                found = stat.st_size, stat.st_mtime_ns
            self.stats[name] = found
        return self.stats[name]

    def files(self, text: str) -> tuple[str, ...]:
        """Return the names of the files that a path or pattern names."""
        if text not in self.named:
            self.named[text] = tuple(self._files(text))
        return self.named[text]

    def _files(self, text: str) -> Iterator[str]:
        folder, pattern = posixpath.split(text)
        if _PATTERN.search(folder) or not _PATTERN.search(pattern):
            yield from (name_of(path, self.root) for path in files_named(text, self.root))
            return
        for name in matching_names(self._listing(folder), pattern):
            paths = files_named(posixpath.join(folder, name), self.root)
            yield from (name_of(path, self.root) for path in paths)

    def _listing(self, folder: str) -> list[str]:
        """List a directory once: the patterns of all slices may be of the same."""
        if folder not in self.listed:
            self.listed[folder] = []
            with suppress(OSError):
                self.listed[folder] = sorted(os.listdir(self.root / folder))  # noqa: PTH208 - names
        return self.listed[folder]


def files_behind(
    root: Path,
    catalogs: Callable[[str], Catalog | None],
    models: Sequence[Model],
    records: Records,
) -> Mapping[str, Mapping[str, str]]:
    """Return why slices are behind the files that they were made from: by the names of models that
    read any, and the texts of their slices.
    """
    by_lake: dict[str, list[Model]] = {}
    for model in models:
        if model.query.files and model.looks_at_rows and records.get(model.name):
            by_lake.setdefault(model.target.lake, []).append(model)
    disk, found = Disk(root), dict[str, Mapping[str, str]]()
    for lake, of in by_lake.items():
        catalog = catalogs(lake)
        if catalog is not None:
            targets = [model.target.qualified for model in of]
            ask = partial(reading.reads_of, targets=targets)
            reads = State(catalog).read(ask, dict[str, ReadRecord]())
            for model in of:
                found[model.name] = dict(changed_files(model, records[model.name], reads, disk))
    return found


def changed_files(
    model: Model, records: Sequence[SliceRecord], reads: Mapping[str, ReadRecord], disk: Disk
) -> Iterator[tuple[str, str]]:
    """Yield the slices that are behind their files, each with what became of the first of these."""
    added = _Added.of(model)
    leaves_changed = model.reads_files and model.strategy.only_adds  # a run says that it does
    for record in records:
        read = reads.get(record.read_id or "")
        if read is None:
            continue
        files = [file for file in read.inputs if file.size is not None]
        changed = () if leaves_changed else (each.name for each in files if disk.has_changed(each))
        name = next(iter(changed), None)
        if name is not None:
            yield record.slice, f"file {name} changed"
            continue
        name = next(added.names(record, read, disk), None)
        if name is not None:
            yield record.slice, f"file {name} is new"


@dataclass(frozen=True, slots=True)
class _Added:
    """Find files of a slice that were not there when it was read. ``depths`` are those of its paths
    where each of them is one file, or a directory: then only a file in one may be new.
    """

    model: Model
    depths: frozenset[int] | None

    @classmethod
    def of(cls, model: Model) -> _Added:
        texts = [texts_of(source.path) for source in model.query.files]
        paths = [text.replace(TOKEN, "x") for each in texts for text in each]
        if not all(texts) or any(_PATTERN.search(path) or "$" in path for path in paths):
            return cls(model, None)
        return cls(model, frozenset(posixpath.normpath(path).count("/") for path in paths))

    @property
    def may_be_missing(self) -> bool:
        """Return whether slices may have read no file, as a call says ``missing = 'empty'``."""
        calls = self.model.query.files
        return any(name.lower() == "missing" for call in calls for name, _ in call.options)

    def names(self, record: SliceRecord, read: ReadRecord, disk: Disk) -> Iterator[str]:
        files = {file.name for file in read.inputs if file.kind == "file"}
        if len(files) >= MOST or not (files or self.model.reads_files or self.may_be_missing):
            return  # not all are recorded, or nothing is
        if files and self.depths and all(name.count("/") in self.depths for name in files):
            return
        for text in self._texts(record, read):
            if "://" not in text:
                yield from (name for name in disk.files(text) if name not in files)

    def _texts(self, record: SliceRecord, read: ReadRecord) -> Iterator[str]:
        """Yield the paths of a slice; none where its arguments are others by now."""
        slice_ = interval_of(record.slice) or (Part(record.slice) if record.slice else WHOLE)
        with suppress(PenstockError):
            bound = bindings_at(self.model, slice_, read.arguments, record.published_at)
            for source in self.model.query.files:
                paths = path_of(source, bound, self.model.query.arguments)
                yield from map(str, paths if isinstance(paths, list) else [paths])
