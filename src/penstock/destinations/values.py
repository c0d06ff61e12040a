"""Values that pass between the engine and a destination.

They are the lake's, which is of use without an engine. Other kinds of destinations make them too.
Each is loaded when it is imported from here: those of writing bring all of that with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.lakes.candidate.state import Staged
    from penstock.lakes.catalog.snapshots.written import Written
    from penstock.lakes.format.files import Table
    from penstock.lakes.format.schema import TableSchema
    from penstock.lakes.reading.feed import FinalRows
    from penstock.lakes.reading.scan import Rows
    from penstock.lakes.rows.slices import Bound, Ranges
    from penstock.lakes.rows.spark_finder import AddressedRows
    from penstock.lakes.snapshot import At, Snapshot

_HOMES = {
    "Staged": "candidate.state",
    "Written": "catalog.snapshots.written",
    "Table": "format.files",
    "TableSchema": "format.schema",
    "FinalRows": "reading.feed",
    "Rows": "reading.scan",
    "Bound": "rows.slices",
    "Ranges": "rows.slices",
    "AddressedRows": "rows.spark_finder",
    "At": "snapshot",
    "Snapshot": "snapshot",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"penstock.lakes.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "AddressedRows", "At", "Bound", "FinalRows", "Ranges", "Rows", "Snapshot", "Staged", "Table",
    "TableSchema", "Written",
]  # fmt: skip
