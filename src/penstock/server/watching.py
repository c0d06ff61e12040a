"""Look at lakes, files and other sources of a project, from the positions in its agenda."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from penstock.errors import PenstockError
from penstock.scheduler.values import EventKind, TriggerEvent
from penstock.server.agenda_rows import NO_SNAPSHOT, LakeLook, Position
from penstock.server.file_watch import FileWatch
from penstock.server.sources import MessageSource, open_source
from penstock.server.table_watch import TableWatch
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from penstock.lakes.catalog.catalog import Catalog
    from penstock.scheduler.values import Outcome
    from penstock.server.firing_runner import FiringEnd
    from penstock.server.served_project import ServedProject, Version

LOG = logging.getLogger("penstock.serve")
_LONGEST_WAIT = 10.0  # seconds between two attempts to record a message


class Store(Protocol):
    """The part of the agenda that watches use."""

    def positions(self) -> Mapping[tuple[str, str], Position]:
        """Return all positions.

        Returns:
            The positions, by reader and source.
        """
        ...

    def files(self) -> Mapping[str, str]:
        """Return the files as they were listed last.

        Returns:
            Their fingerprints.
        """
        ...

    def accept(self, event: TriggerEvent) -> bool:
        """Record an event.

        Args:
            event: The event.

        Returns:
            False if an event of its id was recorded before.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sighting:
    """Events that a watch saw since its last look, and what it has to remember.

    Attributes:
        events: The events.
        looks: Up to where they go.
        newcomers: By the ids of events the models that wait for the table only since then.
        files: The files as they were seen; None if nothing changed.
    """

    events: tuple[TriggerEvent, ...] = ()
    looks: tuple[LakeLook, ...] = ()
    newcomers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    files: Mapping[str, str] | None = None


class LakeWatches:
    """Looks at the tables of all lakes of a project that a model waits for.

    Each model has a position of its own for each table. The same look moves all of them.
    """

    def __init__(self, project: ServedProject, store: Store) -> None:
        """Create watches of all lakes.

        Args:
            project: The project.
            store: The agenda.
        """
        self._project = project
        self._store = store
        self._watches: dict[str, tuple[Catalog, TableWatch]] = {}
        self._looked: dict[str, Version] = {}  # of each lake the version whose readers have looked

    def look(self) -> Sighting:
        """Return what changed in the lakes. A lake that cannot be read is looked at later.

        Returns:
            The events, and the new positions. Models that look for the first time have no events.
        """
        version = self._project.version
        sightings: list[Sighting] = []
        for name in self._lakes(version):
            try:
                sightings.append(self._look_at(name, version))
            except PenstockError as error:
                LOG.error("lake %s cannot be looked at: %s", name, error)
        return Sighting(
            tuple(event for sighting in sightings for event in sighting.events),
            tuple(look for sighting in sightings for look in sighting.looks),
            dict(item for sighting in sightings for item in sighting.newcomers.items()),
        )

    def forget(self) -> None:
        """See again at the next look what was not recorded."""
        self._looked.clear()

    def _lakes(self, version: Version) -> list[str]:
        """Return the lakes of the project, and those that models have waited for."""
        lakes = list(version.context.settings.lakes)
        if all(self._looked.get(lake) is version for lake in lakes):
            return lakes
        positions = self._store.positions().values()
        return list(dict.fromkeys((*lakes, *(position.lake for position in positions))))

    def _look_at(self, lake: str, version: Version) -> Sighting:
        has_lake = lake in version.context.settings.lakes
        readers = version.table_readers.get(lake, frozenset()) if has_lake else frozenset()
        watch = self._watch(lake) if readers else None
        has_looked = self._looked.get(lake) is version
        if has_looked and (watch is None or not watch.has_moved()):
            return Sighting()
        positions = self._store.positions()
        before = {key: item.snapshot_id for key, item in positions.items() if item.lake == lake}
        if watch is None:  # no run has created it yet: all changes of it are to come
            sighting = Sighting(looks=(LakeLook(lake, NO_SNAPSHOT, readers),))
            is_same = before.keys() == readers
        else:
            sighting = _look_by(watch, lake, version, before)
            newest = sighting.looks[0].snapshot_id
            is_same = before == dict.fromkeys(readers, newest) and not sighting.events
        self._looked[lake] = version
        return Sighting() if is_same else sighting

    def _watch(self, lake: str) -> TableWatch | None:
        context = self._project.version.context
        catalog = context.catalog(lake)
        if catalog is None:  # no run has created it yet
            return None
        opened = self._watches.get(lake)
        if opened is None or opened[0] is not catalog:
            column = context.settings.lakes[lake].partition_column
            opened = catalog, TableWatch(catalog, lake, column)
            self._watches[lake] = opened
        return opened[1]


def _look_by(
    watch: TableWatch, lake: str, version: Version, before: Mapping[tuple[str, str], int]
) -> Sighting:
    """Return what changed after the positions of the readers of a lake.

    Args:
        watch: The watch of the lake.
        lake: Its name.
        version: The project.
        before: The positions, by reader and source.

    Returns:
        The events that some reader has not seen, and who waits only since then.
    """
    readers = version.table_readers[lake]
    since = [before[key] for key in readers if key in before]
    if not since:
        return Sighting(looks=(LakeLook(lake, watch.changes((), 0).snapshot_id, readers),))
    tables = [table for table in version.tables if table.lake == lake]
    changes = watch.changes(tables, min(since))
    events: list[TriggerEvent] = []
    newcomers: dict[str, frozenset[str]] = {}
    for event in changes.events:
        models, source = frozenset(version.readers_of(event.source)), fold(event.source)
        later = frozenset(
            model
            for model in models
            if not _comes_after(before.get((model, source)), event, changes.snapshot_id)
        )
        if later != models:
            events.append(event)
            newcomers |= {event.id: later} if later else {}
    look = LakeLook(lake, changes.snapshot_id, readers)
    return Sighting(tuple(events), (look,), newcomers)


def _comes_after(position: int | None, event: TriggerEvent, newest: int) -> bool:
    """Return whether a reader has not seen an event, by its position.

    A position after the newest snapshot is of a lake that was put back since.
    """
    if position is None:
        return False
    return position > newest or event.snapshot_id is None or position < event.snapshot_id


class FileWatches:
    """Looks at the files that models wait for, at most once in so many seconds."""

    def __init__(
        self,
        project: ServedProject,
        store: Store,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a watch of the files of a project.

        Args:
            project: The project.
            store: The agenda.
            seconds: Between two looks.
            clock: Returns seconds.
        """
        self._project = project
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._watch = FileWatch(project.version.context.settings)
        self._looked_at: float | None = None

    def decided(self, outcomes: Sequence[Outcome]) -> None:
        """Leave decisions alone: a watch listens for ends.

        Args:
            outcomes: The outcomes.
        """

    def ended(self, end: FiringEnd) -> None:
        """Look at files in the next look, if the model that has run writes files.

        Args:
            end: The end of its firing.
        """
        if end.firing.model in self._project.version.writers_of_files:
            self._looked_at = None

    def look(self) -> Sighting:
        """Return which files are new or changed.

        Returns:
            The events, and the files as they are now.
        """
        patterns = self._project.version.files
        if not patterns:
            return Sighting()
        if self._looked_at is not None and self._clock() - self._looked_at < self._seconds:
            return Sighting()
        self._looked_at = self._clock()
        listed = self._store.files()
        changes = self._watch.changes(patterns, listed)
        for pattern, problem in changes.errors.items():
            LOG.error("%s cannot be listed: %s", pattern, problem)
        if changes.fingerprints == listed:
            return Sighting(changes.events)
        return Sighting(changes.events, files=changes.fingerprints)

    def forget(self) -> None:
        """Look again at once: files are remembered when they were recorded."""
        self._looked_at = None

    def close(self) -> None:
        """Close the stores of files."""
        self._watch.close()


class MessagePump:
    """Records the messages of one source, in a thread."""

    def __init__(
        self,
        name: str,
        source: MessageSource,
        accept: Callable[[TriggerEvent], bool],
        clock: Callable[[], datetime],
        wake: Callable[[], None],
    ) -> None:
        """Create a pump that stands still.

        Args:
            name: The name of the messages that models wait for.
            source: The source.
            accept: Records an event.
            clock: Returns the time.
            wake: Is called when a message was recorded.
        """
        self._name = name
        self._source = source
        self._accept = accept
        self._clock = clock
        self._wake = wake
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-{name}", daemon=True)

    def start(self) -> None:
        """Begin to record messages."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._closed.set()
        self._source.close()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def _run(self) -> None:
        try:
            for message in self._source.messages():
                event = TriggerEvent(
                    id=f"message:{self._name}/{message.id}",
                    kind=EventKind.MESSAGE,
                    source=self._name,
                    time=self._clock(),
                    payload=message.payload,
                )
                self._record(event)
                message.acknowledge()
                self._wake()
        except PenstockError as error:
            LOG.error("messages of %s have ended: %s", self._name, error)

    def _record(self, event: TriggerEvent) -> None:
        """Record an event, until the catalog can be written or the pump ends."""
        import tenacity

        tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(PenstockError),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=_LONGEST_WAIT),
            stop=tenacity.stop_when_event_set(self._closed),
            sleep=tenacity.sleep_using_event(self._closed),
            before_sleep=self._tell_retry,
            reraise=True,
        )(self._accept, event)

    def _tell_retry(self, state: RetryCallState) -> None:
        error = None if state.outcome is None else state.outcome.exception()
        LOG.error("a message of %s is not recorded yet: %s", self._name, error)


def open_pumps(
    names: Iterable[tuple[str, str]],
    options: Mapping[str, Mapping[str, object]],
    accept: Mapping[str, Callable[[TriggerEvent], bool]],
    clock: Callable[[], datetime],
    wake: Callable[[], None],
) -> list[MessagePump]:
    """Open the sources of messages beside HTTP.

    Args:
        names: Of each source its kind and the name of its channel or topic.
        options: The options of each kind, without the channel or topic.
        accept: Records an event, by the kind of its source.
        clock: Returns the time.
        wake: Is called when a message was recorded.

    Returns:
        The pumps, which stand still.
    """
    parameters = {"kafka": "topic", "postgres": "channel"}
    pumps = []
    for kind, name in names:
        source = open_source(kind, {**options.get(kind, {}), parameters[kind]: name})
        pumps.append(MessagePump(f"{kind}:{name}", source, accept[kind], clock, wake))
    return pumps
