"""The rows of ranges of a column replaced by others: unless the content is what it was.

Files all of whose rows are in a range, by their statistics or partition values, end without being
read; others lose theirs by position. A range for which there are no new rows ends empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ColumnNotFound
from penstock.lake.candidate.state import Staged
from penstock.lake.format.files import all_rows, live_rows
from penstock.lake.reading.conversions.align import typed
from penstock.lake.rows.change import Condition, RowChange
from penstock.lake.rows.engine import proven, removed
from penstock.lake.rows.overwrite import Replacing, as_it_was, is_same
from penstock.lake.spark.text import as_condition
from penstock.sql.conditions import And, Compare, Constant, IsNull, Or, Predicate
from penstock.sql.conditions import Condition as FileCondition
from penstock.sql.identifiers import did_you_mean, quoted
from penstock.sql.literals import text_literal
from penstock.sql.text import as_expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.staged import StagedTable

Bound = int | str | date | datetime
Bounds = tuple[Bound, Bound]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Rows whose value is in one of ``bounds``, each from its first to just before its second. They
    are in order and do not overlap.

    The value is that of ``column``, or of the expression ``by`` in Spark's SQL: then no file is
    chosen by it. Dates, times (naive: without a time zone), texts and integers are compared as what
    they are.
    """

    bounds: tuple[Bounds, ...]
    column: str = ""
    by: str | None = None

    @property
    def where(self) -> str:
        """The condition in Spark's SQL; NULL is in no range."""
        value = self.by or quoted(self.column)
        parts = (
            f"({value} >= {_literal(low)} AND {value} < {_literal(high)})"
            for low, high in self.bounds
        )
        return " OR ".join(parts) or "false"

    @property
    def condition(self) -> Condition:
        """With what tells of a file whether it may hold such rows, and whether others."""
        known = as_expression(self.where)
        if self.by is not None or not self.bounds:
            return Condition(known)
        return Condition(known, files=Predicate(self._inside()), others=Predicate(self._outside()))

    def _inside(self) -> FileCondition:
        return Or(tuple(self._between(low, high) for low, high in self.bounds))

    def _outside(self) -> FileCondition:
        path = (self.column,)
        gaps = zip(self.bounds, self.bounds[1:], strict=False)
        between = (self._between(one[1], other[0]) for one, other in gaps if one[1] != other[0])
        first, last = self.bounds[0][0], self.bounds[-1][1]
        return Or(
            (
                Compare(path, "<", _constant(first)),
                *between,
                Compare(path, ">=", _constant(last)),
                IsNull(path),
            )
        )

    def _between(self, low: Bound, high: Bound) -> FileCondition:
        path = (self.column,)
        return And((Compare(path, ">=", _constant(low)), Compare(path, "<", _constant(high))))


def replace_ranges(table: StagedTable, ranges: Ranges, new: Replacing) -> Staged:
    """Stage that the ranges hold the new rows and no others. All of these are in a range, which is
    not looked at: their maker has chosen them so.

    Unchanged content stages nothing. Raises ColumnNotFound.
    """
    with table.all_or_nothing():
        df = typed(new.rows, table.candidate.schema)
        if ranges.by is None:
            _require(df, ranges.column, table.candidate.qualified_name)
        table.ensure(df, new.partition_by)
        unchanged = table.is_unchanged
        written = table.write_frame(df, with_fingerprint=True)
        condition = ranges.condition
        files = table.files(condition.files)
        known = new.known
        current = (
            partial(rows_in, table, ranges) if _may_be(table, condition, written.rows) else None
        )
        if unchanged and is_same(table, written, known, files, current):
            return as_it_was(table, written)
        gone = removed(table, RowChange.delete(condition))
        staged = replace(gone, inserted=written, in_files=True).stage(table)
        table.depend()  # what others write into the ranges would stay beside the new rows
        return replace(staged, fingerprint=written.fingerprint, slice_rows=written.rows)


def rows_in(table: StagedTable, ranges: Ranges) -> DataFrame:
    """The rows of the candidate state that are in the ranges."""
    return table.to_df(ranges.condition.files).where(as_condition(ranges.where))


def _may_be(table: StagedTable, condition: Condition, rows: int) -> bool:
    """Return whether the ranges may hold as many rows, by what the catalog knows."""
    files = table.files(condition.files)
    if files.inlined is not None or files.inlined_deletes is not None:
        return True
    sure = live_rows(proven(table, files, condition))
    return sure <= rows <= all_rows(files)


def _require(df: DataFrame, column: str, table: str) -> None:
    if column.casefold() not in map(str.casefold, df.columns):
        raise ColumnNotFound(
            f"the rows for {table} have no column {column!r}",
            hint=did_you_mean(column, df.columns, "columns"),
            data={"column": column},
        )


def _literal(value: Bound) -> str:
    if isinstance(value, datetime):
        kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP_LTZ"
        return f"{kind} '{_instant(value).isoformat(sep=' ', timespec='microseconds')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, int):
        return f"{value}L"
    return text_literal(value)


def _constant(value: Bound) -> Constant:
    if isinstance(value, datetime):
        return Constant("zoneless" if value.tzinfo is None else "zoned", _instant(value))
    if isinstance(value, date):
        return Constant("date", value)
    return Constant("integer" if isinstance(value, int) else "string", value)


def _instant(value: datetime) -> datetime:
    return value if value.tzinfo is None else value.astimezone(UTC)
