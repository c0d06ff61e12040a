"""Load the served project again when its files change.

If the changed project cannot be loaded, the last valid version is served. The problem is reported
until a version can be loaded.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.project.context import ProjectContext
from penstock.scheduler.matching import Index
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from penstock.model.values.asset import TableName
    from penstock.scheduler.subscription import Source, Subscription
    from penstock.settings.config import Settings

_CHECK_INTERVAL = 2.0  # seconds between two checks of the files
_EXCLUDED = frozenset({".git", ".penstock", "__pycache__", ".venv", "node_modules"})
_SUFFIXES = frozenset({".sql", ".py", ".yaml", ".yml", ".toml", ".csv"})

Subscribe = Callable[[ProjectContext], "Mapping[str, Subscription]"]


@dataclass(frozen=True)
class Version:
    """A valid version of the project.

    Attributes:
        context: The project.
        subscriptions: The subscriptions by model.
        digest: The digest of its files.
    """

    context: ProjectContext
    subscriptions: Index
    digest: str

    @cached_property
    def tables(self) -> tuple[TableName, ...]:
        """Return the tables that trigger models.

        Returns:
            The tables, without duplicates.
        """
        tables = (source.table for source in self._sources)
        return tuple(dict.fromkeys(table for table in tables if table is not None))

    @cached_property
    def table_readers(self) -> Mapping[str, frozenset[tuple[str, str]]]:
        """Return the models that wait for tables.

        Returns:
            By lake each model with the folded full name of a table that it waits for.
        """
        readers: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for model, subscription in self.subscriptions.items():
            for source in subscription.sources:
                if source.table is not None:
                    readers[source.table.lake].add((model, fold(source.name)))
        return {lake: frozenset(pairs) for lake, pairs in readers.items()}

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Return the paths and URIs of the files that trigger models.

        Returns:
            The paths, URIs and patterns, without duplicates.
        """
        return tuple(sorted({item.name for item in self._sources if item.table is None}))

    @cached_property
    def writers_of_files(self) -> frozenset[str]:
        """Return the models that write files.

        Returns:
            The names of the models.
        """
        return frozenset(model.name for model in self.context.models if model.files_written)

    @property
    def _sources(self) -> Iterator[Source]:
        return chain.from_iterable(item.sources for item in self.subscriptions.values())

    @cached_property
    def _readers(self) -> Mapping[str, Sequence[str]]:
        readers: dict[str, list[str]] = defaultdict(list)
        for model, subscription in self.subscriptions.items():
            for source in subscription.sources:
                readers[fold(source.name)].append(model)
        return readers

    def readers_of(self, source: str) -> Sequence[str]:
        """Return the models that a table triggers.

        Args:
            source: The full name of the table.

        Returns:
            The names of the models.
        """
        return self._readers.get(fold(source), ())


class ServedProject:
    """The project that a process serves.

    Attributes:
        version: The last valid version.
        problem: Why the current files cannot be loaded; None if they can.
    """

    def __init__(
        self,
        context: ProjectContext,
        subscribe: Subscribe,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the first version from a loaded project.

        Args:
            context: The project.
            subscribe: Returns the subscriptions of a project.
            clock: Returns a time in seconds.
        """
        self._subscribe = subscribe
        self._clock = clock
        self._checked_at = clock()
        self.version = self._build_version(context, digest_files(context.settings))
        self.problem: str | None = None
        self._last_digest = self.version.digest

    def _build_version(self, context: ProjectContext, digest: str) -> Version:
        return Version(context, Index.of(self._subscribe(context)), digest)

    def refresh(self) -> bool:
        """Load the project again if its files have changed.

        Returns:
            Whether a new version was loaded.
        """
        if self._clock() - self._checked_at < _CHECK_INTERVAL:
            return False
        self._checked_at = self._clock()
        digest = digest_files(self.version.context.settings)
        if digest == self._last_digest:
            return False
        self._last_digest = digest
        try:
            version = self._build_version(reload_context(self.version.context), digest)
        except PenstockError as error:
            self.problem = str(error)
            return False
        self.version, self.problem = version, None
        return True


def reload_context(context: ProjectContext) -> ProjectContext:
    """Load the settings and models of a project again.

    Args:
        context: The loaded project.

    Returns:
        The project with the same connections.

    Raises:
        ConfigError: If the lakes or the settings of Spark have changed: their connections are open.
    """
    from penstock.engine.session.connections import Connections
    from penstock.errors import ConfigError
    from penstock.settings.config import load_settings

    old = context.settings
    settings = load_settings(old.root, environment=old.environment)
    if (settings.lakes, settings.spark) != (old.lakes, old.spark):
        raise ConfigError(
            "the lakes or the settings of Spark in penstock.toml have changed since the start",
            hint="restart penstock serve",
        )
    # Use separate connections: a failed load must not close those of the served project.
    connections = Connections(settings, None, warm=False)
    loaded = connections.load_models()
    connections.close()
    return ProjectContext.of(settings, loaded, context.connections, context.sink)


def digest_files(settings: Settings) -> str:
    """Return a digest of the names, sizes and modification times of the files of a project.

    Args:
        settings: The settings of the project. The data files of its lakes are left out.

    Returns:
        The digest. It changes when a file that may define a model changes.
    """
    lakes = {Path(lake.data_path).absolute() for lake in settings.lakes.values() if lake.data_path}
    digest = hashlib.sha256()
    for path, status in sorted(_list_files(settings.root, lakes)):
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _list_files(root: Path, lakes: Collection[Path]) -> Iterator[tuple[str, os.stat_result]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if name not in _EXCLUDED and Path(folder, name).absolute() not in lakes
        ]
        for name in names:
            path = Path(folder, name)
            if path.suffix not in _SUFFIXES:
                continue
            with suppress(OSError):  # removed meanwhile
                yield str(path), path.stat()
