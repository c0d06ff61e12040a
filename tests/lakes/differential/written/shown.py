"""All of a table as texts, whoever read it: its columns with their types, and its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lakes.differential import canonical

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Shown = tuple[tuple[str, ...], list[str]]


def of_arrow(table: pa.Table) -> Shown:
    columns = (f"{field.name} {canonical.arrow_type(field.type)}" for field in table.schema)
    return tuple(columns), canonical.of_arrow(table)


def of_spark(df: DataFrame) -> Shown:
    kinds = [field.dataType for field in df.schema.fields]
    names = zip(df.columns, kinds, strict=True)
    rows = df.select(canonical.in_spark(df).alias("text")).collect()
    texts = sorted(canonical.of_spark(row["text"], kinds) for row in rows)
    return tuple(f"{name} {kind.simpleString()}" for name, kind in names), texts
