"""Detect changes of lakes and files after the positions in the agenda, and receive messages."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from penstock.errors import PenstockError
from penstock.model.script.file_uris import may_be
from penstock.scheduler.values import EventKind, TriggerEvent, make_message_id
from penstock.server.agenda_rows import NO_SNAPSHOT, LakePositions, Position
from penstock.server.file_watch import FileWatch
from penstock.server.sources import MessageSource, open_source
from penstock.server.table_watch import TableWatch
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from penstock.lakes.catalog.catalog import Catalog
    from penstock.scheduler.values import Firing, Outcome
    from penstock.server.firing_runner import FiringEnd
    from penstock.server.served_project import ServedProject, Version

LOG = logging.getLogger("penstock.serve")
_MAX_RETRY_WAIT = 10.0  # the maximum seconds between two attempts to record a message


class Store(Protocol):
    """The part of the agenda that watches use."""

    def positions(self) -> Mapping[tuple[str, str], Position]:
        """Return all positions.

        Returns:
            The positions, by reader and source.
        """
        ...

    def files(self) -> Mapping[str, str]:
        """Return the files of the last listing.

        Returns:
            Their fingerprints.
        """
        ...

    def accept(self, event: TriggerEvent) -> bool:
        """Record an event.

        Args:
            event: The event.

        Returns:
            False if an event with this id is already recorded.
        """
        ...


@dataclass(frozen=True, slots=True)
class Detection:
    """The result of one call of `detect`: events, and the positions to record with them.

    Attributes:
        events: The events.
        positions: The new positions of the readers of lakes.
        excluded: The models that an event does not trigger, by event id. They subscribed later.
        files: The fingerprints of the files; None if nothing changed.
    """

    events: tuple[TriggerEvent, ...] = ()
    positions: tuple[LakePositions, ...] = ()
    excluded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    files: Mapping[str, str] | None = None


class LakeWatches:
    """The watches of all lakes with tables that trigger a model.

    Each model has a position for each table. A detection moves all positions of a lake.
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
        self._detected: dict[str, Version] = {}  # the version at the last detection, by lake

    def detect(self) -> Detection:
        """Detect changes in the lakes. If a lake cannot be read, the next call tries it again.

        Returns:
            The events, and the new positions. A new reader of a table gets no events.
        """
        version = self._project.version
        detections: list[Detection] = []
        for name in self._lakes(version):
            try:
                detections.append(self._detect_in_lake(name, version))
            except PenstockError as error:
                LOG.error("lake %s cannot be read: %s", name, error)
        return Detection(
            tuple(event for detection in detections for event in detection.events),
            tuple(position for detection in detections for position in detection.positions),
            dict(item for detection in detections for item in detection.excluded.items()),
        )

    def reset(self) -> None:
        """Detect again, with the next call of `detect`, the events that were not recorded."""
        self._detected.clear()

    def _lakes(self, version: Version) -> list[str]:
        """Return the lakes of the project, and the lakes of recorded positions."""
        lakes = list(version.context.settings.lakes)
        if all(self._detected.get(lake) is version for lake in lakes):
            return lakes
        positions = self._store.positions().values()
        return list(dict.fromkeys((*lakes, *(position.lake for position in positions))))

    def _detect_in_lake(self, lake: str, version: Version) -> Detection:
        has_lake = lake in version.context.settings.lakes
        readers = version.table_readers.get(lake, frozenset()) if has_lake else frozenset()
        watch = self._watch(lake) if readers else None
        is_current = self._detected.get(lake) is version
        if is_current and (watch is None or not watch.has_moved()):
            return Detection()
        positions = self._store.positions()
        before = {key: item.snapshot_id for key, item in positions.items() if item.lake == lake}
        if watch is None:  # no run has created the lake yet: all its changes are in the future
            detection = Detection(positions=(LakePositions(lake, NO_SNAPSHOT, readers),))
            is_same = before.keys() == readers
        else:
            detection = _detect_changes(watch, lake, version, before)
            newest = detection.positions[0].snapshot_id
            is_same = before == dict.fromkeys(readers, newest) and not detection.events
        self._detected[lake] = version
        return Detection() if is_same else detection

    def _watch(self, lake: str) -> TableWatch | None:
        context = self._project.version.context
        catalog = context.catalog(lake)
        if catalog is None:  # no run has created the lake yet
            return None
        opened = self._watches.get(lake)
        if opened is None or opened[0] is not catalog:
            column = context.settings.lakes[lake].partition_column
            opened = catalog, TableWatch(catalog, lake, column)
            self._watches[lake] = opened
        return opened[1]


def _detect_changes(
    watch: TableWatch, lake: str, version: Version, before: Mapping[tuple[str, str], int]
) -> Detection:
    """Return the changes after the positions of the readers of a lake.

    Args:
        watch: The watch of the lake.
        lake: The name of the lake.
        version: The version of the project.
        before: The positions, by reader and source.

    Returns:
        The events that are new to a reader, and the new position.
    """
    readers = version.table_readers[lake]
    since = [before[key] for key in readers if key in before]
    if not since:
        newest = watch.changes((), 0).snapshot_id
        return Detection(positions=(LakePositions(lake, newest, readers),))
    tables = [table for table in version.tables if table.lake == lake]
    changes = watch.changes(tables, min(since))
    events: list[TriggerEvent] = []
    excluded: dict[str, frozenset[str]] = {}
    for event in changes.events:
        models, source = frozenset(version.readers_of(event.source)), fold(event.source)
        later = frozenset(
            model
            for model in models
            if not _comes_after(before.get((model, source)), event, changes.snapshot_id)
        )
        if later != models:
            events.append(event)
            excluded |= {event.id: later} if later else {}
    moved = LakePositions(lake, changes.snapshot_id, readers)
    return Detection(tuple(events), (moved,), excluded)


def _comes_after(position: int | None, event: TriggerEvent, newest: int) -> bool:
    """Return whether an event is after the position of a reader.

    A position after the newest snapshot means that the lake was restored to an older state.
    """
    if position is None:
        return False
    return position > newest or event.snapshot_id is None or position < event.snapshot_id


class FileWatches:
    """The watch of the files that trigger models. It lists files at most once per interval."""

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
            seconds: The minimum seconds between two listings.
            clock: Returns monotonic seconds.
        """
        self._project = project
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._watch = FileWatch(project.version.context.settings)
        self._listed_at: float | None = None
        self._writers: list[Firing] = []  # firings that ended since the last listing
        self._listed_writers: list[Firing] = []  # firings that ended before it

    def handle_decision(self, outcomes: Sequence[Outcome]) -> None:
        """Ignore outcomes. This listener needs only ends of firings.

        Args:
            outcomes: The outcomes.
        """

    def handle_end(self, end: FiringEnd) -> None:
        """List files with the next call of `detect`, if the model of a firing writes files.

        Args:
            end: The end of the firing.
        """
        if end.firing.model in self._project.version.writers_of_files:
            self._writers.append(end.firing)
            self._listed_at = None

    def detect(self) -> Detection:
        """Detect new and changed files.

        Returns:
            The events, and the current fingerprints.
        """
        patterns = self._project.version.files
        if not patterns:
            return Detection()
        if self._listed_at is not None and self._clock() - self._listed_at < self._seconds:
            return Detection()
        self._listed_at = self._clock()
        self._listed_writers, self._writers = self._writers, []
        listed = self._store.files()
        changes = self._watch.changes(patterns, listed)
        for pattern, problem in changes.errors.items():
            LOG.error("%s cannot be listed: %s", pattern, problem)
        events = tuple(map(self._continue_chain, changes.events))
        if changes.fingerprints == listed:
            return Detection(events)
        return Detection(events, files=changes.fingerprints)

    def _continue_chain(self, event: TriggerEvent) -> TriggerEvent:
        """Return the event of a file with the chain of the firing that wrote the file.

        Another program may have written the file meanwhile. So the chain has no models: an event
        that is ignored because a model is in its chain would be lost.
        """
        models = self._project.version.context.by_name
        writers = [
            firing
            for firing in self._listed_writers
            if firing.model in models
            and any(
                may_be(pattern, event.source, directories=True)
                for pattern in models[firing.model].files_written
            )
        ]
        if len(writers) != 1:
            return event
        return replace(event, fire_time=writers[0].fire_time, depth=writers[0].depth + 1)

    def reset(self) -> None:
        """List files again with the next call of `detect`."""
        self._writers = [*self._listed_writers, *self._writers]
        self._listed_at = None

    def close(self) -> None:
        """Close the stores of files."""
        self._watch.close()


class MessagePump:
    """A thread that records the messages of one source."""

    def __init__(
        self,
        name: str,
        source: MessageSource,
        accept: Callable[[TriggerEvent], bool],
        clock: Callable[[], datetime],
        wake: Callable[[], None],
    ) -> None:
        """Create a pump. `start` starts its thread.

        Args:
            name: The name of the messages in triggers of models.
            source: The source.
            accept: Records an event.
            clock: Returns the current time.
            wake: Called after a message was recorded.
        """
        self._name = name
        self._source = source
        self._accept = accept
        self._clock = clock
        self._wake = wake
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-{name}", daemon=True)

    def start(self) -> None:
        """Start to record messages."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the end of the thread."""
        self._closed.set()
        self._source.close()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def _run(self) -> None:
        try:
            for message in self._source.messages():
                event = TriggerEvent(
                    id=make_message_id(self._name, message.id),
                    kind=EventKind.MESSAGE,
                    source=self._name,
                    time=self._clock(),
                    payload=message.payload,
                )
                self._record(event)
                message.acknowledge()
                self._wake()
        except PenstockError as error:
            LOG.error("%s sends no more messages: %s", self._name, error)

    def _record(self, event: TriggerEvent) -> None:
        """Record an event. Retry until the catalog can be written or the pump is stopped."""
        import tenacity

        tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(PenstockError),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=_MAX_RETRY_WAIT),
            stop=tenacity.stop_when_event_set(self._closed),
            sleep=tenacity.sleep_using_event(self._closed),
            before_sleep=self._log_retry,
            reraise=True,
        )(self._accept, event)

    def _log_retry(self, state: RetryCallState) -> None:
        error = None if state.outcome is None else state.outcome.exception()
        LOG.error("a message of %s is not recorded yet: %s", self._name, error)


def open_pumps(
    names: Iterable[tuple[str, str]],
    options: Mapping[str, Mapping[str, object]],
    accept: Mapping[str, Callable[[TriggerEvent], bool]],
    clock: Callable[[], datetime],
    wake: Callable[[], None],
) -> list[MessagePump]:
    """Open the message sources other than HTTP.

    Args:
        names: The kind, and the name of the channel or topic, of each source.
        options: The options of each kind, without the channel or topic.
        accept: The function that records an event, by kind of source.
        clock: Returns the current time.
        wake: Called after a message was recorded.

    Returns:
        The pumps. They are not started.
    """
    parameters = {"kafka": "topic", "postgres": "channel"}
    pumps = []
    for kind, name in names:
        source = open_source(kind, {**options.get(kind, {}), parameters[kind]: name})
        pumps.append(MessagePump(f"{kind}:{name}", source, accept[kind], clock, wake))
    return pumps
