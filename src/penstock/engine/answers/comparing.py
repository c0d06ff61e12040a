"""Compare two sets of rows, or two states of tables: rows that came, went or changed, and where.

Rows belong together by a key, or by an id of each row. What is left without a key is matched with
an equal row, so that a table that was written again as it was has no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError
from penstock.model.values.data_test import UniqueTest
from penstock.rendering.columns import Answers, html, read_columns
from penstock.rendering.text import count, line
from penstock.spark.failures import explained
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import fold, nearest, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.model.definition.model import Model


INSERTED, DELETED, UPDATED, SAME = "inserted", "deleted", "updated", "same"
# Columns of the comparison beside those of the tables, which are inside of the structs.
_OLD, _NEW, _KEY, _DIFFERS = "old_row", "new_row", "key_", "differs_"
_OLDS, _NEWS = "old_rows", "new_rows"  # their numbers
_SIDES, _SIZES = (_OLD, _NEW), (_OLDS, _NEWS)
_MOST = "most"  # rows with one key
# Spark compares and groups by no maps and variants: by their JSON it does.
_AS_JSON = ("map<", "variant", "geometry", "geography")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that was inserted, deleted or updated. ``before`` has the old values of the columns
    that an update changed.
    """

    change: str
    row: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compared:
    """Numbers of rows, of updated ones in ``columns`` by each column that changed. ``same`` are
    those that were compared and are equal.
    """

    inserted: int = 0
    deleted: int = 0
    updated: int = 0
    same: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[RowChange, ...] = ()

    @property
    def differs(self) -> bool:
        return bool(self.inserted or self.deleted or self.updated)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by which rows are matched, and the columns that are compared.

    ``key`` are some of them. Without a key, ``row_id`` is a column of both frames beside them, or
    there is none. ``samples`` of each kind of change are returned.
    """

    columns: Sequence[str]
    key: Sequence[str] = ()
    row_id: str | None = None
    samples: int = 5


class NotUnique(ArgumentError):
    """Several rows have one key."""


def compare(before: DataFrame, after: DataFrame, rule: Rule) -> Compared:
    """Compare rows that have the columns of ``rule``. Raises NotUnique for a key that several rows
    have.
    """
    ways = _ways(before, after, rule.columns)
    with explained(), _persisted(_matched(before, after, rule, ways)) as matched:
        found = matched.agg(*_counts(rule.columns)).head()
        counts = found.asDict() if found is not None else {}
        if rule.key and (counts[_MOST] or 0) > 1:
            raise _not_unique(matched, rule)
        changed = {name: counts[f"{_DIFFERS}{i}"] or 0 for i, name in enumerate(rule.columns)}
        return Compared(
            inserted=counts[INSERTED] or 0,
            deleted=counts[DELETED] or 0,
            updated=counts[UPDATED] or 0,
            same=counts[SAME] or 0,
            columns={name: number for name, number in changed.items() if number},
            samples=tuple(_samples(matched, rule, ways)) if rule.samples else (),
        )


def key_of(
    text: str | Sequence[str] | None, columns: Sequence[str], table: str = "the table"
) -> tuple[str, ...]:
    """The columns that ``a,b`` names, as they are written in a table. Raises ArgumentError."""
    names = text.split(",") if isinstance(text, str) else text or ()
    known = {fold(name): name for name in columns}
    found = []
    for name in (each.strip() for each in names):
        if fold(name) not in known:
            near = nearest(name, columns)
            hint = f"did you mean {near!r}?" if near else f"columns are {', '.join(columns)}"
            raise ArgumentError(f"there is no column {name!r} in {table}", hint=hint)
        found.append(known[fold(name)])
    return tuple(found)


def _ways(before: DataFrame, after: DataFrame, columns: Sequence[str]) -> dict[str, str]:
    """The way in which each column is compared: as it is, by its JSON, or as text."""
    old, new = ({fold(name): kind for name, kind in frame.dtypes} for frame in (before, after))
    return {name: way(old[fold(name)], new[fold(name)]) for name in columns}


def way(old: str, new: str) -> str:
    """The expression by which values of two types of Spark are compared."""
    if any(part in kind for kind in (old, new) for part in _AS_JSON):
        return "to_json({})"
    if old == new or all(kind.startswith(_NUMBERS) for kind in (old, new)):
        return "{}"
    return "CAST({} AS STRING)"


def _matched(before: DataFrame, after: DataFrame, rule: Rule, ways: Mapping[str, str]) -> DataFrame:
    """_OLD and _NEW with their numbers, _OLDS and _NEWS, and which columns differ.

    Each row is one of both sides, or stands for some equal ones.
    """
    whole = [ways[name].format(quoted(name)) for name in rule.columns]
    by = [quoted(name) for name in rule.key or ((rule.row_id,) if rule.row_id else ())] or whole
    old, new = _sided(before, rule, by, _OLD), _sided(after, rule, by, _NEW)
    matched = _together(old, new, len(by))
    if rule.row_id and not rule.key:
        lone = expr(f"{_OLDS} = 0 OR {_NEWS} = 0")
        keys = [
            fn.coalesce(*(expr(ways[name].format(f"{side}.{quoted(name)}")) for side in _SIDES))
            for name in rule.columns
        ]
        equals = _grouped(matched.where(lone).select(*_SIDES, *_numbered(keys)), len(keys))
        matched = matched.where(~lone).unionByName(equals)
    differing = [
        expr(f"{_OLDS} > 0 AND {_NEWS} > 0 AND NOT ({old} <=> {new})").alias(f"{_DIFFERS}{i}")
        for i, (old, new) in enumerate(
            tuple(ways[name].format(f"{side}.{quoted(name)}") for side in _SIDES)
            for name in rule.columns
        )
    ]
    any_ = " OR ".join(f"{_DIFFERS}{i}" for i in range(len(differing)))
    return matched.select("*", *differing).withColumn(_DIFFERS, expr(any_ or "false"))


def _sided(frame: DataFrame, rule: Rule, by: Sequence[str], side: str) -> DataFrame:
    """The columns as a struct named ``side``, and the values to match by."""
    row = fn.struct(*(fn.col(quoted(name)).alias(name) for name in rule.columns))
    return frame.select(row.alias(side), *_numbered([expr(each) for each in by]))


def _numbered(columns: Sequence[SparkColumn]) -> list[SparkColumn]:
    return [column.alias(f"{_KEY}{i}") for i, column in enumerate(columns)]


def _together(old: DataFrame, new: DataFrame, width: int) -> DataFrame:
    return _grouped(old.unionByName(new, allowMissingColumns=True), width)


def _grouped(rows: DataFrame, width: int) -> DataFrame:
    """Rows with equal values to match by: the first of each side, and how many."""
    grouped = rows.groupBy(*(f"{_KEY}{i}" for i in range(width))).agg(
        *(fn.first(side, ignorenulls=True).alias(side) for side in _SIDES),
        *(fn.count(side).alias(number) for side, number in zip(_SIDES, _SIZES, strict=True)),
    )
    return grouped.select(*_SIDES, *_SIZES)


def _counts(columns: Sequence[str]) -> Iterator[SparkColumn]:
    both = f"least({_OLDS}, {_NEWS})"
    sums = {
        INSERTED: f"greatest({_NEWS} - {_OLDS}, 0)",
        DELETED: f"greatest({_OLDS} - {_NEWS}, 0)",
        UPDATED: f"if({_DIFFERS}, {both}, 0)",
        SAME: f"if({_DIFFERS}, 0, {both})",
    }
    for name, text in sums.items():
        yield fn.sum(expr(text)).alias(name)
    for i in range(len(columns)):
        yield fn.count_if(f"{_DIFFERS}{i}").alias(f"{_DIFFERS}{i}")
    yield fn.max(fn.greatest(*_SIZES)).alias(_MOST)


def _samples(matched: DataFrame, rule: Rule, ways: Mapping[str, str]) -> Iterator[RowChange]:
    """The first rows of each kind, in the order of the key, or of all columns."""
    kinds = {
        INSERTED: f"{_NEWS} > {_OLDS}",
        DELETED: f"{_OLDS} > {_NEWS}",
        UPDATED: f"{_NEWS} = {_OLDS} AND {_DIFFERS}",
    }
    for kind, condition in kinds.items():
        side = _OLD if kind == DELETED else _NEW
        order = [ways[n].format(f"{side}.{quoted(n)}") for n in rule.key or rule.columns]
        rows = matched.where(condition).orderBy(*map(expr, order)).limit(rule.samples)
        for row in rows.collect():
            values = row[side].asDict()
            differing = [n for i, n in enumerate(rule.columns) if row[f"{_DIFFERS}{i}"]]
            old = {name: row[_OLD][name] for name in differing} if kind == UPDATED else {}
            yield RowChange(kind, values, old)


def _not_unique(matched: DataFrame, rule: Rule) -> NotUnique:
    row = matched.where(f"greatest({_OLDS}, {_NEWS}) > 1").head()
    assert row is not None, "there is such a key"
    values = (row[_OLD] or row[_NEW]).asDict()
    said = ", ".join(f"{name} = {values[name]}" for name in rule.key)
    return NotUnique(
        f"{max(row[_OLDS], row[_NEWS])} rows have {said}, so that is not a key",
        hint="name columns that only one row has: --key a,b",
        data={"key": list(rule.key)},
    )


@contextmanager
def _persisted(frame: DataFrame) -> Iterator[DataFrame]:
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


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
