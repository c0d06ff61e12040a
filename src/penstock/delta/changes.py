"""Changes of a Delta table's rows, each from a staged value to the next.

Rows that go are found by Spark in the files that can hold them, by partition values and statistics;
a file whose rows all go, by the same, is not read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from penstock.delta.actions import Add
from penstock.delta.scan import ADDRESS, live_rows, read
from penstock.delta.staged import Change, Staged
from penstock.errors import ArgumentError, ColumnNotFound
from penstock.lake.reading.conversions.spark_types import cast_type
from penstock.lazy import pa
from penstock.spark.failures import explained
from penstock.spark.functions import expr, fn
from penstock.spark.session import session_zone
from penstock.sql.identifiers import fold, quoted
from penstock.sql.literals import text_literal
from penstock.sql.predicate import contrary
from penstock.sql.text import Predicate, SqlExpression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_EVERYTHING = Predicate(None)
_MOST_PLACES = 500  # partitions that are replaced by a condition; more are found by a join


def append(staged: Staged, df: DataFrame, *, fingerprint: bool = False) -> Staged:
    """Add rows. A table that does not exist is made with the columns of ``df``.

    Raises SchemaMismatch for columns that the table lacks: `Staged.evolve` adds them.
    """
    made = staged if staged.exists else staged.create(df)
    written = made.write(df, fingerprint=fingerprint)
    change = Change(
        rows_inserted=written.rows, rows_written=written.rows, fingerprint=written.fingerprint
    )
    return made.with_rows(written).done("WRITE", change)


def overwrite(
    staged: Staged,
    df: DataFrame,
    *,
    partition_by: Sequence[str] | None = None,
    fingerprint: bool = False,
) -> Staged:
    """Replace all rows; the columns become those of ``df``. The table is made if needed.

    ``partition_by`` is what the table is partitioned by from now on; None leaves it.
    """
    rows = staged.rows if staged.exists else 0
    keys = partition_by
    if keys is None:
        keys = staged.partition_by if staged.exists else ()
    made = staged.create(df, partition_by=keys)
    written = made.write(df, fingerprint=fingerprint)
    change = Change(written.rows, 0, rows, written.rows, written.fingerprint)
    return made.with_rows(written).done("WRITE", change)


def replace_rows(staged: Staged, df: DataFrame, *, fingerprint: bool = False) -> Staged:
    """Replace all rows; the table stays what it is."""
    rows = staged.rows
    made = staged.without_files(staged.files).depends_on(_EVERYTHING)
    written = made.write(df, fingerprint=fingerprint)
    change = Change(written.rows, 0, rows, written.rows, written.fingerprint)
    return made.with_rows(written).done("WRITE", change)


def delete(staged: Staged, where: str | None = None) -> Staged:
    """Remove the rows of a condition, or all."""
    made, rows = _without(staged, where)
    return made.done("DELETE", Change(rows_deleted=rows))


def update(staged: Staged, assignments: Mapping[str, str], where: str | None = None) -> Staged:
    """Set columns to expressions in the rows of a condition, or in all.

    Raises ColumnNotFound and others of Spark's.
    """
    columns = _assigned(staged, assignments)
    predicate = _EVERYTHING if where is None else staged.predicate(where)
    with explained(table=staged.place.name):
        # Kept: the rows that go and those that come must be the same, whatever is random.
        rows = staged.to_df(where, addresses=True).persist()
        try:
            made, count = staged.without_rows(_addresses(rows))
            if not count:
                return staged.depends_on(predicate).done("UPDATE", Change())
            written = made.write(rows.select(*columns))
        finally:
            rows.unpersist()
    change = Change(rows_updated=count, rows_written=written.rows)
    return made.with_rows(written).depends_on(predicate).done("UPDATE", change)


def replace_where(
    staged: Staged,
    df: DataFrame,
    where: str,
    *,
    check: bool = True,
    fingerprint: bool = False,
) -> Staged:
    """Replace the rows of a condition by those of ``df``, which must satisfy it (``check``)."""
    made, rows = _without(staged, where)
    checked = df.where(_satisfied(where)) if check else df
    written = made.write(checked, fingerprint=fingerprint)
    change = Change(written.rows, 0, rows, written.rows, written.fingerprint)
    return made.with_rows(written).done("WRITE", change)


def replace_matching(
    staged: Staged, df: DataFrame, keys: Sequence[str], *, fingerprint: bool = False
) -> Staged:
    """Replace the rows whose keys are among those of ``df`` (NULL equals NULL) by ``df``."""
    if not keys:
        raise ArgumentError("no keys to replace rows by", hint="name at least one column")
    if not staged.exists:
        return append(staged, df, fingerprint=fingerprint)
    written = staged.write(df, fingerprint=fingerprint)
    fresh = replace(staged.with_rows(written), files=written.files, deleted={})
    try:
        found = read(staged.place.spark(), fresh.scan()).select(*map(quoted, keys)).distinct()
        made, rows = _without_keys(staged, found, keys)
    except BaseException:
        fresh.rollback(staged)
        raise
    change = Change(written.rows, 0, rows, written.rows, written.fingerprint)
    return made.with_rows(written).done("WRITE", change)


def change_rows(staged: Staged, gone: DataFrame | None, new: DataFrame | None) -> Staged:
    """Remove rows by their ADDRESS (`Staged.to_df` with addresses), and add others."""
    made, rows = staged, 0
    if gone is not None:
        made, rows = staged.depends_on(_EVERYTHING).without_rows(_addresses(gone))
    if new is None:
        return made.done("DELETE", Change(rows_deleted=rows))
    written = made.write(new)
    change = Change(written.rows, 0, rows, written.rows)
    return made.with_rows(written).done("MERGE", change)


def _without(staged: Staged, where: str | None) -> tuple[Staged, int]:
    """The table without the rows of a condition, and how many they are."""
    staged.of_table  # noqa: B018 - raises TableNotFound
    if where is None:
        made = staged.without_files(staged.files).depends_on(_EVERYTHING)
        return made, staged.rows
    predicate = staged.predicate(where)
    whole = _whole_files(staged, where, predicate)
    gone = sum(live_rows(staged.place.uri, file) for file in whole)
    gone -= sum(len(rows) for path, rows in staged.deleted.items() if path in _paths(whole))
    made = staged.without_files(whole)
    files = made.matching(predicate)
    with explained(table=staged.place.name):
        rows = read(staged.place.spark(), made.scan(files), addresses=True).where(expr(where))
        found = _addresses(rows) if files else pa.chunked_array([], pa.int64())
    made, count = made.without_rows(found)
    return made.depends_on(predicate), gone + count


def _whole_files(staged: Staged, where: str, predicate: Predicate) -> tuple[Add, ...]:
    """The files of which surely all rows satisfy a condition."""
    others = contrary(SqlExpression(where), zone=session_zone(staged.place.spark()), args={})
    if others is None or predicate.unused:
        return ()
    kept = {file.key for file in staged.matching(others)}
    return tuple(file for file in staged.files if file.key not in kept)


def _paths(files: Sequence[Add]) -> set[str]:
    return {file.path for file in files}


def _without_keys(staged: Staged, found: DataFrame, keys: Sequence[str]) -> tuple[Staged, int]:
    """The table without the rows that have these keys."""
    names = [_name(staged, key) for key in keys]
    with explained(table=staged.place.name):
        some = found.limit(_MOST_PLACES + 1).collect()
        where = None if len(some) > _MOST_PLACES else _among(names, some)
        if where is not None:
            return _without(staged, where)
        rows = staged.to_df(addresses=True).alias("target")
        pairs = [_column("target", n).eqNullSafe(_column("source", n)) for n in names]
        condition = reduce(lambda a, b: a & b, pairs)
        matched = rows.join(found.alias("source"), condition, "left_semi")
        made, count = staged.without_rows(_addresses(matched))
    return made.depends_on(_EVERYTHING), count


def _among(names: Sequence[str], rows: Sequence[Any]) -> str | None:
    """A condition for these values of columns; ``None`` where one has no literal."""
    parts: list[str] = []
    for row in rows:
        tests: list[str] = []
        for name, value in zip(names, row, strict=True):
            text = None if value is None else _literal(value)
            if value is not None and text is None:
                return None
            tests.append(f"{quoted(name)} IS NULL" if text is None else f"{quoted(name)} = {text}")
        parts.append(f"({' AND '.join(tests)})")
    return " OR ".join(parts) if parts else "false"


def _literal(value: object) -> str | None:
    """A value in SQL; ``None`` for types whose text may mean another value."""
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return f"DATE '{value.isoformat()}'"
    return None


def _column(side: str, name: str) -> SparkColumn:
    return fn.col(f"{side}.{quoted(name)}")


def _name(staged: Staged, name: str) -> str:
    """The column's name as the table spells it. Raises ColumnNotFound."""
    column = staged.schema.find(name)
    if column is None:
        raise ColumnNotFound(
            f"the Delta table {staged.place.name} has no column {name!r}",
            hint=f"its columns are {', '.join(staged.schema.names)}",
            data={"column": name},
        )
    return column.name


def _assigned(staged: Staged, assignments: Mapping[str, str]) -> list[SparkColumn]:
    """The columns of the table with some of them set."""
    by_name = {fold(_name(staged, name)): text for name, text in assignments.items()}
    return [
        (
            expr(by_name[fold(column.name)]).cast(cast_type(column))
            if fold(column.name) in by_name
            else fn.col(quoted(column.name))
        ).alias(column.name)
        for column in staged.schema.columns
    ]


def _addresses(rows: DataFrame) -> pa.ChunkedArray:
    """The addresses of rows, on the driver: eight bytes each."""
    return rows.select(ADDRESS).toArrow()[ADDRESS]


def _satisfied(where: str) -> SparkColumn:
    """A filter that fails for a row that does not satisfy the condition."""
    text = where.replace("'", "")
    refusal = fn.raise_error(fn.lit(f"a row is outside of what is replaced: {text}"))
    return fn.when(expr(where), fn.lit(True)).otherwise(refusal.cast("boolean"))
