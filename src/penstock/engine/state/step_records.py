"""Records of a step as a value, which a commit writes in the transaction of its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.state.records import Publication, StepRecord
from penstock.engine.state.store import divide_step, fail, publish

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class StepRecords:
    """The outcomes of the slices of one step: ``published`` with the data, ``failed`` by their
    tests. ``base`` is the snapshot that the step read its own lake at; ``divided`` is the slice
    that these are parts of, where it was recorded as one.
    """

    published: tuple[Publication, ...]
    base: int
    failed: tuple[Publication, ...] = ()
    divided: str | None = None

    def write(self, connection: Connection, snapshot_id: int | None = None) -> None:
        """``snapshot_id`` is None where the data needed no snapshot. Raises CommitConflict."""
        if self.divided is not None:
            begun = [
                StepRecord(what.run_id, what.step, what.target, what.slice, "running", what.at)
                for what in (*self.published, *self.failed)
            ]
            divide_step(connection, begun, self.divided)
        as_of = self.base if snapshot_id is None else snapshot_id
        for what in self.published:
            made, made_in = what.made_by(snapshot_id)
            publish(connection, made_in, made, as_of=as_of)
        for what in self.failed:
            fail(connection, what)
