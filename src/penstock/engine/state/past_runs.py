"""Read what slices took in past runs, to estimate what others will take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, select

from penstock.engine.state.reading import PUBLISHED
from penstock.engine.state.tables import STEP, to_moment

_SLICES = 400  # of one table that are looked at, the last ones
_RUNS = 10


class MadeOnce(NamedTuple):
    """One time that a run made a slice. ``rows`` is None where they were not counted."""

    run_id: str
    slice: str
    began: str
    ended: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class Pace:
    """Medians of what one slice, or one unit of time, took in ``runs`` past runs."""

    seconds: float
    rows: float | None
    runs: int


def last_made(connection: Connection, target: str) -> list[MadeOnce]:
    """Return the last times that slices of a target were made."""
    known = (STEP.c.target == target, STEP.c.state.in_(PUBLISHED), STEP.c.finished_at.is_not(None))
    query = select(
        STEP.c.run_id, STEP.c.slice, STEP.c.started_at, STEP.c.finished_at, STEP.c.row_count
    )
    query = query.where(*known).order_by(STEP.c.started_at.desc()).limit(_SLICES)
    return [MadeOnce(*row) for row in connection.execute(query)]


def pace_of(made: Iterable[MadeOnce], units: Callable[[str], int]) -> Pace | None:
    """Return what a slice takes; None where none was made. ``units`` counts what the text of a
    slice stands for. Slices of one job share its time, so a run is looked at as a whole.
    """
    by_run: dict[str, list[MadeOnce]] = defaultdict(list)
    for each in made:
        by_run[each.run_id].append(each)
    runs = list(by_run.values())[:_RUNS]
    if not runs:
        return None
    seconds, rows = [], []
    for of in runs:
        number = sum(units(each.slice) for each in of) or 1
        took = to_moment(max(e.ended for e in of)) - to_moment(min(e.began for e in of))
        seconds.append(took.total_seconds() / number)
        counts = [each.rows for each in of if each.rows is not None]
        if len(counts) == len(of):
            rows.append(sum(counts) / number)
    return Pace(_median(seconds), _median(rows) if rows else None, len(runs))


def _median(values: Sequence[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    if len(values) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
