"""The slices of a model as a calendar of one sign each, or as ranges of one state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.results import SliceStatus

# One sign a state; what has none is shown by OTHER.
SIGNS = {
    "materialized": "#",
    "missing": ".",
    "failed": "F",
    "skipped": "k",
    "waiting": "w",
    "behind": "b",
    "stale": "s",
    "unfinished": "u",
    "running": "r",
    "changed outside": "c",
}
OTHER = "?"
# A line of the calendar, and a place in it: a year of months, a month of days, a day of hours.
_FORMS = (
    (re.compile(r"(\d{4})-(\d\d)"), range(1, 13)),
    (re.compile(r"(\d{4}-\d\d)-(\d\d)"), range(1, 32)),
    (re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d)(?::00)?"), range(24)),
)


def grid(slices: Sequence[SliceStatus]) -> Iterator[str]:
    """Yield the lines of a calendar where all slices are months, days or hours, else ranges, and
    then the signs that were used with how often. Lines have at most 42 characters.
    """
    for form, places in _FORMS:
        found = [form.fullmatch(each.slice or "") for each in slices]
        if slices and all(found):
            signs = {
                (match[1], int(match[2])): SIGNS.get(each.state, OTHER)
                for match, each in zip(found, slices, strict=True)
                if match is not None
            }
            yield from _calendar(signs, places)
            counts = Counter(each.state for each in slices).most_common()
            yield from (f"{SIGNS.get(state, OTHER)} {state}: {count:,}" for state, count in counts)
            return
    yield from _ranges(slices)


def _calendar(signs: dict[tuple[str, int], str], places: range) -> Iterator[str]:
    lines = sorted({line for line, _ in signs})
    width = len(lines[0])
    marks = "".join(str(place % 10) for place in places)
    yield f"{'':{width}} {marks}"
    for line in lines:
        row = "".join(signs.get((line, place), " ") for place in places)
        yield f"{line} {row}".rstrip()


def _ranges(slices: Sequence[SliceStatus]) -> Iterator[str]:
    """Slices of one state that follow each other, by their first and last."""
    for state, run in groupby(slices, key=lambda each: each.state):
        own = list(run)
        number = sum(each.intervals for each in own)
        first, last = (each.slice or "whole table" for each in (own[0], own[-1]))
        named = first if len(own) == 1 else f"{first} to {last}"
        yield f"{named}: {number:,} {state}" if number > 1 else f"{named}: {state}"
