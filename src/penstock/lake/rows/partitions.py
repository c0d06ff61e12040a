"""Each partition that new rows have replaced whole by them; other partitions stay.

A partition is what the table's rows have in common by some keys: columns, or ``year(at)`` and the
like. NULL is a partition too. Files that hold no other rows end whole, where the catalog knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError
from penstock.lake.candidate.state import Staged
from penstock.lake.format.naming import fold
from penstock.lake.format.partitioning import parse_partition_field
from penstock.lake.reading.conversions.align import align, typed
from penstock.lake.rows.append import append_frame
from penstock.lake.rows.change import Condition, RowChange
from penstock.lake.rows.engine import stage
from penstock.lake.spark.text import as_condition
from penstock.lake.writing import fingerprint
from penstock.sql.identifiers import quoted
from penstock.sql.literals import text_literal
from penstock.sql.substitution import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.staged import StagedTable

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
    known = sorted(_literal(kind, value) for value in values if value is not None)
    if known:
        parts.append(f"{key} IN ({', '.join(known)})")
    if len(known) < len(values):
        parts.append(f"{key} IS NULL")
    return " OR ".join(parts) or None


def _equal(key: str, kind: str, value: Any) -> str:
    return f"{key} IS NULL" if value is None else f"{key} = {_literal(kind, value)}"


def _literal(kind: str, value: str) -> str:
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
