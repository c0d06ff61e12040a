"""Replace slices of a table: many from one DataFrame, ranges of a column, or partitions.

Many slices are written by one job and staged in one transaction. A slice is the rows that have one
value in a column, which alone the table is partitioned by. Rows are written first, for all slices;
those whose data tests fail are left out afterwards without anything being written again.

Of ranges and partitions, files all of whose rows are replaced, by their statistics or partition
values, end without being read; others lose theirs by position. A range for which there are no new
rows ends empty; equal rows change nothing. A partition is what the table's rows have in common by
some keys: columns, or ``year(at)`` and the like. NULL is a partition too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError, ColumnNotFound
from penstock.lakes.candidate.state import Candidate, Removed, Staged
from penstock.lakes.format.files import DataFile, all_rows, live_rows
from penstock.lakes.format.naming import fold
from penstock.lakes.format.partitioning import parse_partition_field
from penstock.lakes.reading import scan
from penstock.lakes.reading.conversions.align import align, typed
from penstock.lakes.rows.append import append_frame
from penstock.lakes.rows.change import Condition, RowChange
from penstock.lakes.rows.deletes import end_whole
from penstock.lakes.rows.engine import proven, removed, stage
from penstock.lakes.rows.overwrite import Replacing, as_it_was, is_same, missing_files
from penstock.lakes.rows.stager import Files
from penstock.lakes.writing import fingerprint
from penstock.lakes.writing.spark import Written
from penstock.spark.functions import as_condition
from penstock.sql.identifiers import did_you_mean, quoted
from penstock.sql.literals import text_literal
from penstock.sql.text import And, Compare, Constant, IsNull, Or, Predicate, as_expression
from penstock.sql.text import Condition as FileCondition
from penstock.sql.tokens import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.staged import StagedTable


@dataclass(frozen=True, slots=True)
class WrittenSlices:
    """Rows that are written and not staged yet: the files of each value of ``column``.

    ``before`` is the table without them; ``directory`` is where they are.
    """

    column: str
    before: Candidate
    files: Mapping[str, tuple[DataFile, ...]] = field(default_factory=dict)
    directory: str | None = None

    def rows(self, value: str) -> int:
        return sum(file.record_count for file in self.files.get(value, ()))


def fits_slices(table: StagedTable, column: str) -> bool:
    """Return whether the files of the table hold the rows of one slice each,
    and nothing else does.
    """
    if not table.exists:
        return True
    candidate, files, known = table.candidate, table.files(), table.schema.find(column)
    if known is None or known.type != "varchar" or candidate.partition_index(column) != 0:
        return False
    if files.inlined is not None or files.inlined_deletes is not None:
        return False
    return all(_is_of_one(candidate, file) for file in files.files)


def write_slices(table: StagedTable, df: DataFrame, column: str, count: int) -> WrittenSlices:
    """Write the rows of ``count`` slices, which ``column`` tells apart; the table is created where
    it is missing.
    """
    with table.all_or_nothing():
        df = typed(df, table.candidate.schema)
        table.ensure(df, (column,))
        before = table.candidate
        written = table.write_frame(df, partitions=count)
        by_value: dict[str, list[DataFile]] = defaultdict(list)
        for file in written.files:
            value = _value(before, file)
            assert value is not None, "rows have a value each, and files are of one partition"
            by_value[value].append(file)
        files = {value: tuple(each) for value, each in by_value.items()}
        return WrittenSlices(column, before, files, written.directory)


def stage_slices(
    table: StagedTable, written: WrittenSlices, values: Sequence[str], *, replaces: bool
) -> dict[str, Staged]:
    """Stage the rows of these slices, in place of what was staged of ``written`` before.

    ``replaces``: they are all of their slices, else they are added. A slice that would stay as it
    is stages nothing.
    """
    table.stage(written.before)
    there = _by_value(table, values) if replaces else {}
    same, fingerprints = _unchanged(table, written, there)
    changed = [value for value in values if value not in same]
    ended = [file for value in changed for file in there.get(value, ())]
    files = tuple(file for value in changed for file in written.files.get(value, ()))
    if ended or files or table.candidate.create is not None:
        removed = end_whole(table, table.scan_all(), ended) if ended else Removed()
        rows = sum(map(written.rows, changed))
        new = Written(files, rows, written.directory)
        Files(removed, inserted=new, in_files=True).stage(table)
        if replaces:
            for value in changed:
                table.depend((written.column, value))
    now = there if replaces else _by_value(table, values)
    return {
        value: Staged(
            rows_written=0 if value in same else written.rows(value),
            rows_deleted=0 if value in same else live_rows(there.get(value, ())),
            fingerprint=fingerprints.get(value),
            unchanged=value in same or not (written.files.get(value) or there.get(value)),
            slice_rows=written.rows(value) if replaces else live_rows(now.get(value, ())),
        )
        for value in values
    }


def slices_df(table: StagedTable, values: Sequence[str]) -> DataFrame:
    """The rows of these slices as they are staged."""
    files = tuple(file for each in _by_value(table, values).values() for file in each)
    return scan.read(table.context.spark(), table.scan_with(files))


def _is_of_one(candidate: Candidate, file: DataFile) -> bool:
    """Return whether the catalog knows which slice all rows of a file belong to."""
    values = file.partition_values
    return values is not None and len(values) == 1 and file.partition_id == candidate.partition_id


def _value(candidate: Candidate, file: DataFile) -> str | None:
    return (file.partition_values or (None,))[0] if _is_of_one(candidate, file) else None


def _by_value(table: StagedTable, values: Sequence[str]) -> dict[str, tuple[DataFile, ...]]:
    wanted, found = set(values), defaultdict[str, list[DataFile]](list)
    for file in table.files().files:
        value = _value(table.candidate, file)
        if value in wanted and value is not None:
            found[value].append(file)
    return {value: tuple(files) for value, files in found.items()}


def _unchanged(
    table: StagedTable, written: WrittenSlices, there: Mapping[str, Sequence[DataFile]]
) -> tuple[set[str], dict[str, str]]:
    """The slices whose rows are those that are there, and the fingerprints of all that were looked
    at: as many rows are there as were written. Of others none is known; it would be one more scan.
    """
    alike = [
        value
        for value, files in there.items()
        if live_rows(files) == written.rows(value)
        and not missing_files(table, (written.column, value))
    ]
    if not alike or not fingerprint.can_tell(table.schema):
        return set(), {}
    old = _fingerprints(table, written.column, [file for value in alike for file in there[value]])
    new = _fingerprints(
        table, written.column, [file for value in alike for file in written.files.get(value, ())]
    )
    return {value for value in alike if old.get(value) == new.get(value)}, new


def _fingerprints(table: StagedTable, column: str, files: Sequence[DataFile]) -> dict[str, str]:
    if not files:
        return {}
    files_now = replace(table.scan_all(), files=replace(table.files(), files=tuple(files)))
    rows = scan.read(table.context.spark(), files_now)
    name = next(name for name in rows.columns if fold(name) == fold(column))
    sums = rows.groupBy(quoted(name)).agg(*fingerprint.aggregates(table.schema)).collect()
    return {row[name]: fingerprint.text(row.asDict()) for row in sums}


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


MOST = 10_000  # partitions of one call: the condition names each
_TIMES = ("year", "month", "day", "hour")
# How a value is written, by the beginning of its type's name in Spark; ``{}`` is its literal as a
# text. The rest are cast, numbers stand as they are.
_NUMBERS = ("boolean", "tinyint", "smallint", "int", "bigint", "decimal")
_LITERALS = (("string", "{}"), ("date", "DATE {}"), ("timestamp_ntz", "TIMESTAMP_NTZ {}"))


def replace_partitions(table: StagedTable, df: DataFrame, keys: Sequence[str]) -> Staged:
    """Stage that the partitions of ``df``, by ``keys``, hold its rows and no others.

    Rows without which the partitions would be as they are stage nothing. Raises ArgumentError for
    a key that is not known, and for more than `MOST` partitions.
    """
    with table.all_or_nothing():
        if not table.exists:
            return append_frame(table, df)
        df = typed(df, table.candidate.schema)
        name = table.candidate.qualified_name
        rows = df.select(*align(df, table.written_schema, table=name)).persist()
        try:
            where = _condition(rows, [_expression(rows, key) for key in keys], name)
            if where is None or _is_same(table, rows, where):
                return Staged(unchanged=True, slice_rows=table.count_rows())
            staged = stage(table, RowChange.overwrite(rows, Condition.of(where)))
            return replace(staged, slice_rows=table.count_rows())
        finally:
            rows.unpersist()


def _expression(rows: DataFrame, key: str) -> str:
    """The key in Spark's SQL; of a time that has a zone its microseconds, which are never two."""
    field = parse_partition_field(key)
    types = {fold(name): (name, kind) for name, kind in rows.dtypes}
    found = types.get(fold(field.column))
    if found is None or field.transform not in {"identity", *_TIMES}:
        raise ArgumentError(
            f"partitions cannot be replaced by {key!r}",
            hint=f"write a column, or {', '.join(_TIMES)} of one: {', '.join(rows.columns)}",
        )
    name, kind = found
    if field.transform != "identity":
        return f"{field.transform}({quoted(name)})"
    return f"unix_micros({quoted(name)})" if kind == "timestamp" else quoted(name)


def _condition(rows: DataFrame, keys: Sequence[str], table: str) -> str | None:
    """The condition that a row is in a partition of ``rows``; None where there is no row."""
    named = rows.selectExpr(*(unsubstituted(f"{key} AS k{at}") for at, key in enumerate(keys)))
    texts = named.distinct().selectExpr(*(f"CAST(k{at} AS STRING)" for at in range(len(keys))))
    values = texts.limit(MOST + 1).collect()
    if len(values) > MOST:
        raise ArgumentError(
            f"the rows for {table} have more than {MOST:,} partitions",
            hint="partition by something coarser, as month(at), or run it in parts",
        )
    kinds = [kind for _, kind in named.dtypes]
    if len(keys) == 1:
        return _of_one(keys[0], kinds[0], [row[0] for row in values])
    written = sorted(
        " AND ".join(
            _equal(key, kind, value) for key, kind, value in zip(keys, kinds, row, strict=True)
        )
        for row in values
    )
    return " OR ".join(f"({each})" for each in written) or None


def _of_one(key: str, kind: str, values: Sequence[Any]) -> str | None:
    parts: list[str] = []
    known = sorted(_key_literal(kind, value) for value in values if value is not None)
    if known:
        parts.append(f"{key} IN ({', '.join(known)})")
    if len(known) < len(values):
        parts.append(f"{key} IS NULL")
    return " OR ".join(parts) or None


def _equal(key: str, kind: str, value: Any) -> str:
    return f"{key} IS NULL" if value is None else f"{key} = {_key_literal(kind, value)}"


def _key_literal(kind: str, value: str) -> str:
    if kind.startswith(_NUMBERS):
        return value
    form = next(
        (form for name, form in _LITERALS if kind.startswith(name)), f"CAST({{}} AS {kind})"
    )
    return form.format(text_literal(value))


def _is_same(table: StagedTable, rows: DataFrame, where: str) -> bool:
    """Return whether the partitions hold these rows already."""
    if not fingerprint.can_tell(table.schema):
        return False
    current = table.to_df().where(as_condition(where))
    return fingerprint.of(current, table.schema) == fingerprint.of(rows, table.schema)
