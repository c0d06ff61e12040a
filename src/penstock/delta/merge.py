"""MERGE into a Delta table, with every clause; an upsert by key writes its source as it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from penstock.delta.scan import ADDRESS, read
from penstock.delta.staged import Change, Staged
from penstock.errors import ArgumentError, ColumnNotFound, MergeKeyError
from penstock.lake.reading.conversions.spark_types import cast_type
from penstock.lazy import pa, pc
from penstock.spark.failures import explained
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import fold, quoted
from penstock.sql.text import Predicate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

TARGET, SOURCE = "target", "source"
Kind = Literal["matched", "not_matched", "not_matched_by_source"]
Action = Literal["update", "insert", "delete"]
_ACTIONS: Mapping[str, frozenset[str]] = {
    "matched": frozenset({"update", "delete"}),
    "not_matched": frozenset({"insert"}),
    "not_matched_by_source": frozenset({"update", "delete"}),
}
_CLAUSE, _IN_SOURCE, _ROWS = "_penstock_clause", "_penstock_in_source", "_penstock_rows"
_ALL = Predicate(None)
_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Clause:
    """``WHEN kind AND condition THEN action``.

    ``condition`` and the expressions of ``assignments``, by column, name columns ``target.c`` and
    ``source.c``. Without assignments all columns are set to those of the source of the same name.
    """

    kind: Kind
    action: Action
    condition: str | None = None
    assignments: Mapping[str, str] | None = field(default=None, hash=False)


UPSERT = (Clause("matched", "update"), Clause("not_matched", "insert"))


def merge(
    staged: Staged,
    source: DataFrame,
    on: str | Sequence[str],
    clauses: Sequence[Clause] = UPSERT,
) -> Staged:
    """Merge rows by keys, names of columns that are equal (NULL equals nothing), or by a condition
    on ``target`` and ``source``. The first clause that holds for a row counts.

    Raises MergeKeyError where keys of the source are NULL or come twice, or where by a condition
    several of its rows would change one row.
    """
    _check_clauses(clauses)
    with explained(table=staged.place.name), _kept(source) as rows:
        if isinstance(on, str):
            return _by_clauses(staged, rows, expr(on), _ALL, clauses)
        keys = [_key(staged, rows, name) for name in on]
        if not keys:
            raise ArgumentError("no keys to merge by", hint="name at least one column")
        range_ = _range(staged, _check_keys(rows, keys, staged.place.name), clauses)
        if tuple(clauses) == UPSERT and _has_all(staged, rows):
            return _upsert(staged, rows, keys, range_)
        return _by_clauses(staged, rows, _equal(keys), range_, clauses)


def _check_clauses(clauses: Sequence[Clause]) -> None:
    if not clauses:
        raise ArgumentError("a merge without clauses", hint="give UPSERT, or clauses of your own")
    for clause in clauses:
        if clause.action not in _ACTIONS.get(clause.kind, ()):
            raise ArgumentError(
                f"a merge does not {clause.action} rows {clause.kind}",
                hint="matched: update or delete; not_matched: insert; not_matched_by_source: "
                "update or delete",
            )
        if clause.assignments is None and (clause.kind, clause.action) == (
            "not_matched_by_source",
            "update",
        ):
            raise ArgumentError(
                "an update of rows not matched by the source has no row to take values from",
                hint="give assignments",
            )


@contextmanager
def _kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are the same each time they are read."""
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _key(staged: Staged, source: DataFrame, name: str) -> tuple[str, str]:
    """The names of a key in the table and in the source."""
    column = staged.schema.find(name)
    theirs = next((n for n in source.columns if fold(n) == fold(name)), None)
    if column is None or theirs is None:
        where = f"the Delta table {staged.place.name}" if column is None else "the source"
        raise ColumnNotFound(
            f"the key {name!r} is not a column of {where}",
            hint="merge by columns that both have",
            data={"column": name},
        )
    return column.name, theirs


def _equal(keys: Sequence[tuple[str, str]]) -> SparkColumn:
    pairs = [
        fn.col(f"{TARGET}.{quoted(ours)}") == fn.col(f"{SOURCE}.{quoted(theirs)}")
        for ours, theirs in keys
    ]
    return reduce(lambda a, b: a & b, pairs)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The first key's lowest and highest value in the source, and the number of its rows."""

    name: str
    low: Any
    high: Any
    rows: int


def _check_keys(source: DataFrame, keys: Sequence[tuple[str, str]], table: str) -> _Keys:
    """Look at the keys of the source by one job. Raises MergeKeyError."""
    columns = [fn.col(quoted(theirs)) for _, theirs in keys]
    counted = source.groupBy(*columns).agg(fn.count(fn.lit(1)).alias(_ROWS))
    is_null = reduce(lambda a, b: a | b, [column.isNull() for column in columns])
    (found,) = counted.agg(
        fn.sum(_ROWS),
        fn.sum(fn.when(is_null, fn.col(_ROWS))),
        fn.sum(fn.when((fn.col(_ROWS) > 1) & ~is_null, fn.col(_ROWS))),
        fn.min(columns[0]),
        fn.max(columns[0]),
    ).collect()
    total, nulls, doubles, low, high = found
    if nulls or doubles:
        wrong = counted.where(is_null | (fn.col(_ROWS) > 1)).drop(_ROWS).limit(_SAMPLES)
        samples = [row.asDict() for row in wrong.collect()]
        raise MergeKeyError(
            f"the source of the merge into {table} has {nulls or 0} rows with a key that is NULL "
            f"and {doubles or 0} with one that comes twice",
            hint="keep one row of each key in the SELECT",
            data={
                "null_count": nulls or 0,
                "duplicate_count": doubles or 0,
                "samples": samples,
            },
        )
    return _Keys(keys[0][0], low, high, total or 0)


def _range(staged: Staged, keys: _Keys, clauses: Sequence[Clause]) -> Predicate:
    """The rows that can matter: those of the source's keys, or all where rows without a partner
    matter too.
    """
    low, high = _literal(keys.low), _literal(keys.high)
    if low is None or high is None or any(c.kind == "not_matched_by_source" for c in clauses):
        return _ALL
    name = quoted(keys.name)
    return staged.predicate(f"{name} >= {low} AND {name} <= {high}")


def _literal(value: Any) -> str | None:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _has_all(staged: Staged, source: DataFrame) -> bool:
    """Return whether the source has every column of the table."""
    theirs = {fold(name) for name in source.columns}
    return all(fold(column.name) in theirs for column in staged.schema.columns)


def _upsert(
    staged: Staged, source: DataFrame, keys: Sequence[tuple[str, str]], range_: Predicate
) -> Staged:
    """All rows of the source come, and those of their keys go."""
    files = staged.matching(range_)
    rows = read(staged.place.spark(), staged.scan(files), addresses=True).alias(TARGET)
    matched = rows.join(source.alias(SOURCE), _equal(keys), "left_semi")
    found = (
        matched.select(ADDRESS).toArrow()[ADDRESS] if files else pa.chunked_array([], pa.int64())
    )
    made, updated = staged.without_rows(found)
    written = made.write(source)
    change = Change(written.rows - updated, updated, 0, written.rows)
    return made.with_rows(written).depends_on(range_).done("MERGE", change)


def _by_clauses(
    staged: Staged,
    source: DataFrame,
    condition: SparkColumn,
    range_: Predicate,
    clauses: Sequence[Clause],
) -> Staged:
    scan = staged.scan(staged.matching(range_))
    target = read(staged.place.spark(), scan, addresses=True).alias(TARGET)
    marked = source.withColumn(_IN_SOURCE, fn.lit(True)).alias(SOURCE)
    joined = target.join(marked, condition, _join(clauses))
    names = {fold(name) for name in source.columns}
    actions = joined.select(
        fn.col(f"{TARGET}.{ADDRESS}").alias(ADDRESS),
        _number(clauses).alias(_CLAUSE),
        *(_value(column, clauses, names) for column in staged.schema.columns),
    )
    with _kept(actions.where(fn.col(_CLAUSE).isNotNull())) as rows:
        return _staged(staged.depends_on(range_), rows, clauses)


def _join(clauses: Sequence[Clause]) -> str:
    kinds = {clause.kind for clause in clauses}
    if "not_matched_by_source" in kinds:
        return "full_outer" if "not_matched" in kinds else "left_outer"
    return "right_outer" if "not_matched" in kinds else "inner"


def _number(clauses: Sequence[Clause]) -> SparkColumn:
    """The first clause that holds for a row, NULL where none does."""
    ours, theirs = fn.col(f"{TARGET}.{ADDRESS}"), fn.col(f"{SOURCE}.{_IN_SOURCE}")
    kinds = {
        "matched": ours.isNotNull() & theirs.isNotNull(),
        "not_matched": ours.isNull(),
        "not_matched_by_source": theirs.isNull(),
    }
    chosen: Any = fn
    for at, clause in enumerate(clauses):
        holds = kinds[clause.kind]
        if clause.condition is not None:
            holds = holds & expr(clause.condition)
        chosen = chosen.when(holds, fn.lit(at))
    number: SparkColumn = chosen
    return number


def _value(column: Any, clauses: Sequence[Clause], source: set[str]) -> SparkColumn:
    """A column of the rows that come."""
    chosen: Any = fn
    for at, clause in enumerate(clauses):
        if clause.action != "delete":
            value = _set_to(column.name, clause, source)
            chosen = chosen.when(_number_is(clauses, at), value.cast(cast_type(column)))
    if chosen is fn:
        chosen = fn.lit(None).cast(cast_type(column))
    made: SparkColumn = chosen.alias(column.name)
    return made


def _number_is(clauses: Sequence[Clause], at: int) -> SparkColumn:
    return _number(clauses) == fn.lit(at)


def _set_to(name: str, clause: Clause, source: set[str]) -> SparkColumn:
    """The value that a clause sets a column to."""
    if clause.assignments is not None:
        by_name = {fold(key): text for key, text in clause.assignments.items()}
        if fold(name) in by_name:
            return expr(by_name[fold(name)])
    elif fold(name) in source:
        return fn.col(f"{SOURCE}.{quoted(name)}")
    return fn.lit(None) if clause.action == "insert" else fn.col(f"{TARGET}.{quoted(name)}")


def _staged(staged: Staged, rows: DataFrame, clauses: Sequence[Clause]) -> Staged:
    by_action: dict[str, list[int]] = {"update": [], "insert": [], "delete": []}
    for at, clause in enumerate(clauses):
        by_action[clause.action].append(at)
    counts = {row[0]: row[1] for row in rows.groupBy(_CLAUSE).count().collect()}
    update, insert, delete = (
        sum(counts.get(at, 0) for at in by_action[action])
        for action in ("update", "insert", "delete")
    )
    found = rows.where(fn.col(ADDRESS).isNotNull()).select(ADDRESS).toArrow()[ADDRESS]
    if len(pc.unique(found)) != len(found):
        raise MergeKeyError(
            f"several rows of the source match one row of {staged.place.name}",
            hint="keep one row of each key in the source",
            data={"null_count": 0, "duplicate_count": len(found) - len(pc.unique(found))},
        )
    made, _ = staged.without_rows(found)
    written_rows = update + insert
    if written_rows:
        kept = fn.col(_CLAUSE).isin(*by_action["update"], *by_action["insert"])
        written = made.write(rows.where(kept).drop(ADDRESS, _CLAUSE))
        made = made.with_rows(written)
    return made.done("MERGE", Change(insert, update, delete, written_rows))
