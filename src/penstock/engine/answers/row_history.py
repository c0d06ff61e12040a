"""Tell the versions of a row from the changes of its table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.engine.answers.comparing import DELETED, INSERTED, UPDATED
from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from penstock.engine.results import SnapshotInfo

Row = Mapping[str, Any]
EXISTING = "existing"


class Image(NamedTuple):
    """A row that came or went in a snapshot."""

    snapshot: int
    came: bool
    row: Row


@dataclass(frozen=True, slots=True)
class RowVersion:
    """A version of a row: since which snapshot it is so, by which run of which model.

    ``change`` is ``inserted``, ``updated``, ``deleted``, or ``existing`` of one that was there in
    the first snapshot that has not expired; ``row`` of a deleted one is what it was.
    ``changed`` are columns that an update changed. ``time`` is None where the snapshot has expired,
    ``run`` and ``model`` are where no run made it; ``author`` and ``message`` are the snapshot's.
    """

    snapshot: int
    time: datetime | None
    change: str
    row: Row
    changed: tuple[str, ...] = ()
    run: str | None = None
    model: str | None = None
    author: str | None = None
    message: str | None = None


def versions_of(
    images: Iterable[Image],
    snapshots: Mapping[int, SnapshotInfo],
    makers: Mapping[int, tuple[str, str]],
    existing: Sequence[Row] = (),
) -> tuple[RowVersion, ...]:
    """The versions in order. ``makers`` are runs and models by the snapshots that they made.

    A row that was written again as it was has no new version. ``existing`` are the rows of the
    first snapshot: those that did not come in it are of a time that is not known any more.
    """
    by_snapshot: dict[int, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for image in images:
        by_snapshot[image.snapshot][image.came].append(image.row)
    first = min(snapshots, default=0)
    came = list(by_snapshot[first][True]) if first in by_snapshot else []
    found = []
    for row in existing:
        if row in came:
            came.remove(row)
        else:
            found.append(RowVersion(first, snapshots[first].time, EXISTING, row))
    for snapshot, (gone, come) in sorted(by_snapshot.items()):
        info = snapshots.get(snapshot)
        run, model = makers.get(snapshot, (None, None))
        for change, row, changed in _changes(gone, come):
            found.append(
                RowVersion(
                    snapshot,
                    None if info is None else info.time,
                    change,
                    row,
                    changed,
                    run,
                    model,
                    None if info is None else info.author,
                    None if info is None else info.message,
                )
            )
    return tuple(found)


def _changes(
    gone: Sequence[Row], come: Sequence[Row]
) -> Iterator[tuple[str, Row, tuple[str, ...]]]:
    """Yield what became of rows in one snapshot, but for those that stay equal."""
    old, new = list(gone), []
    for row in come:
        if row in old:
            old.remove(row)
        else:
            new.append(row)
    for before, after in zip_longest(old, new):
        if after is None:
            yield DELETED, before, ()
        elif before is None:
            yield INSERTED, after, ()
        else:
            yield UPDATED, after, tuple(n for n in after if before.get(n) != after[n])


def read_key(text: str | Mapping[str, Any]) -> dict[str, Any]:
    """The values by columns of ``id=7,day=2026-01-01``. Raises ArgumentError."""
    if not isinstance(text, str):
        return dict(text)
    found = {}
    for part in text.split(","):
        name, mark, value = part.partition("=")
        if not mark or not name.strip():
            raise ArgumentError(
                f"--key takes column=value, not {part!r}", hint="for example: --key id=7,region=eu"
            )
        found[name.strip()] = value
    return found
