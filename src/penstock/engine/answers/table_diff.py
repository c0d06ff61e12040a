"""Say what differs between two states of a table, or two tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.answers.comparing import Compared, NotUnique, Rule, compare
from penstock.model.values.data_test import UniqueTest
from penstock.rendering.columns import Answers, html, read_columns
from penstock.rendering.text import count, line
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.model.definition.model import Model


@dataclass(frozen=True, slots=True)
class TableDiff:
    """The differences in ``table`` between two snapshots, or from it to ``other``, both as they are
    now.

    ``key`` are the columns by which rows were matched: without one by their ids, those that lack
    their like by whole rows. ``columns_added`` and ``columns_dropped`` are not compared. ``run``
    is the run whose changes alone count, if one was asked for.
    """

    table: str
    other: str | None
    from_snapshot: int | None
    to_snapshot: int | None
    run: str | None
    key: tuple[str, ...]
    changes: Compared
    columns_added: tuple[str, ...] = ()
    columns_dropped: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        return bool(self.changes.differs or self.columns_added or self.columns_dropped)

    def __repr__(self) -> str:
        found = self.changes
        said = f"{found.inserted} inserted, {found.deleted} deleted, {found.updated} updated"
        return line(self, self.table if self.other is None else f"{self.table}, {self.other}", said)


class TableDiffs(Answers[TableDiff]):
    """The result of `Project.diff`: a table each."""

    __slots__ = ()
    columns = read_columns(
        "table inserted=changes.inserted deleted=changes.deleted updated=changes.updated "
        "columns=columns_updated"
    )

    def _repr_html_(self) -> str:
        return html(self.columns, self, count(len(self), "table"))


@dataclass(frozen=True, slots=True)
class Sides:
    """Rows before and after, with what both are called; of one table with an id of each row."""

    before: DataFrame
    after: DataFrame
    names: tuple[str, str] = ("the table", "the table")
    row_id: str | None = None

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """The names of the columns of both."""
        old, new = (
            [name for name in frame.columns if name != self.row_id]
            for frame in (self.before, self.after)
        )
        return old, new

    @property
    def common(self) -> list[str]:
        """The columns that both have, as the later has them."""
        old, new = self.columns
        known = set(map(fold, old))
        return [name for name in new if fold(name) in known]


def added_and_dropped(
    old: Sequence[str], new: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that only the later have, and those that only the earlier have."""

    def lacking(names: Sequence[str], others: Sequence[str]) -> Iterator[str]:
        known = set(map(fold, others))
        return (name for name in names if fold(name) not in known)

    return tuple(lacking(new, old)), tuple(lacking(old, new))


def key_of_model(model: Model | None, partition_column: str) -> tuple[str, ...]:
    """The columns by which rows of a model's table are one each, as far as it says so: its keys,
    its grain, or what a data test says is unique.
    """
    if model is None:
        return ()
    slices = (partition_column,) if model.partition is not None else ()
    if model.keys and not model.key_expressions:
        history = model.history
        versions = (history.valid_from,) if history and model.strategy.keeps_versions else ()
        return (*model.keys, *versions, *slices)
    if model.about.grains:
        return (*model.about.grains[0], *slices)
    unique = (test.columns for test in model.data_tests if isinstance(test, UniqueTest))
    found = next(unique, ())
    return (*found, *slices) if found else ()


def compare_sides(
    sides: Sides, key: Sequence[str], samples: int, *, sure: bool
) -> tuple[Compared, tuple[str, ...]]:
    """Compare by a key, and return it; by row ids or whole rows where several rows have it, unless
    it is ``sure`` that it should be used: then ArgumentError is raised.
    """
    rule = Rule(sides.common, tuple(key), sides.row_id, samples)
    try:
        return compare(sides.before, sides.after, rule), tuple(key)
    except NotUnique:
        if sure:
            raise
        return compare_sides(sides, (), samples, sure=True)
