"""``fn``: Spark's functions of columns, loaded when one of them is used (`penstock.lazy`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lazy import Late

if TYPE_CHECKING:
    from pyspark.sql import functions as fn
else:
    fn = Late("pyspark.sql.functions")

__all__ = ["fn"]
