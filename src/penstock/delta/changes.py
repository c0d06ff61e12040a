"""Changes of a Delta table, each as the work that makes a version of another.

What the table is (its columns, partitions and options) is decided here, by the log's metadata. Its
rows are changed by a lake's transaction (`version_commit`), whose table has that metadata already.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.delta.actions import Metadata
from penstock.delta.merge import assigned
from penstock.delta.options import checked_options
from penstock.delta.place import Place, Version
from penstock.delta.scan import live_rows
from penstock.delta.schema import commented, evolved, partition_names, schema_text, table_schema
from penstock.delta.version_catalog import Draft
from penstock.delta.version_commit import Work
from penstock.errors import ColumnNotFound, SchemaMismatch
from penstock.lake.format.schema import TableSchema
from penstock.lake.reading.conversions.align import known
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.rows.change import Clause, Condition, RowChange
from penstock.lake.rows.engine import stage
from penstock.spark.functions import expr
from penstock.spark.session import session_zone
from penstock.sql.predicate import contrary, of_where
from penstock.sql.text import Predicate, SqlExpression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ALL = Predicate(None)


def create(
    place: Place,
    like: DataFrame | TableSchema,
    partition_by: Sequence[str],
    options: Mapping[str, str],
) -> Work:
    """Make an empty table with these columns."""
    return Work(
        Draft(place, None, _metadata(place, None, like, partition_by, options)), "CREATE TABLE"
    )


def append(place: Place, base: Version | None, df: DataFrame, *, evolve: bool) -> Work:
    """Add rows; ``evolve`` adds columns that the table lacks. The table is made if needed.

    Raises SchemaMismatch for columns that the table lacks, and for a type that differs.
    """
    if base is None:
        draft = Draft(place, None, _metadata(place, None, df, ()))
        return Work(draft, "CREATE TABLE AS SELECT", lambda table: table.append(df))
    draft = Draft.of_version(place, base)
    if evolve:
        draft = replace(draft, metadata=evolved(base.metadata, _schema(df), place.name))
    return Work(draft, "WRITE", lambda table: table.append(df))


def overwrite(
    place: Place, base: Version | None, df: DataFrame, partition_by: Sequence[str] | None
) -> Work:
    """Replace all rows; the columns become those of ``df``. The table is made if needed.

    ``partition_by`` is what the table is partitioned by from now on; None leaves it.
    """
    keys = partition_by
    if keys is None:
        keys = () if base is None else base.partition_by
    draft = Draft(place, base, _metadata(place, base, df, keys))
    if base is None:
        return Work(draft, "CREATE TABLE AS SELECT", lambda table: table.append(df))
    rows = sum(live_rows(place.uri, file) for file in base.files)
    return Work(draft, "WRITE", lambda table: table.append(df), _ALL, replaced=rows)


def delete(draft: Draft, where: str | None) -> Work:
    """Remove the rows of a condition, or all."""
    change = RowChange.delete(_condition(draft, where))
    return Work(draft, "DELETE", lambda table: stage(table, change), _predicate(draft, where))


def update(draft: Draft, assignments: Mapping[str, str], where: str | None) -> Work:
    """Set columns to expressions in the rows of a condition, or in all.

    Raises ColumnNotFound.
    """
    for name in assignments:
        if draft.schema.find(name.partition(".")[0]) is None and draft.schema.find(name) is None:
            raise ColumnNotFound(
                f"the Delta table {draft.place.name} has no column {name!r}",
                hint=f"its columns are {', '.join(draft.schema.names)}",
                data={"column": name},
            )
    values = assigned(assignments, draft.schema)
    clause = Clause("matched", "update", values=values, rounds=False)
    change = RowChange(_condition(draft, where), (clause,))
    return Work(draft, "UPDATE", lambda table: stage(table, change), _predicate(draft, where))


def replace_where(draft: Draft, df: DataFrame, where: str) -> Work:
    """Replace the rows of a condition by those of ``df``, which must satisfy it."""
    change = RowChange.overwrite(df, _condition(draft, where))
    return Work(draft, "WRITE", lambda table: stage(table, change), _predicate(draft, where))


def set_options(draft: Draft, options: Mapping[str, str]) -> Work:
    """Set options of the table. Raises UnsupportedFeature, ArgumentError."""
    pairs = _options(draft.place, draft.metadata, options)
    return _redefined(draft, replace(draft.metadata, configuration=pairs))


def comment(draft: Draft, text: str | None, column: str | None) -> Work:
    """Set or remove the comment of the table or of a column."""
    return _redefined(draft, commented(draft.metadata, text, column))


def _redefined(draft: Draft, metadata: Metadata) -> Work:
    return Work(replace(draft, metadata=metadata), "SET TBLPROPERTIES")


def _condition(draft: Draft, where: str | None) -> Condition:
    """The condition as a column.

    In a lake's texts, quotes and names of hidden columns have a meaning that Spark's have not.
    """
    if where is None:
        return Condition()
    predicate = _predicate(draft, where)
    others = None
    if not predicate.unused:
        others = contrary(SqlExpression(where), zone=predicate.zone, args={})
    return Condition(expr(where), files=predicate, others=others)


def _predicate(draft: Draft, where: str | None) -> Predicate:
    return _ALL if where is None else of_where(where, zone=session_zone(draft.place.spark()))


def _metadata(
    place: Place,
    base: Version | None,
    like: DataFrame | TableSchema,
    partition_by: Sequence[str],
    options: Mapping[str, str] | None = None,
) -> Metadata:
    """Return the metadata of a table with these columns; an existing table keeps its options."""
    before = None if base is None else base.metadata
    schema = _schema(like)
    if before is not None:
        text = schema_text(schema, before.schema_text)
        keys = partition_names(table_schema(text), partition_by)
        return replace(before, schema_text=text, partition_by=keys)
    return Metadata(
        id=str(uuid4()),
        schema_text=schema_text(schema),
        partition_by=partition_names(schema, partition_by),
        configuration=_options(place, None, options or {}),
        created=time.time_ns() // 1_000_000,
    )


def _options(
    place: Place, before: Metadata | None, options: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    known_options = {} if before is None else before.options
    return tuple({**known_options, **checked_options(options, place.name)}.items())


def _schema(like: DataFrame | TableSchema) -> TableSchema:
    schema = like if isinstance(like, TableSchema) else schema_of(known(like))
    if not schema.columns:
        raise SchemaMismatch("a table needs a column", hint="select at least one")
    return schema
