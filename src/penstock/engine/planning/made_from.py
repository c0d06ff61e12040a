"""Read from the catalogs what slices that are there were made from, and whether that is as it was.

A plan asks it of the slices that a run was asked for: where all of it is as it was, they are up to
date (`up_to_date`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial

from penstock.engine.planning.slice_states import KnownSlices, Recorded
from penstock.engine.state import reading
from penstock.engine.state.records import ReadRecord, SliceRecord
from penstock.engine.state.store import State
from penstock.errors import LakeError
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, minus
from penstock.model.time.slice import Slice
from penstock.model.values.strategy import strategy_named

AsAsked = Mapping[str, Sequence[Slice]]  # slices by the names of their models


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """A slice that is there, as its definition of then made it: ``definitions`` are the hashes of
    those, ``reads`` what was read; several of an interval that was made in parts. ``moved`` is the
    input that got other rows since, or of which that is not known; ``settings`` are those of Spark
    that are others now. ``rows`` and ``made_in`` are the number of its rows and the snapshot that
    made it, as results of runs have them.
    """

    definitions: frozenset[str]
    reads: tuple[ReadRecord, ...]
    moved: str | None = None
    settings: str | None = None
    rows: int | None = None
    made_in: int | None = None


def made_from(
    known: KnownSlices, asked: AsAsked, models: Sequence[Model]
) -> Mapping[str, Mapping[Slice, MadeFrom]]:
    """Return what slices were made from, by the names of models; only those that are there, and of
    which all that is recorded. Nothing of a catalog that cannot be read: a run says so.
    """
    with suppress(LakeError):
        return _made_from(known, asked, models)
    return {}


def _made_from(
    known: KnownSlices, asked: AsAsked, models: Sequence[Model]
) -> Mapping[str, Mapping[Slice, MadeFrom]]:
    recorded = known.recorded(models)
    records = {
        model.name: {
            slice_: found
            for slice_ in asked[model.name]
            if (found := tuple(_records(model, recorded[model.name], slice_)))
        }
        for model in models
    }
    reads = _reads(known, records, models)
    newest = cache(partial(_newest, known))
    return {
        model.name: {
            slice_: MadeFrom(
                frozenset(record.definition_hash for _, record in of_slice),
                tuple(reads[record.read_id or ""] for _, record in of_slice),
                _moved(recorded[model.name], of_slice, reads, newest),
                next((r.other_settings for _, r in of_slice if r.other_settings), None),
                _rows(record for _, record in of_slice),
                max((r.made_in for _, r in of_slice if r.made_in is not None), default=None),
            )
            for slice_, of_slice in records[model.name].items()
            if all(record.read_id in reads for _, record in of_slice)
        }
        for model in models
    }


def _rows(records: Iterable[SliceRecord]) -> int | None:
    """Return the rows of a slice, or of all parts of an interval; None where some are not known."""
    counts = [each.rows for each in records if strategy_named(each.strategy).counts_rows]
    known = [rows for rows in counts if rows is not None]
    return sum(known) if counts and len(known) == len(counts) else None


_Of = tuple[Slice, SliceRecord]  # a part of a slice, with its record


def _records(model: Model, recorded: Recorded, slice_: Slice) -> Iterator[_Of]:
    """Yield what a slice is made of; nothing where some of it is not there as recorded."""
    by_text = {record.slice: record for record in recorded.slices}
    if not isinstance(slice_, Interval):
        record = by_text.get(slice_.text)
        if record is None:
            return
        tried = tuple(attempt for attempt in recorded.tried if attempt.slice == slice_.text)
        state = replace(recorded, slices=(record,), tried=tried).states(model)[slice_.text]
        if state.state.has_current_definition and _is_of(record, model):
            yield slice_, record
        return
    events = [e for e in recorded.painted(model).events if e.interval.overlap(slice_) is not None]
    there = [
        e
        for e in events
        if e.state.has_current_definition and e.of in by_text and _is_of(by_text[e.of], model)
    ]
    if not minus((slice_,), tuple(e.interval for e in there)):
        yield from ((event.interval, by_text[event.of]) for event in there)


def _is_of(record: SliceRecord, model: Model) -> bool:
    """Return whether a slice was made as the model makes it, whatever its query was."""
    return record.strategy == model.strategy.name and record.keys in (None, model.keys)


def _reads(
    known: KnownSlices,
    records: Mapping[str, Mapping[Slice, Sequence[_Of]]],
    models: Sequence[Model],
) -> Mapping[str, ReadRecord]:
    ids: dict[str, list[str]] = defaultdict(list)
    for model in models:
        for of_slice in records[model.name].values():
            ids[model.target.lake] += [r.read_id for _, r in of_slice if r.read_id is not None]
    found: dict[str, ReadRecord] = {}
    for lake, of_lake in ids.items():
        catalog = known.catalogs(lake)
        if catalog is not None and of_lake:
            ask = partial(reading.reads, read_ids=of_lake)
            found |= State(catalog).read(ask, dict[str, ReadRecord]())
    return found


def _newest(known: KnownSlices, lake: str) -> int:
    catalog = known.catalogs(lake)
    return -1 if catalog is None else catalog.latest().id


def _moved(
    recorded: Recorded,
    of_slice: Sequence[_Of],
    reads: Mapping[str, ReadRecord],
    newest: Callable[[str], int],
) -> str | None:
    for part, record in of_slice:
        lakes = reads[record.read_id or ""].lakes
        back = next((lake for lake, at in lakes.items() if at > newest(lake)), None)
        if back is not None:  # an earlier state of it was restored
            return f"lake {back} has not the snapshot any more at which it was read"
        why = recorded.inputs.moved(part, lakes)
        if why is not None:
            return why
    return None
