"""A session for many small queries of large plans: planning and compiling take the time, not rows.

Without whole-stage code and adaptive execution Spark plans a query once and compiles less. The rows
are the same; what is about Spark's own execution is tested with the settings that users have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import EnvironmentMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}


def no_session() -> SparkSession:
    """Stand for a process without Spark: a lake without ``spark=`` takes the session there is."""
    raise EnvironmentMissing("there is no Spark here", hint="none")


@contextmanager
def quick(spark: SparkSession) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in QUICK}
    try:
        for key, value in QUICK.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, str(old))
