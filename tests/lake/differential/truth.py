"""What a change feed must say, from the states that the table had when each was the latest.

DuckDB's own feed is not always that: in 1.5.5 a delete of a row of a merged file counts for the
snapshot in which the row was inserted, and may fall outside the range that was asked for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from tests.lake.differential import canonical
from tests.lake.differential.record import Reading

_GONE = {"delete": "insert", "update_preimage": "update_postimage"}


def is_true(
    reading: Reading, feed: Sequence[str], moments: Mapping[tuple[str, int], pa.Table]
) -> bool | None:
    """Whether ``feed`` (texts of rows) leads from each state to the next; ``None``: unknown.

    Unknown where a state was not seen, or had other columns than the last one.
    """
    assert reading.first is not None
    known = sorted(version for name, version in moments if name == reading.name)
    before, changes = Counter[str](), _by_snapshot(feed)
    columns: list[str] | None = None
    earlier = [version for version in known if version < reading.first]
    if earlier:
        before, columns = _state(moments[reading.name, earlier[-1]])
    versions = range(reading.first, reading.version + 1)
    if not set(changes) <= set(versions):
        return False
    for version in versions:
        if (reading.name, version) not in moments:
            return None
        after, found = _state(moments[reading.name, version])
        if columns not in (None, found):
            return None
        columns = found
        gone, come = changes.get(version, (Counter(), Counter()))
        # An update to the values that a row had is one too, and no difference.
        if (gone - come, come - gone) != (before - after, after - before):
            return False
        before = after
    return _paired(feed)


def _state(table: pa.Table) -> tuple[Counter[str], list[str]]:
    kinds = [f"{field.name} {canonical.arrow_type(field.type)}" for field in table.schema]
    return Counter(canonical.of_arrow(table)), kinds


def _by_snapshot(feed: Sequence[str]) -> dict[int, tuple[Counter[str], Counter[str]]]:
    found: dict[int, tuple[Counter[str], Counter[str]]] = {}
    for text in feed:
        version, row_id, kind, *values = json.loads(text)
        pair = found.setdefault(int(version), (Counter(), Counter()))
        pair[0 if kind in _GONE else 1][json.dumps([row_id, *values])] += 1
    return found


def _paired(feed: Sequence[str]) -> bool:
    """A row that went and came in one snapshot was updated, any other was not."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for text in feed:
        version, row_id, kind, *_ = json.loads(text)
        kinds.setdefault((version, row_id), set()).add(kind)
    update = {"update_preimage", "update_postimage"}
    return all(
        found == update or (len(found) == 1 and not found & update) for found in kinds.values()
    )
