"""Rows that satisfy a condition found here, by Arrow, and their new values.

A job of Spark's takes longer to begin and to end than reading some columns of some million rows.
What Spark would not certainly compute alike (`arrow_expressions`), and what is too much to read on
one machine, is left to Spark: ``None``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.lake.arrow_expressions import settings
from penstock.lake.arrow_expressions.compiled import Expression, condition, expression, plain
from penstock.lake.arrow_expressions.kinds import NotHere
from penstock.lake.dml import few
from penstock.lake.dml.few import Brought
from penstock.lake.dml.found import Found
from penstock.lake.dml.matched import Bounds, Matched, Reading, read
from penstock.lake.files_here import Deleted, are_plain
from penstock.lake.inlined.values import arrow_schema
from penstock.lake.schema import TableSchema

if TYPE_CHECKING:
    from penstock.lake.candidate.table import CandidateTable
    from penstock.lake.scan import Scan

_PLACE_BYTES = 8


def find(table: CandidateTable, source: Scan, where: object) -> Found | None:
    """The rows of ``source`` for which the condition is true."""
    if not isinstance(where, str) or not _is_here(table, source):
        return None
    try:
        limits = table.context.limits
        wanted = condition(where, _kinds(table.schema))
        job = Reading(table.schema, wanted, _deleted(source))
        bounds = Bounds(limits.places, limits.places * _PLACE_BYTES, limits.batch_rows)
        return _found(source, read(source.files.files, job, bounds))
    except NotHere:
        return None


def renewed(
    table: CandidateTable, source: Scan, values: Mapping[str, object], where: object
) -> Brought | None:
    """The rows of ``source`` for which the condition is true, with new values."""
    schema = table.schema
    if not isinstance(where, str) or not few.is_plain(schema) or not _is_here(table, source):
        return None
    limits = table.context.limits
    most = limits.partitioned_rows if table.candidate.partition_by else limits.changed_rows
    bounds = Bounds(most, limits.changed_bytes, limits.batch_rows)
    try:
        kinds = _kinds(schema)
        wanted = condition(where, kinds)
        news = _assigned(schema, values, kinds)
        job = Reading(schema, wanted, _deleted(source), news)
        return _brought(source, read(source.files.files, job, bounds), schema)
    except NotHere:
        return None


def is_understood(schema: TableSchema, where: object) -> bool:
    """Whether this is a condition over columns that there are, of which Arrow knows the meaning."""
    if not isinstance(where, str):
        return False
    try:
        condition(where, _kinds(schema))
    except NotHere:
        return False
    return True


def _is_here(table: CandidateTable, source: Scan) -> bool:
    limits = table.context.limits
    return (
        source.files.inlined is None
        and are_plain(source)
        and len(source.files.files) <= limits.scanned_files
        and sum(file.record_count for file in source.files.files) <= limits.scanned_rows
        and settings.are_known(table.context.spark())
    )


def _deleted(source: Scan) -> Deleted:
    found = Deleted.of(source)
    if found is None:
        raise NotHere("many deleted rows")
    return found


def _kinds(schema: TableSchema) -> dict[str, pa.DataType]:
    """The columns of types that Arrow has as Spark has them."""
    known = [column for column in schema.columns if few.is_plain(TableSchema((column,)))]
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
            raise NotHere(f"{name!r} is assigned")
        new = expression(value, kinds) if isinstance(value, str) else plain(value)
        found[column.name] = new.cast(kinds[column.name])
    return found


def _found(source: Scan, matched: Sequence[Matched]) -> Found:
    keys = source.keys()
    places: dict[str, list[pa.Int64Array]] = {}
    for one in matched:
        places.setdefault(keys.key(one.file.path), []).append(one.positions)
    positions = {key: pa.concat_arrays(parts) for key, parts in places.items()}
    counts = {key: len(one) for key, one in positions.items()}
    return Found(positions, counts, given=sum(counts.values()))


def _brought(source: Scan, matched: Sequence[Matched], schema: TableSchema) -> Brought:
    which, keys = _found(source, matched), source.keys()
    codes = {key: at for at, key in enumerate(which.counts)}
    files, positions, ids = [], [], []
    for one in matched:
        code = pa.scalar(codes[keys.key(one.file.path)], pa.int32())
        files.append(pa.repeat(code, len(one.positions)))
        positions.append(one.positions)
        ids.append(pa.nulls(len(one.positions), pa.int64()) if one.ids is None else one.ids)
    values = [one.values for one in matched if one.values is not None]
    return Brought(
        pa.concat_tables([arrow_schema(schema).empty_table(), *values]),
        list(codes),
        pa.chunked_array(files, pa.int32()),
        pa.chunked_array(positions, pa.int64()),
        pa.chunked_array(ids, pa.int64()),
        which,
    )
