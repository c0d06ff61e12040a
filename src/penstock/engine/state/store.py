"""The state of one lake, over its catalog's own connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from penstock.engine.state import reading, writing
from penstock.engine.state.migrations.apply import migrate, version_of
from penstock.engine.state.records import Publication, RunRecord, SliceRecord, StepRecord, is_gone

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.catalog.catalog import Catalog

T = TypeVar("T")


class State:
    """Runs, slices, checks and schema versions of the tables of one lake."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def begin_run(self, run: RunRecord) -> list[str]:
        """Record that a run starts; returns the ids of earlier runs found dead."""
        with self._catalog.writing() as connection:
            migrate(connection)
            dead = writing.abandon_dead_runs(connection, is_gone, run.started_at)
            writing.insert_run(connection, run)
        return dead

    def end_run(self, run_id: str, state: str) -> None:
        with self._catalog.writing() as connection:
            writing.finish_run(connection, run_id, state, now())

    def begin_step(self, step: StepRecord) -> None:
        with self._catalog.writing() as connection:
            writing.start_step(connection, step)

    def end_step(self, key: tuple[str, str, str], state: str, reason: str | None) -> None:
        """A step ends without a publication. ``key``: run id, step, slice."""
        with self._catalog.writing() as connection:
            writing.end_step(connection, key, state, now(), reason=reason)

    def fail_tests(self, what: Publication) -> None:
        """A step ends because its tests failed: their results are kept, the slice is not."""
        with self._catalog.writing() as connection:
            writing.insert_checks(connection, what)
            key = (what.run_id, what.step, what.slice)
            writing.end_step(connection, key, "failed", what.at, reason=what.reason)

    def confirm(
        self, what: Publication, snapshot_id: int | None, *, as_of: int | None = None
    ) -> None:
        """Record a slice whose data needs no new snapshot; see `writing.publish`."""
        with self._catalog.writing() as connection:
            writing.publish(connection, snapshot_id, what, as_of=as_of)

    def prepare(self) -> None:
        """Make the tables what this code expects, before anything but a run writes to them."""
        with self._catalog.writing() as connection:
            migrate(connection)

    def forget(self, target: str, value: str | None) -> None:
        """Forget a slice, or all of a target, of which the catalog has nothing."""
        with self._catalog.writing() as connection:
            writing.forget(connection, target, value, now())

    def slices(self, target: str, *, unless: str | None = None) -> list[SliceRecord]:
        """All slices of a target, or those that are not known to be of this ``slicing``."""
        return self.read(lambda one: reading.slices(one, target, unless=unless), [])

    def slice(self, target: str, value: str) -> SliceRecord | None:
        return self.read(lambda connection: reading.slice_(connection, target, value), None)

    def run(self, run_id: str) -> RunRecord | None:
        return self.read(lambda connection: reading.run(connection, run_id), None)

    def read(self, ask: Callable[[Connection], T], otherwise: T) -> T:
        """Ask over one connection; ``otherwise`` when no run has made the tables yet."""
        with self.reading() as connection:
            return otherwise if connection is None else ask(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """One consistent connection; None when no run has made the tables yet."""
        with self._catalog.reading() as connection:
            yield connection if find_tables(connection) else None


def find_tables(connection: Connection) -> bool:
    """Whether a run has made the tables of the state; what `reading` has reads them by version."""
    version = version_of(connection)
    connection.execution_options(**{reading.VERSION: version})
    return bool(version)


def now() -> datetime:
    return datetime.now(UTC)
