"""Sessions whose settings are those that expressions are computed by here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each makes some expression mean another thing, or an error.
_WANTED: Mapping[str, frozenset[str]] = {
    "spark.sql.ansi.enabled": frozenset({"true"}),
    "spark.sql.ansi.enforceReservedKeywords": frozenset({"false"}),
    "spark.sql.caseSensitive": frozenset({"false"}),
    "spark.sql.legacy.literal.pickMinimumPrecision": frozenset({"true"}),
    # A function of the user's called pmod comes after Spark's own.
    "spark.sql.functionResolution.sessionOrder": frozenset({"second", "last"}),
}


def are_known(spark: SparkSession) -> bool:
    return all(str(spark.conf.get(key)).lower() in known for key, known in _WANTED.items())


def would_be_known(conf: Mapping[str, str]) -> bool:
    """The same of a session that is not there yet and would be started with ``conf``."""
    return all(conf[key].lower() in known for key, known in _WANTED.items() if key in conf)
