"""Tell who has read a state of a table that a rollback takes back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.state import reading
from penstock.engine.state.store import State
from penstock.model.time.slice import shown
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.destinations.catalog import Catalog
    from penstock.engine.state.records import ReadRecord
    from penstock.model.definition.model import Model
    from penstock.model.values.asset import TableName


@dataclass(frozen=True, slots=True)
class Reader:
    """A model whose ``slices`` were made from a state that is taken back, and so are behind; there
    are none of one that is whole. ``reason`` is why it is not rolled back as well, where that was
    asked for.
    """

    model: str
    table: str
    slices: tuple[str, ...]
    reason: str | None = None


def read_later(model: Model, catalog: Catalog, table: TableName, since: int) -> Reader | None:
    """The slices of a model that read a table after a snapshot; None where there are none."""
    ask = partial(_slices, target=model.target.qualified, table=table, since=since)
    found = State(catalog).read(ask, list[str]())
    if not found:
        return None
    return Reader(model.name, str(model.target), tuple(filter(None, map(shown, found))))


def _slices(connection: Connection, target: str, table: TableName, since: int) -> list[str]:
    records = reading.slices(connection, target)
    reads = reading.reads_of(connection, [target])
    later = {
        id_
        for id_, read in reads.items()
        if any(snapshot > since for snapshot in _snapshots(read, table))
    }
    return [each.slice for each in records if each.read_id in later]


def _snapshots(read: ReadRecord, table: TableName) -> Iterator[int]:
    """The snapshots at which a read looked at a table."""
    for each in read.inputs:
        if each.kind == "table" and fold(each.name) == fold(table.full):
            at = each.snapshot if each.snapshot is not None else read.lakes.get(table.lake)
            if at is not None:
                yield at
