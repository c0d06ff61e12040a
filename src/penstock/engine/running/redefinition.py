"""A model that no longer fits its table: its columns, its slices, its strategy or its keys.

Other columns are for the model's `SchemaChange` to decide; a whole-table replace makes the table
anew and needs none of it.

Other slices, another strategy or other keys are refused where rows of the table would be counted
twice, or lost, without a word. `penstock run MODEL --full-refresh` and `penstock drop` are the ways
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.state.records import WHOLE, SliceRecord
from penstock.engine.strategies.upsert import key_in_spark
from penstock.errors import DefinitionChanged, Location, SchemaMismatch
from penstock.model.definition.model import Model
from penstock.model.script.declaration import BY_TIME, SchemaChange
from penstock.sql.identifiers import fold
from penstock.sql.substitution import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.staging import TransactionTable


_SHOWN = 3
Place = tuple[str, str]  # the partition column, and a slice's value


def refuse_other_slices(
    model: Model, records: Sequence[SliceRecord], table: TransactionTable, column: str
) -> bool:
    """Raise DefinitionChanged where the table holds slices of another kind than the model's.

    ``column`` is the one that carries the slice's value. True where the table was made for such
    slices and holds no row: nothing is lost when it is rebuilt.
    """
    others = [record for record in records if not record.is_slice_of(model)]
    in_slices = any(fold(name) == fold(column) for name in table.schema.names)
    if not others and in_slices == (model.partition is not None):
        return False
    if not table.count_rows():
        return bool(others) or in_slices
    if others:
        holds = listed(others)
    elif in_slices:
        holds = f"slices (its column {column} tells them apart)"
    else:
        holds = "rows that belong to no slice"
    now = _said(model.slicing) if model.slicing else "not partitioned"
    raise _changed(model, "partition", f"holds {holds}, and the model is now {now}", others)


def made_since(table: TransactionTable) -> int:
    """The snapshot that made the table: what is recorded of earlier ones is another's of its name,
    which was dropped."""
    base = table.candidate.base
    return 0 if base is None else base.begin_snapshot


def refuse_foreign(
    model: Model, table: TransactionTable, is_recorded: Callable[[int], bool]
) -> None:
    """Raise DefinitionChanged where a model would replace rows that no run has written.

    ``is_recorded`` says whether a slice of the table is recorded at a snapshot or later. What a
    strategy keeps, it takes as it is.
    """
    if not model.strategy.exact or is_recorded(made_since(table)):
        return
    rows = table.count_rows()
    if not rows:
        return
    until = " --until DATE" if model.by_time is not None else ""
    raise DefinitionChanged(
        f"{model.target} holds {_count(rows, 'row')} that no run has written, and {model.name} "
        "would replace them",
        hint=(
            f"if they are the model's, record them as made: `penstock adopt {model.name}{until}`; "
            f"to replace them: `penstock run {model.name} --full-refresh`; or give the model "
            "another table. Earlier snapshots keep what is there"
        ),
        location=model.place("target"),
        data={"table": model.target.qualified, "rows": rows},
    )


def refuse_lost_rows(
    model: Model, known: SliceRecord | None, table: TransactionTable, place: Place | None
) -> str | None:
    """Raise DefinitionChanged where the model's strategy would lose rows of the table.

    ``known`` is the slice's record. Returns a notice of a change that keeps them, or None.
    """
    strategy = model.strategy
    if strategy.merges:
        _refuse_keys(model, known, table, place)
    if known is None or known.strategy == strategy.name:
        return None
    rows = table.count_rows(place)
    if not rows or strategy.merges:
        return None
    if strategy.by_partition_keys:
        rows_there = f"{_count(rows, 'row')} made by {known.strategy}"
        return f"the SELECT's rows replace their partitions of {rows_there}"
    if strategy.only_adds:
        return f"the SELECT's rows are added to {_count(rows, 'row')} made by {known.strategy}"
    raise _changed(
        model,
        "target",
        f"{_of(place)}holds {_count(rows, 'row')} made by {known.strategy}, and replace would "
        "leave only what the SELECT returns",
    )


def _refuse_keys(
    model: Model, known: SliceRecord | None, table: TransactionTable, place: Place | None
) -> None:
    """Rows that lack a key match nothing, so every row would be inserted again; of several rows
    with one key a merge would leave one.
    """
    if not _may_differ(model, known) or not table.count_rows(place):
        return
    keys = ", ".join(model.keys)
    lacking = [column for column in model.key_columns if table.schema.find(column) is None]
    if lacking:
        raise _changed(
            model,
            "target",
            f"has no column {', '.join(lacking)}, so none of the rows there has the key {keys}",
        )
    if model.upsert.merge_filter:  # which lets a key come again
        return
    nulls, repeated = _not_keys([key_in_spark(key, model) for key in model.keys], table, place)
    if nulls or repeated:
        faults = [f"{_count(nulls, 'row')} with NULL in it"] if nulls else []
        faults += [f"{_count(repeated, 'key')} shared by several rows"] if repeated else []
        raise _changed(
            model,
            "target",
            f"{_of(place)}cannot be merged into by {keys}: it holds {' and '.join(faults)}",
        )


def _may_differ(model: Model, known: SliceRecord | None) -> bool:
    """Return whether the existing rows may have been merged by other keys, or by none."""
    if known is None or known.strategy != model.strategy.name:
        return True
    if known.keys is None:  # an old record
        return known.definition_hash != model.definition_hash
    return tuple(map(fold, known.keys)) != tuple(map(fold, model.keys))


def _not_keys(keys: Sequence[str], table: TransactionTable, place: Place | None) -> tuple[int, int]:
    """How many rows have a NULL among the keys, and how many keys are those of several rows.

    ``keys`` are expressions in Spark's SQL.
    """
    from pyspark.sql import functions as fn

    rows = table.to_df() if place is None else table.slice_df(*place)
    named = rows.selectExpr(
        *(unsubstituted(f"{key} AS _penstock_{at}") for at, key in enumerate(keys))
    )
    counted = named.groupBy(*named.columns).agg(fn.count("*").alias("_penstock_rows"))
    is_null = fn.lit(False)
    for name in named.columns:
        is_null = is_null | fn.col(name).isNull()
    rows_of_key = fn.col("_penstock_rows")
    counts = counted.agg(
        fn.coalesce(fn.sum(fn.when(is_null, rows_of_key)), fn.lit(0)),
        fn.count(fn.when(~is_null & (rows_of_key > 1), True)),
    ).first()
    assert counts is not None, "an aggregate without groups has one row"
    return counts[0], counts[1]


def _of(place: Place | None) -> str:
    return "" if place is None else f"(slice {place[1]}) "


def _said(slicing: str) -> str:
    """The slicing that a script declares."""
    return "intervals of time" if slicing == BY_TIME else f"`partitioned {slicing}`"


def listed(records: Sequence[SliceRecord]) -> str:
    """31 slices of `partitioned daily` (2013-01-01, 2013-01-02, 2013-01-03, ... 2013-01-31)"""
    kinds = sorted({record.slicing for record in records if record.slicing})
    if all(record.slice == WHOLE for record in records):
        return _count(sum(record.rows or 0 for record in records), "row")
    of = f" of {' and '.join(map(_said, kinds))}" if kinds else ""
    values = [record.slice or "the whole table" for record in records]
    if len(values) > _SHOWN + 1:
        values = [*values[:_SHOWN], f"... {values[-1]}"]
    return f"{_count(len(records), 'slice')}{of} ({', '.join(values)})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _changed(
    model: Model, what: str, problem: str, slices: Sequence[SliceRecord] = ()
) -> DefinitionChanged:
    or_slice = " (or one slice: --slice VALUE)" if any(record.slice for record in slices) else ""
    return DefinitionChanged(
        f"{model.target} {problem}",
        hint=(
            f"put the line back; or rebuild the table: `penstock run {model.name} "
            f"--full-refresh`; or drop it: `penstock drop {model.name}`{or_slice}. Earlier "
            "snapshots keep what is there"
        ),
        location=model.place(what),
        data={"table": model.target.qualified, "slices": [record.slice for record in slices]},
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """Columns that only the SELECT has, and columns that only the table has."""

    added: tuple[str, ...]
    missing: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.missing)

    def __str__(self) -> str:
        parts = [f"{_list(self.added)} new"] if self.added else []
        if self.missing:
            parts.append(f"{_list(self.missing)} missing")
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Fit:
    """Columns of the SELECT to leave out, columns of the table to drop, what to say.

    ``evolves``: the table takes new columns and wider types.
    """

    leave_out: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    evolves: bool = False
    notices: tuple[str, ...] = ()


def difference(
    selected: Sequence[str], table: Sequence[str], managed: Sequence[str] = ()
) -> Difference:
    """``managed`` are columns that the engine writes and no SELECT has."""
    have, want = {fold(name) for name in selected}, {fold(name) for name in table}
    have |= set(map(fold, managed))
    return Difference(
        added=tuple(name for name in selected if fold(name) not in want),
        missing=tuple(name for name in table if fold(name) not in have),
    )


def refuse_managed(columns: Sequence[str], managed: str, location: Location) -> None:
    """The partition column is the engine's to write (seeds/materialization.md)."""
    if fold(managed) in map(fold, columns):
        raise SchemaMismatch(
            f"the SELECT has a column {managed}, which Penstock writes itself",
            hint=f"leave it out, as in SELECT * EXCEPT ({managed}), or give it another name",
            location=location,
            data={"column": managed},
        )


def fit_columns(
    columns: Difference, change: SchemaChange, table: str, *, merges: bool = False
) -> Fit:
    """Raises SchemaMismatch when the model does not allow the difference.

    ``merges``: rows that the SELECT updates keep their values of columns that it lacks.
    """
    _refuse_columns(columns, change, table)
    adds, drops = change.added in _ACTS, change.missing in _ACTS
    drop = columns.missing if drops else ()
    return Fit(
        leave_out=() if adds else columns.added,
        drop=drop,
        evolves=adds or bool(drop),
        notices=tuple(_column_notices(columns, change, table, merges=merges)),
    )


def frozen(model: Model) -> str:
    """The ways on where a history's columns are not those of its SELECT: versions that are closed
    keep what they had."""
    adds = "on_schema_change=sync"
    if model.history is not None and model.history.is_current is None:
        adds = "on_additive_change allow"
    refresh = f"`penstock run {model.name} --full-refresh`"
    if model.disable_restatement:
        refresh += " (with disable_restatement false)"
    return (
        f"the columns of a history are frozen: {adds} adds new ones, and {refresh} starts the "
        "history over; earlier snapshots keep what is there"
    )


def without(df: DataFrame, columns: Sequence[str]) -> DataFrame:
    return df.drop(*columns) if columns else df


_ACTS = ("allow", "warn")


def _refuse_columns(columns: Difference, change: SchemaChange, table: str) -> None:
    added = columns.added if change.added == "error" else ()
    missing = columns.missing if change.missing == "error" else ()
    refused = Difference(added, missing)
    if refused:
        raise SchemaMismatch(
            f"the SELECT's columns are not those of {table}: {refused}",
            hint="change the SELECT, or let the table follow it: on_schema_change in a header, "
            "on_additive_change and on_destructive_change in MODEL (...)",
            data={"added": added, "missing": missing},
        )


def _column_notices(
    columns: Difference, change: SchemaChange, table: str, *, merges: bool
) -> Iterator[str]:
    if columns.added and change.added == "warn":
        yield f"{table}: {_list(columns.added)} added; NULL in the rows of earlier runs"
    if columns.missing and change.missing == "warn":
        yield f"{table}: {_list(columns.missing)} dropped: the SELECT lacks {_it(columns.missing)}"
    if columns.missing and change.missing == "keep":
        now = "NULL from now on"
        if merges:
            now = "NULL in new rows; rows that are updated keep what they have"
        yield f"{table}: {_list(columns.missing)} missing in the SELECT: {now}"


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {_is(names)}"


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
