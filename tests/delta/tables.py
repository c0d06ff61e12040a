"""Delta tables without Spark: logs written as lines, and values that tests compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.delta.actions import Add, Metadata
from penstock.delta.commit import Proposal, commit
from penstock.delta.log import LogState, load
from penstock.sql.text import Predicate

FIELDS = [("id", "long"), ("day", "date"), ("name", "string"), ("price", "decimal(10,2)")]


def schema_text(fields: Sequence[tuple[str, Any]] = FIELDS, first: Any = None) -> str:
    """The JSON of columns; ``first`` is the metadata of the first."""
    made = [
        {"name": name, "type": kind, "nullable": True, "metadata": (first or {}) if not at else {}}
        for at, (name, kind) in enumerate(fields)
    ]
    return json.dumps({"type": "struct", "fields": made})


def metadata(**changes: Any) -> Metadata:
    options = tuple(changes.pop("options", {}).items())
    known = {"id": "t1", "schema_text": schema_text(), "configuration": options, "created": 1}
    return Metadata(**{**known, **changes})


def file(path: str, *, rows: int = 1, low: int = 0, high: int = 9, **values: str | None) -> Add:
    """A file whose column ``id`` is from ``low`` to ``high``."""
    bounds = {"minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
    stats = json.dumps({"numRecords": rows, **bounds})
    return Add(path, tuple(values.items()), 100, 1, stats)


def make(uri: Path | str, *files: Add, **changes: Any) -> LogState:
    """Make a table of these files."""
    return commit(str(uri), "shop.orders", Proposal(None, metadata(**changes), added=files))


def land(uri: Path | str, base: LogState | None, **changes: Any) -> LogState:
    """Commit on top of ``base``, or of the newest version."""
    state = base or load(str(uri))
    assert state is not None
    known = {"metadata": state.metadata, **changes}
    return commit(str(uri), "shop.orders", Proposal(state, **known))


def paths(state: LogState | None) -> list[str]:
    assert state is not None
    return sorted(file.path for file in state.by_key.values())


EVERYTHING = Predicate(None)
