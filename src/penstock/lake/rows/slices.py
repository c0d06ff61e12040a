"""Many slices of a table from one DataFrame: written by one job, staged in one transaction.

A slice is the rows that have one value in a column, which alone the table is partitioned by. Rows
are written first, for all slices; which of them are staged is said afterwards, so that those whose
data tests fail are left out without anything being written again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.lake.candidate.state import Candidate, Removed, Staged
from penstock.lake.format.files import DataFile, live_rows
from penstock.lake.format.naming import fold
from penstock.lake.reading import scan
from penstock.lake.reading.conversions.align import typed
from penstock.lake.rows.deletes import end_whole
from penstock.lake.rows.overwrite import missing_files
from penstock.lake.rows.stager import Files
from penstock.lake.writing import fingerprint
from penstock.lake.writing.spark import Written
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.staged import StagedTable


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
    anew = [value for value in values if value not in same]
    ended = [file for value in anew for file in there.get(value, ())]
    files = tuple(file for value in anew for file in written.files.get(value, ()))
    if ended or files or table.candidate.create is not None:
        removed = end_whole(table, table.scan_all(), ended) if ended else Removed()
        rows = sum(map(written.rows, anew))
        new = Written(files, rows, written.directory)
        Files(removed, inserted=new, in_files=True).stage(table)
        if replaces:
            for value in anew:
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
