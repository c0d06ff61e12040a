"""Types as dbt's columns name them: Spark's names, which ``spark__`` macros of packages compare.

Types that Spark lacks keep the lake's names. ``timestamp`` means one type in a table's columns and
another one in Spark's casts; dbt writes a column's type into both, so times have names that mean
one thing: ``timestamp_ntz`` and ``timestamp_ltz``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.statements.columns import duckdb_type
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPARK = {
    "VARCHAR": "string",
    "INTEGER": "int",
    "BLOB": "binary",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp_ltz",
}
_NESTED = ("STRUCT(", "MAP(")
_ZONED = re.compile(r"\bTIMESTAMP(?=[,>])")


def type_name(kind: str) -> str:
    """``VARCHAR`` as ``string``, ``INTEGER[]`` as ``array<int>``."""
    if kind in _SPARK:
        return _SPARK[kind]
    return _nested(kind) if kind.endswith("]") or kind.startswith(_NESTED) else kind.lower()


def _nested(kind: str) -> str:
    """The names of a struct's fields keep their letters."""
    try:
        text = _ZONED.sub("TIMESTAMP_LTZ", spark_type(kind))
    except ValueError:  # such as a list of times of day, which Spark cannot hold
        return kind
    return text if "STRUCT<" in text else text.lower()


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
