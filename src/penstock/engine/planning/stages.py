"""Decide what a run does to the table of a model before it writes rows there: drop it, alter it,
or refuse to. Pure.

A plan shows these stages as the catalog is when it is made. A run decides by the same function in
the transaction that carries them out, where nobody else can come in between.

Other slices, another strategy or other keys are refused where rows of the table would be counted
twice, or lost, without a word. `penstock run MODEL --full-refresh` and `penstock drop` are the ways
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from penstock.engine.planning.schema_change import difference, fit_columns
from penstock.engine.state.records import WHOLE, SliceRecord
from penstock.errors import DefinitionChanged, SchemaMismatch
from penstock.model.definition.model import Model
from penstock.model.script.declaration import BY_TIME
from penstock.model.values.history import History
from penstock.model.values.strategy import Output, strategy_named
from penstock.sql.identifiers import fold

_SHOWN = 3
Place = tuple[str, str]  # the partition column, and a slice's value
FULL_REFRESH, RESTATEMENT = "full refresh", "restatement"
EMPTY = "it was made for other slices and has no rows"


@dataclass(frozen=True, slots=True)
class DropTable:
    """The table is dropped in the commit that makes what takes its place. ``holds`` names its
    slices, or counts its rows, where runs have recorded them.
    """

    name: ClassVar = "drop_table"
    why: str
    holds: str | None = None

    def __str__(self) -> str:
        return f"drops the table ({self.why})" + (f": {self.holds}" if self.holds else "")


@dataclass(frozen=True, slots=True)
class DropView:
    """The view gives way to a table of its name: it holds no rows."""

    name: ClassVar = "drop_view"

    def __str__(self) -> str:
        return "drops the view of that name"


@dataclass(frozen=True, slots=True)
class ReplaceView:
    """The view gets another query."""

    name: ClassVar = "replace_view"

    def __str__(self) -> str:
        return "replaces the view"


@dataclass(frozen=True, slots=True)
class AlterColumns:
    """The table gets columns that the SELECT has, and loses some that it lacks."""

    name: ClassVar = "alter_columns"
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"adds {', '.join(self.added)}"] if self.added else []
        return " and ".join([*parts, f"drops {', '.join(self.dropped)}"] if self.dropped else parts)


@dataclass(frozen=True, slots=True)
class KeepRows:
    """Rows that another strategy made stay beside those of the SELECT: ``how`` says how."""

    name: ClassVar = "keep_rows"
    how: str

    def __str__(self) -> str:
        return self.how


@dataclass(frozen=True, slots=True)
class Refuse:
    """The step fails, and the table stays as it is. ``place`` is the part of the script that it is
    about.
    """

    name: ClassVar = "refuse"
    why: str
    hint: str | None
    place: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.why

    def error(self, model: Model) -> DefinitionChanged:
        return DefinitionChanged(
            self.why, hint=self.hint, location=model.place(self.place), data=dict(self.data)
        )


Stage = DropTable | DropView | ReplaceView | AlterColumns | KeepRows | Refuse
_BY_NAME: Mapping[str, type[Stage]] = {
    each.name: each for each in (DropTable, DropView, ReplaceView, AlterColumns, KeepRows, Refuse)
}


def as_dict(stage: Stage) -> dict[str, Any]:
    """Return a stage as JSON has it; `read_stage` reads it."""
    return {"stage": stage.name} | {each.name: getattr(stage, each.name) for each in fields(stage)}


def read_stage(values: Mapping[str, Any]) -> Stage:
    """Raises KeyError and TypeError for what `as_dict` did not make."""
    own: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    return _BY_NAME[str(own.pop("stage"))](**own)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Facts about the name of a model's table, at one snapshot.

    ``kind`` is ``table``, ``view``, or None where the name is free. ``managed`` is the column that
    holds the values of slices, ``made_in`` the snapshot that made the table: what is recorded of
    earlier ones is another's of its name, which was dropped. ``count`` counts the rows of a place,
    or all. ``records`` are the target's, but those that are known to be of a slicing;
    ``is_recorded`` whether any is, at a snapshot or later.
    """

    kind: str | None = None
    columns: tuple[str, ...] = ()
    managed: str = "_wm_partition"
    made_in: int = 0
    count: Callable[[Place | None], int] = lambda _: 0
    records: Callable[[str | None], Sequence[SliceRecord]] = lambda _: ()
    is_recorded: Callable[[int], bool] = lambda _: False

    @property
    def is_view(self) -> bool:
        return self.kind == "view"

    @property
    def is_table(self) -> bool:
        return self.kind == "table"

    def lacks(self, names: Sequence[str]) -> list[str]:
        own = frozenset(map(fold, self.columns))
        return [name for name in names if fold(name) not in own]


@dataclass(frozen=True, slots=True)
class _Case:
    """``known`` is the record of the slice, ``place`` where its rows are; ``rebuild`` why the table
    is made from nothing.
    """

    model: Model
    facts: TableFacts
    known: SliceRecord | None
    place: Place | None
    rebuild: str | None


def table_stages(
    model: Model,
    facts: TableFacts,
    known: SliceRecord | None,
    *,
    place: Place | None = None,
    rebuild: str | None = None,
) -> tuple[Stage, ...]:
    """Decide what becomes of a model's table, or what has its name, before a slice is written."""
    decide = _BY_OUTPUT.get(model.strategy.output)
    if decide is None or facts.kind is None:
        return ()
    return tuple(decide(_Case(model, facts, known, place, rebuild)))


def _of_view(case: _Case) -> Iterator[Stage]:
    """A view holds no rows: one that a run made is replaced."""
    model, known = case.model, case.known
    ours = _is_view(known)
    if case.facts.is_view and (ours or case.rebuild):
        if known is None or not ours or known.definition_hash != model.definition_hash:
            yield ReplaceView()
    elif case.facts.is_table and case.rebuild:
        yield _rebuild(case, case.rebuild)
    else:
        yield _name_taken(case, "view")


def _of_statements(case: _Case) -> Iterator[Stage]:
    """Leave the rows to the script."""
    if case.facts.is_view:
        gives_way = case.rebuild or _is_view(case.known)
        yield DropView() if gives_way else _name_taken(case, "table")
    elif case.rebuild:
        yield _rebuild(case, case.rebuild)


def _of_table(case: _Case) -> Iterator[Stage]:
    before = tuple(_of_statements(case))
    yield from before
    if before:
        return
    model, facts = case.model, case.facts
    others = other_slices(model, facts, facts.records(model.slicing))
    stage = others or foreign_rows(model, facts) or lost_rows(model, facts, case.known, case.place)
    if stage is not None:
        yield stage


_BY_OUTPUT: Mapping[Output, Callable[[_Case], Iterator[Stage]]] = {
    Output.TABLE: _of_table,
    Output.STATEMENTS: _of_statements,
    Output.VIEW: _of_view,
}


def _is_view(known: SliceRecord | None) -> bool:
    return known is not None and strategy_named(known.strategy).output is Output.VIEW


def _rebuild(case: _Case, why: str) -> DropTable:
    records = case.facts.records(None)
    return DropTable(why, listed(records) if records else None)


def _name_taken(case: _Case, made: str) -> Refuse:
    model, kind = case.model, case.facts.kind
    there = f"a {kind}" if made != kind else f"a {kind} that no run made"
    return Refuse(
        f"{model.target} is {there}, and {model.name} makes a {made} of that name",
        f"to drop the {kind} (earlier snapshots keep it): penstock run {model.name} --full-refresh",
        "kind",
    )


def other_slices(
    model: Model, facts: TableFacts, records: Sequence[SliceRecord]
) -> DropTable | Refuse | None:
    """Refuse a table that holds slices of another kind than the model's, by ``records``. Where it
    was made for such slices and holds no row, nothing is lost when it is rebuilt.
    """
    others = [record for record in records if not record.is_slice_of(model)]
    in_slices = not facts.lacks((facts.managed,))
    if not others and in_slices == (model.partition is not None):
        return None
    if not facts.count(None):
        return DropTable(EMPTY) if others or in_slices else None
    if others:
        holds = listed(others)
    elif in_slices:
        holds = f"slices (its column {facts.managed} tells them apart)"
    else:
        holds = "rows that belong to no slice"
    now = _said(model.slicing) if model.slicing else "not partitioned"
    return _changed(model, "partition", f"holds {holds}, and the model is now {now}", others)


def foreign_rows(model: Model, facts: TableFacts) -> Refuse | None:
    """Refuse to replace rows that no run has written. What a strategy keeps, it takes as it is."""
    if not model.strategy.exact or facts.is_recorded(facts.made_in):
        return None
    rows = facts.count(None)
    if not rows:
        return None
    until = " --until DATE" if model.by_time is not None else ""
    return Refuse(
        f"{model.target} holds {_count(rows, 'row')} that no run has written, and {model.name} "
        "would replace them",
        f"if they are the model's, record them as made: `penstock adopt {model.name}{until}`; "
        f"to replace them: `penstock run {model.name} --full-refresh`; or give the model "
        "another table. Earlier snapshots keep what is there",
        "target",
        {"table": model.target.qualified, "rows": rows},
    )


def lost_rows(
    model: Model, facts: TableFacts, known: SliceRecord | None, place: Place | None
) -> KeepRows | Refuse | None:
    """Refuse a table whose rows the model's strategy would lose, or cannot continue."""
    strategy = model.strategy
    if model.history is not None:
        return _lacking_versions(model, model.history, facts)
    if strategy.merges:
        return _lacking_keys(model, facts, known, place)
    if known is None or known.strategy == strategy.name or not (rows := facts.count(place)):
        return None
    made = f"{_count(rows, 'row')} made by {known.strategy}"
    if strategy.by_partition_keys:
        return KeepRows(f"the SELECT's rows replace their partitions of {made}")
    if strategy.only_adds:
        return KeepRows(f"the SELECT's rows are added to {made}")
    problem = f"{of_place(place)}holds {made}, and replace would leave only what the SELECT returns"
    return _changed(model, "target", problem)


def _lacking_versions(model: Model, history: History, facts: TableFacts) -> Refuse | None:
    lacking = facts.lacks((*history.managed, *model.key_columns))
    if not lacking or not facts.count(None):
        return None
    return no_history(model, f"is not a history: it has no column {', '.join(lacking)}")


def _lacking_keys(
    model: Model, facts: TableFacts, known: SliceRecord | None, place: Place | None
) -> Refuse | None:
    """Rows that lack a key match nothing, so every row would be inserted again."""
    lacking = facts.lacks(model.key_columns)
    if not lacking or not other_keys(model, known) or not facts.count(place):
        return None
    return _changed(
        model,
        "target",
        f"has no column {', '.join(lacking)}, so none of the rows there has the key "
        f"{', '.join(model.keys)}",
    )


def other_keys(model: Model, known: SliceRecord | None) -> bool:
    """Return whether the existing rows may have been merged by other keys, or by none."""
    if known is None or known.strategy != model.strategy.name:
        return True
    if known.keys is None:  # an old record
        return known.definition_hash != model.definition_hash
    return tuple(map(fold, known.keys)) != tuple(map(fold, model.keys))


def bad_keys(model: Model, place: Place | None, nulls: int, repeated: int) -> Refuse:
    """Refuse to merge into rows with NULL in the key, or keys that several rows have: of these a
    merge would leave one.
    """
    faults = [f"{_count(nulls, 'row')} with NULL in it"] if nulls else []
    faults += [f"{_count(repeated, 'key')} shared by several rows"] if repeated else []
    problem = f"cannot be merged into by {', '.join(model.keys)}: it holds {' and '.join(faults)}"
    return _changed(model, "target", f"{of_place(place)}{problem}")


def no_history(model: Model, problem: str) -> Refuse:
    return Refuse(
        f"{model.target} {problem}",
        f"rebuild it: `penstock run {model.name} --full-refresh`, or "
        f"`penstock drop {model.name}`. Earlier snapshots keep what is there",
        "target",
        {"table": model.target.qualified},
    )


def column_stage(
    model: Model, selected: Sequence[str], facts: TableFacts
) -> AlterColumns | Refuse | None:
    """Decide what becomes of the columns of a table, where the SELECT has ``selected``."""
    managed = [] if model.partition is None else [facts.managed]
    managed += [] if model.history is None else model.history.managed
    changes = difference(selected, facts.columns, managed)
    try:
        fit = fit_columns(changes, model.schema_change, model.target.qualified)
    except SchemaMismatch as error:
        option = "on_destructive_change" if error.data["missing"] else "on_additive_change"
        return Refuse(error.message, error.hint, option)
    added = tuple(name for name in changes.added if name not in fit.leave_out)
    return AlterColumns(added, fit.drop) if added or fit.drop else None


def of_place(place: Place | None) -> str:
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


def _changed(model: Model, what: str, problem: str, slices: Sequence[SliceRecord] = ()) -> Refuse:
    sliced = any(record.slice for record in slices)
    or_slice = " (or one slice: --partition VALUE)" if sliced else ""
    return Refuse(
        f"{model.target} {problem}",
        f"put the line back; or rebuild the table: `penstock run {model.name} "
        f"--full-refresh`; or drop it: `penstock drop {model.name}`{or_slice}. Earlier "
        "snapshots keep what is there",
        what,
        {"table": model.target.qualified, "slices": [record.slice for record in slices]},
    )
