"""The answer of a statement: some rows known without Spark, usable as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.spark.session import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

COUNTS = (
    *("num_affected_rows", "num_updated_rows"),
    *("num_deleted_rows", "num_inserted_rows"),
)


_SHOWN = 20  # rows of a repr


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """Rows instead of a DataFrame, as most uses of a result need no Spark.

    For everything else a DataFrame is created at the first use. ``types`` are Spark's names.
    """

    columns: list[str]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    spark: SparkSource

    def to_df(self) -> DataFrame:
        """The same as a DataFrame of the session."""
        pairs = zip(self.columns, self.types, strict=True)
        schema = ", ".join(f"`{name}` {kind}" for name, kind in pairs)
        if not schema:
            from pyspark.sql.types import StructType

            return self.spark().createDataFrame([], StructType([]))
        return self.spark().createDataFrame(list(self.rows), schema)

    def collect(self) -> list[Row]:
        from pyspark.sql import Row

        make = Row(*self.columns)
        return [make(*row) if self.columns else Row() for row in self.rows]

    def first(self) -> Row | None:
        rows = self.collect()
        return rows[0] if rows else None

    def count(self) -> int:
        return len(self.rows)

    def limit(self, number: int) -> Answer:
        return Answer(self.columns, self.types, self.rows[:number], self.spark)

    def toLocalIterator(self) -> Iterator[Row]:  # noqa: N802 - as a DataFrame has it
        return iter(self.collect())

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return list(zip(self.columns, (kind.lower() for kind in self.types), strict=True))

    def __repr__(self) -> str:
        shown = (dict(zip(self.columns, row, strict=True)) for row in self.rows[:_SHOWN])
        more = ", ..." if len(self.rows) > _SHOWN else ""
        return f"[{', '.join(map(repr, shown))}{more}]"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what notebooks ask for before they show it starts no Spark
            raise AttributeError(name)
        return getattr(self.to_df(), name)

    def __getitem__(self, item: Any) -> Any:
        return self.to_df()[item]


def nothing(spark: SparkSource) -> Answer:
    """The answer of a statement without rows."""
    return Answer([], (), (), spark)


def counts(spark: SparkSource, *, updated: int = 0, deleted: int = 0, inserted: int = 0) -> Answer:
    """The rows that a statement changed, as Delta names them."""
    row = (updated + deleted + inserted, updated, deleted, inserted)
    return Answer(list(COUNTS), ("long",) * 4, (row,), spark)


def table(spark: SparkSource, columns: str, rows: Sequence[tuple[Any, ...]]) -> Answer:
    """Rows under columns written as in ``name STRING, count LONG``."""
    pairs = [column.strip().split(" ", 1) for column in columns.split(",")]
    names, types = [pair[0] for pair in pairs], tuple(pair[1].lower() for pair in pairs)
    return Answer(names, types, tuple(rows), spark)
