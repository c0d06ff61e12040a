"""Rows that satisfy a condition, found by Arrow on the driver, and their new values.

A job of Spark's takes longer to begin and to end than reading some columns of some million rows.
What Spark would not certainly compute alike (`arrow_expressions`), and what is too much to read on
one machine, is left to Spark: ``None``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.lake.arrow_expressions.compiled import Expression, condition, expression, plain
from penstock.lake.arrow_expressions.fence import knows_settings
from penstock.lake.arrow_expressions.nodes import NotSupportedByArrow
from penstock.lake.format.inlined.values import arrow_schema
from penstock.lake.format.schema import TableSchema
from penstock.lake.reading.arrow_files import Deleted
from penstock.lake.rows.arrow_scan import Bounds, Matched, Reading, read
from penstock.lake.rows.change import Condition, RowChange
from penstock.lake.rows.collected import NewRows, is_flat
from penstock.lake.rows.places import RowPlaces
from penstock.sql.expression import SqlExpression

if TYPE_CHECKING:
    from penstock.lake.candidate.table import CandidateTable
    from penstock.lake.reading.scan import Scan

_PLACE_BYTES = 16  # a number, and what Arrow has beside it


@dataclass(frozen=True, slots=True)
class Computed:
    """The condition of a change as Arrow computes it, and its new values by column, if any."""

    condition: Expression
    values: Mapping[str, Expression] | None = None


def compiled(schema: TableSchema, change: RowChange) -> Computed | None:
    """``None`` where Arrow would not certainly compute what Spark does, over columns that exist."""
    where = change.match.where if isinstance(change.match, Condition) else None
    if not isinstance(where, SqlExpression):
        return None
    try:
        kinds = _kinds(schema)
        wanted = condition(where, kinds)
        if change.deletes:
            return Computed(wanted)
        values = change.clauses[0].values
        return None if values is None else Computed(wanted, _assigned(schema, values, kinds))
    except NotSupportedByArrow:
        return None


def settings_are_known(table: CandidateTable) -> bool:
    """Whether the session computes as Arrow is known to."""
    return knows_settings(table.context.spark())


def find(table: CandidateTable, source: Scan, computed: Computed) -> RowPlaces | None:
    """The rows of ``source`` for which the condition is true; ``None``: more than are kept."""
    limits = table.context.limits
    bounds = Bounds(limits.places, limits.places * _PLACE_BYTES, limits.batch_rows)
    try:
        job = Reading(table.schema, computed.condition, _deleted(source))
        return _places(source, read(source.files.files, job, bounds))
    except NotSupportedByArrow:
        return None


def updated_rows(table: CandidateTable, source: Scan, computed: Computed) -> NewRows | None:
    """The rows of ``source`` for which the condition is true, with new values."""
    schema, limits = table.schema, table.context.limits
    most = limits.partitioned_rows if table.candidate.partition_by else limits.changed_rows
    bounds = Bounds(most, limits.changed_bytes, limits.batch_rows)
    try:
        job = Reading(schema, computed.condition, _deleted(source), computed.values)
        return _new_rows(source, read(source.files.files, job, bounds), schema)
    except NotSupportedByArrow:
        return None


def _deleted(source: Scan) -> Deleted:
    found = Deleted.of(source)
    if found is None:
        raise NotSupportedByArrow("many deleted rows")
    return found


def _kinds(schema: TableSchema) -> dict[str, pa.DataType]:
    """The columns of types that Arrow has as Spark has them."""
    known = [column for column in schema.columns if is_flat(TableSchema((column,)))]
    fields = arrow_schema(TableSchema(tuple(known)))
    return {field.name: field.type for field in fields}


def _assigned(
    schema: TableSchema, values: Mapping[str, object], kinds: Mapping[str, pa.DataType]
) -> dict[str, Expression]:
    """The new values by column, in the types of the columns."""
    found: dict[str, Expression] = {}
    for name, value in values.items():
        column = schema.find(name)
        if column is None or column.name in found:
            raise NotSupportedByArrow(f"{name!r} is assigned")
        new = expression(value, kinds) if isinstance(value, str) else plain(value)
        found[column.name] = new.cast(kinds[column.name])
    return found


def _places(source: Scan, matched: Sequence[Matched]) -> RowPlaces:
    keys = source.keys()
    places: dict[str, list[pa.Int64Array]] = {}
    for one in matched:
        places.setdefault(keys.key(one.file.path), []).append(one.positions)
    positions = {key: pa.concat_arrays(parts) for key, parts in places.items()}
    counts = {key: len(one) for key, one in positions.items()}
    return RowPlaces(positions, counts, asked=sum(counts.values()))


def _new_rows(source: Scan, matched: Sequence[Matched], schema: TableSchema) -> NewRows:
    which, keys = _places(source, matched), source.keys()
    codes = {key: at for at, key in enumerate(which.counts)}
    files, positions, ids = [], [], []
    for one in matched:
        code = pa.scalar(codes[keys.key(one.file.path)], pa.int32())
        files.append(pa.repeat(code, len(one.positions)))
        positions.append(one.positions)
        ids.append(pa.nulls(len(one.positions), pa.int64()) if one.ids is None else one.ids)
    values = [one.values for one in matched if one.values is not None]
    return NewRows(
        pa.concat_tables([arrow_schema(schema).empty_table(), *values]),
        list(codes),
        pa.chunked_array(files, pa.int32()),
        pa.chunked_array(positions, pa.int64()),
        pa.chunked_array(ids, pa.int64()),
        which,
    )
