"""Merged files: what a catalog says of the snapshots whose rows one file holds.

1.0 has the last of them (``partial_max``). 0.3 has text in ``partial_file_info``: the same as
``partial_max:17``, or pairs of a snapshot and the rows up to it, as in ``15:3|16:6|17:9``, one for
each file that was merged.
"""

from __future__ import annotations

import re
from itertools import pairwise

from penstock.errors import CatalogCorrupt
from penstock.lake.catalog.rows import Record
from penstock.lake.files import Partial

_LAST = re.compile(r"partial_max:(\d+)")
_COUNTS = re.compile(r"\d+:\d+(\|\d+:\d+)*")


def partial_of(row: Record) -> Partial | None:
    """Of a row with ``data_file_id``, ``partial_max`` and ``partial_file_info``.

    Raises CatalogCorrupt for a text that is neither.
    """
    if row.partial_max is not None:
        return Partial(row.partial_max)
    text = row.partial_file_info
    if not text:
        return None
    found = _LAST.fullmatch(text)
    if found is not None:
        return Partial(int(found[1]))
    counts = _counts(text)
    if not counts or any(before > after for (_, before), (_, after) in pairwise(counts)):
        raise CatalogCorrupt(
            f"data file {row.data_file_id} is merged of {text!r}, which is not in the format",
            hint="restore the catalog from a backup",
            data={"data_file_id": row.data_file_id},
        )
    return Partial(max(snapshot for snapshot, _ in counts), counts)


def _counts(text: str) -> tuple[tuple[int, int], ...]:
    if _COUNTS.fullmatch(text) is None:
        return ()
    pairs = (pair.split(":") for pair in text.split("|"))
    return tuple((int(snapshot), int(rows)) for snapshot, rows in pairs)
