"""What a query reads: managed tables, perhaps of an earlier snapshot, table functions, files."""

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


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A table function of a lake (`penstock.sql.lake_functions`), without ``ducklake_``.

    ``schema`` is that of tables named without one; ``table`` the table that it reads, if any, and
    if its name is written out.
    """

    function: str
    lake: str
    schema: str
    positional: tuple[Constant, ...] = ()
    named: tuple[tuple[str, Constant], ...] = ()
    table: TableName | None = None
    location: Location | None = field(default=None, compare=False)


QuerySource = TableSource | FileSource | FunctionSource


def table_read(source: QuerySource) -> TableName | None:
    """The managed table that a source reads, its changes or its rows."""
    return None if isinstance(source, FileSource) else source.table
