"""Values that pass between the engine and a destination.

They are the lake's, which is of use without an engine. Other kinds of destinations make them too.
"""

from __future__ import annotations

from penstock.lake.candidate.state import Staged
from penstock.lake.catalog.snapshots.written import Written
from penstock.lake.format.files import Table
from penstock.lake.format.schema import TableSchema
from penstock.lake.reading.feed import FinalRows
from penstock.lake.reading.scan import Rows
from penstock.lake.rows.slices import Bound, Ranges
from penstock.lake.rows.spark_finder import AddressedRows
from penstock.lake.snapshot import At, Snapshot

__all__ = [
    "AddressedRows", "At", "Bound", "FinalRows", "Ranges", "Rows", "Snapshot", "Staged", "Table",
    "TableSchema", "Written",
]  # fmt: skip
