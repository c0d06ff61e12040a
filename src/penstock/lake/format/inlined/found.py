"""Rows and deletes that live in the catalog itself, as they were found there.

Values are kept as the catalog has them (numbers, text, bytes), column by column in Arrow;
`inline_rows` makes typed rows of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.lake.format.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

# The system columns of `InlinedPart.rows`; the table's own follow, named by their field ids.
ROW_ID_COLUMN = "row_id"
BEGIN_COLUMN = "begin_snapshot"
END_COLUMN = "end_snapshot"

# How nested values are written: all as a cast to text does it, or some as SQL literals
# (`nested_text`).
NestedTexts = Literal["cast", "sql"]


@dataclass(frozen=True, slots=True)
class InlinedPart:
    """Rows of one schema version: the table's columns as they were then, and what was stored.

    ``rows`` has ROW_ID_COLUMN, BEGIN_COLUMN, END_COLUMN (int64) and for each column of ``schema``
    one called by its field id, whose Arrow type is how the catalog keeps it.
    """

    schema: TableSchema
    rows: pa.Table
    texts: NestedTexts = "sql"


@dataclass(frozen=True, slots=True)
class InlinedRows:
    """The inlined rows of a table at one snapshot, at least one."""

    parts: tuple[InlinedPart, ...]

    @property
    def count(self) -> int:
        return sum(part.rows.num_rows for part in self.parts)

    def row_ids(self) -> tuple[int, ...]:
        return tuple(id_ for part in self.parts for id_ in part.rows[ROW_ID_COLUMN].to_pylist())


@dataclass(frozen=True, slots=True)
class InlinedDeletes:
    """Rows of data files deleted in the catalog, at least one.

    ``rows`` has the int64 columns ``file_id``, ``position`` (the row's place in its file from 0,
    whatever row ids the file embeds) and ``snapshot`` (the one that deleted it).
    """

    rows: pa.Table


@dataclass(frozen=True, slots=True)
class InlinedChanges:
    """Inlined rows that began and that ended in a range of snapshots; both may be empty.

    An update is the end of a row and the beginning of one with the same row id, in one snapshot.
    A row that began and ended within the range is in both. Rows that were flushed to a file are
    in neither: the file has them.
    """

    begun: tuple[InlinedPart, ...]
    ended: tuple[InlinedPart, ...]
