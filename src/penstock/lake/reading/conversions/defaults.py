"""The value that a column has in files that are older than it (``initial_default``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.errors import CatalogCorrupt, UnsupportedFeature
from penstock.lake.format.schema import Column
from penstock.lake.format.values import duck_text
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.spark_types import spark_type
from penstock.lake.reading.conversions.stored_values import moment

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn


def initial_value(column: Column) -> SparkColumn:
    """The initial default, which is DuckDB's text of a value, as users see it.

    Raises UnsupportedFeature for types whose text only DuckDB understands, CatalogCorrupt for text
    that is none of the column's type.
    """
    text = column.initial_default
    if text is None:
        raise ValueError(f"column {column.name} has no initial default")
    read = _READ.get(base_type(column.type))
    if read is None:
        raise UnsupportedFeature(
            f"column {column.name!r} is {column.type} and has {text!r} in older files, "
            "which this version does not read",
            hint="rewrite the table's files with DuckDB, or read an earlier snapshot",
            data={"column": column.name, "type": column.type},
        )
    try:
        return read(text).cast(spark_type(column))
    except (ValueError, KeyError) as error:
        raise CatalogCorrupt(
            f"the initial default {text!r} of column {column.name!r} is no {column.type}",
            hint="look at the row of ducklake_column",
            data={"column": column.name, "type": column.type},
        ) from error


def _literal(convert: Callable[[str], object]) -> Callable[[str], SparkColumn]:
    def read(text: str) -> SparkColumn:
        from pyspark.sql import functions as fn

        return fn.lit(convert(text))

    return read


def _number(text: str) -> SparkColumn:
    """Spark's own cast of the text is exact; what is no number is found out before."""
    from pyspark.sql import functions as fn

    float(text)
    return fn.lit(text)


def _date(text: str) -> SparkColumn:
    from pyspark.sql import functions as fn

    return fn.date_from_unix_date(fn.lit(duck_text.days(text)))


def _timestamp(text: str) -> SparkColumn:
    from pyspark.sql import functions as fn

    return moment(fn.lit(duck_text.micros(text)).cast("long"))


def _timestamptz(text: str) -> SparkColumn:
    from pyspark.sql import functions as fn

    return fn.timestamp_micros(fn.lit(duck_text.micros(text)))


def _interval(text: str) -> SparkColumn:
    from pyspark.sql import functions as fn

    return fn.struct(*(fn.lit(n).alias(part) for part, n in duck_text.interval(text).items()))


def _blob(text: str) -> SparkColumn:
    from pyspark.sql import functions as fn

    return fn.lit(bytearray(duck_text.blob(text)))


_NUMBERS = (
    *("int8", "int16", "int32", "int64", "int128"),
    *("uint8", "uint16", "uint32", "uint64", "uint128", "decimal"),
    *("float32", "float64"),
)
_READ: Mapping[str, Callable[[str], SparkColumn]] = {
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(("varchar", "json", "uuid", "time", "time_ns", "timetz"), _literal(str)),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"), _timestamp),
    "timestamptz": _timestamptz,
    "boolean": _literal(duck_text.boolean),
    "date": _date,
    "interval": _interval,
    "blob": _blob,
}
