"""What a commit requires of the records of slices: that they are still those that were read.

Checked in the catalog transaction of the data, under the lock that all writers of records take.
Rows of an append, and how far a step has read its input, follow from the records that it read: with
others they would be wrong, and no conflict of data files would say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from penstock.engine.state.records import SliceRecord
from penstock.engine.state.tables import SLICE, to_text
from penstock.errors import CommitConflict
from penstock.model.time.interval import Interval, interval_of
from penstock.model.time.slice import shown

if TYPE_CHECKING:
    from sqlalchemy import Connection

_Identity = tuple[str, str]  # the run that recorded a slice, and when


@dataclass(frozen=True, slots=True)
class Requirement:
    """``records`` of slices of a target, by their texts, as they were read: all that overlap those
    to be published, ``slices``.
    """

    target: str
    slices: tuple[str, ...]
    records: Mapping[str, _Identity]

    @classmethod
    def of(cls, target: str, slices: Iterable[str], records: Sequence[SliceRecord]) -> Requirement:
        texts = tuple(slices)
        known = {each.slice: (each.run_id, to_text(each.published_at)) for each in records}
        return cls(target, texts, dict(_overlapping(known, texts)))

    def check(self, connection: Connection) -> None:
        """Raise CommitConflict where another run has recorded any of the slices since."""
        query = select(SLICE.c.slice, SLICE.c.run_id, SLICE.c.published_at)
        query = query.where(SLICE.c.target == self.target)
        if not any(interval_of(text) for text in self.slices):
            query = query.where(SLICE.c.slice.in_(self.slices))
        rows = {value: (run_id, at) for value, run_id, at in connection.execute(query)}
        now = dict(_overlapping(rows, self.slices))
        if now == self.records:
            return
        differ = [value for value, own in now.items() if self.records.get(value) != own]
        if differ:
            what = f"run {now[differ[0]][0]} has published {_said(differ)} of {self.target}"
        else:
            what = f"{_said(list(self.records))} of {self.target} was dropped"
        raise CommitConflict(
            f"{what} since it was read",
            hint="nothing was changed; run it again on the tables as they are now",
            data={"table": self.target, "slices": tuple(differ), "what": what},
        )


def _said(texts: Sequence[str]) -> str:
    first = shown(texts[0]) or "all"
    return first if len(texts) == 1 else f"{first} and {len(texts) - 1} more"


def _overlapping(
    records: Mapping[str, _Identity], slices: Sequence[str]
) -> Iterator[tuple[str, _Identity]]:
    wanted = frozenset(slices)
    spans = [each for text in slices if (each := interval_of(text)) is not None]
    for text, own in records.items():
        if text in wanted or (spans and _meets(interval_of(text), spans)):
            yield text, own


def _meets(interval: Interval | None, spans: Sequence[Interval]) -> bool:
    return interval is not None and any(interval.overlap(each) for each in spans)
