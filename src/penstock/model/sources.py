"""What a query reads: managed tables, perhaps of an earlier snapshot, and files."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.errors import Location
from penstock.model.asset import TableName
from penstock.model.constants import Constant


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """``AT (VERSION => n)`` and its like; ``kind`` is ``version`` or ``timestamp``."""

    kind: str
    value: Constant


@dataclass(frozen=True, slots=True)
class TableSource:
    """A managed table in a query. Equal when table and time travel are."""

    table: TableName
    at: TimeTravel | None = None
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FileSource:
    """``read_csv``, ``read_json`` or ``read_parquet`` with constant arguments.

    ``path`` evaluates to a path or a list of paths; ``options`` are in the order written.
    """

    function: str
    path: Constant
    options: tuple[tuple[str, Constant], ...] = ()
    location: Location | None = field(default=None, compare=False)


QuerySource = TableSource | FileSource
