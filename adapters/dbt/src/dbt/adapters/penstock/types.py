"""Types as dbt's columns name them: a lake's own names, in lower case.

``timestamp`` means one type in a table's columns and another one in Spark's casts; dbt writes a
column's type into both, so times have names that mean one thing: ``timestamp_ntz`` and
``timestamp_ltz``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.statements.types import duckdb_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIMES = {"TIMESTAMP": "timestamp_ntz", "TIMESTAMP WITH TIME ZONE": "timestamp_ltz"}


def type_name(kind: str) -> str:
    """``VARCHAR`` as ``varchar``; what has the names of fields inside stays as it is."""
    if kind in _TIMES:
        return _TIMES[kind]
    return kind if "STRUCT(" in kind else kind.lower()


def columns_of(frame: DataFrame) -> list[tuple[str, str]]:
    """The names and types of a DataFrame's columns."""
    return [(c.name, type_name(duckdb_type(c))) for c in schema_of(frame).columns]


def answer_columns(frame: DataFrame) -> list[tuple[str, str]]:
    """Return the same of an answer, whose types no table has to hold: that of ``NULL`` is void."""
    try:
        return columns_of(frame)
    except PenstockError:
        return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]


def described(rows: Iterable[Any]) -> list[tuple[str, str]]:
    """The same of what DESCRIBE answers."""
    return [(row.column_name, type_name(row.column_type)) for row in rows]
