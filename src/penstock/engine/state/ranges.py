"""Time ranges of targets that are published: kept as ranges, not as a row for each interval.

Ranges of a target never overlap. Publishing one takes its time away from those that it overlaps,
which are trimmed or split; how many rows such a rest has is not known any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from penstock.engine.state.tables import RANGE, to_moment, to_text
from penstock.model.interval import Interval, Intervals, minus, union


@dataclass(frozen=True, slots=True)
class RangeRecord:
    """A stretch of time of a target, as ``run_id`` published it in ``snapshot_id``."""

    target: str
    interval: Interval
    run_id: str
    snapshot_id: int
    rows: int | None
    definition_hash: str
    published_at: datetime


def publish_range(connection: Connection, what: RangeRecord) -> None:
    """Record a range in the transaction of its data, in place of what it overlaps."""
    start, end = to_text(what.interval.start), to_text(what.interval.end)
    overlapping = (RANGE.c.target == what.target, RANGE.c.start_at < end, RANGE.c.end_at > start)
    before = [_record(row) for row in connection.execute(select(RANGE).where(*overlapping))]
    connection.execute(delete(RANGE).where(*overlapping))
    rests = [
        replace(record, interval=rest, rows=None)
        for record in before
        for rest in minus([record.interval], [what.interval])
    ]
    connection.execute(insert(RANGE), [_row(record) for record in (*rests, what)])


def forget_ranges(connection: Connection, target: str, interval: Interval | None = None) -> None:
    """The time of a target, or all of it, is not published any more."""
    if interval is None:
        connection.execute(delete(RANGE).where(RANGE.c.target == target))
        return
    for record in ranges(connection, target):
        if record.interval.overlap(interval) is None:
            continue
        mine = (RANGE.c.target == target, RANGE.c.start_at == to_text(record.interval.start))
        connection.execute(delete(RANGE).where(*mine))
        rests = minus([record.interval], [interval])
        if rests:
            rows = [_row(replace(record, interval=rest, rows=None)) for rest in rests]
            connection.execute(insert(RANGE), rows)


def ranges(connection: Connection, target: str) -> list[RangeRecord]:
    """The ranges of a target in the order of time."""
    query = select(RANGE).where(RANGE.c.target == target).order_by(RANGE.c.start_at)
    return [_record(row) for row in connection.execute(query)]


def made(records: Iterable[RangeRecord], definition_hash: str | None = None) -> Intervals:
    """The time that is published, or that was by this definition."""
    return union(
        record.interval
        for record in records
        if definition_hash is None or record.definition_hash == definition_hash
    )


def _row(record: RangeRecord) -> dict[str, Any]:
    return {
        "target": record.target,
        "start_at": to_text(record.interval.start),
        "end_at": to_text(record.interval.end),
        "run_id": record.run_id,
        "snapshot_id": record.snapshot_id,
        "row_count": record.rows,
        "definition_hash": record.definition_hash,
        "published_at": to_text(record.published_at),
    }


def _record(row: Row[Any]) -> RangeRecord:
    return RangeRecord(
        target=row.target,
        interval=Interval.parse(f"{row.start_at}/{row.end_at}"),
        run_id=row.run_id,
        snapshot_id=row.snapshot_id,
        rows=row.row_count,
        definition_hash=row.definition_hash,
        published_at=to_moment(row.published_at),
    )
