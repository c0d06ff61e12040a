"""Files of the user's cache directory: what was derived from a project, by what it depends on.

A file that cannot be read counts as empty, and one that cannot be written is not. Each is replaced
as a whole, so that two processes may write it: the last one's stays.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from penstock.settings.config import Settings

V = TypeVar("V")
_FORMAT = 1
_ROOMS = ("model", "sql")  # whose code says what a script means
_EVERY_ROOM = ("",)


class CacheFile(MutableMapping[str, V]):
    """The entries of a file, read when the first is asked for. `save` keeps those that were used,
    and where ``keeps`` is set, others up to so many in all.

    ``dump`` and ``load`` turn them into bytes and back.
    """

    def __init__(
        self,
        path: Path,
        dump: Callable[[Any], bytes],
        load: Callable[[bytes], Any],
        keeps: int = 0,
        rooms: Sequence[str] = _ROOMS,
    ) -> None:
        self.path = path
        self._rooms = rooms
        self._keeps = keeps
        self._dump, self._load = dump, load
        self._entries: dict[str, V] | None = None
        self._used: set[str] = set()
        self._changed = False

    def __getitem__(self, key: str) -> V:
        entry = self._all()[key]
        self._used.add(key)
        return entry

    def __setitem__(self, key: str, entry: V) -> None:
        self._all()[key] = entry
        self._used.add(key)
        self._changed = True

    def __delitem__(self, key: str) -> None:
        del self._all()[key]
        self._changed = True

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def save(self) -> None:
        """Write the entries, if any that was used is new."""
        if not self._changed:
            return
        entries = dict(self._all())  # other threads may add entries meanwhile
        if len(entries) > self._keeps:
            entries = {key: entry for key, entry in entries.items() if key in self._used}
        with suppress(OSError):  # a cache that cannot be written is none
            _replace(self.path, self._dump({"stamp": stamp(self._rooms), "entries": entries}))
        self._changed = False

    def _all(self) -> dict[str, V]:
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def _read(self) -> dict[str, V]:
        try:
            content = self._load(self.path.read_bytes())
            entries = content["entries"] if content["stamp"] == stamp(self._rooms) else {}
            return {str(key): entry for key, entry in entries.items()}
        except Exception:  # whatever is in the file: it is rebuilt
            return {}


def scripts(settings: Settings) -> CacheFile[bytes] | None:
    """Read scripts, as `penstock.model.project.serialized` packs them; ``None`` where none are."""
    path = _path(settings, "scripts.cache")
    return None if path is None else CacheFile(path, pickle.dumps, _only_bytes)


def lineages(settings: Settings) -> CacheFile[Any] | None:
    """Lineages of models, as `penstock.model.lineage.values.to_dict` has them."""
    path = _path(settings, "lineage.json")
    return None if path is None else CacheFile(path, _json, json.loads, keeps=20_000)


def columns(settings: Settings) -> CacheFile[Any] | None:
    """The same, as far as they are known without the lakes: for ``check``."""
    path = _path(settings, "columns.json")
    return None if path is None else CacheFile(path, _json, json.loads)


def edges(settings: Settings) -> CacheFile[bytes] | None:
    """Return the edges of models, as `penstock.model.project.edge_cache` packs them.

    Args:
        settings: The settings of the project.

    Returns:
        The file; None where nothing is cached.
    """
    path = _path(settings, "edges.cache")
    return None if path is None else CacheFile(path, pickle.dumps, _only_bytes, keeps=20_000)


def slice_states(settings: Settings) -> CacheFile[Any] | None:
    """Return the states of slices, as `penstock.engine.planning.state_cache` has them.

    Args:
        settings: The settings of the project.

    Returns:
        The file; None where nothing is cached.
    """
    path = _path(settings, "states.cache")
    if path is None:
        return None
    return CacheFile(path, pickle.dumps, _only_bytes, keeps=10_000, rooms=_EVERY_ROOM)


def query_facts(settings: Settings) -> CacheFile[Any] | None:
    """Answers about queries, as `penstock.model.slicing.query_facts` has them. A plan of a few
    models asks of these alone.
    """
    path = _path(settings, "queries.json")
    return None if path is None else CacheFile(path, _json, json.loads, keeps=20_000)


def _path(settings: Settings, name: str) -> Path | None:
    if settings.cache is None:
        return None
    project = hashlib.sha256(str(settings.root).encode()).hexdigest()[:24]
    return settings.cache / "projects" / project / name


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


@cache  # a process goes on with the code that it has loaded
def stamp(rooms: Sequence[str] = _ROOMS) -> list[Any]:
    """Changes with the code that reads scripts: Penstock's, sqlglot's and Python's."""
    folders = [folder for room in rooms for folder in os.walk(Path(__file__).parents[2] / room)]
    names = sorted(f"{path}/{name}" for path, _, files in folders for name in files)
    paths = [Path(name) for name in names if name.endswith(".py")]
    spec = importlib.util.find_spec("sqlglot")  # without loading it
    if spec is not None and spec.origin is not None:
        paths.append(Path(spec.origin).with_name("_version.py"))
    states = [(str(path), *_state(path)) for path in paths]
    code = hashlib.sha256(repr(states).encode()).hexdigest()
    return [_FORMAT, sys.version, code]


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


class _NoClasses(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def _only_bytes(data: bytes) -> Any:
    return _NoClasses(io.BytesIO(data)).load()


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
