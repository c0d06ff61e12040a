"""Find what a step of a past run was made from, and the rows that it wrote.

A run records its plan, the definitions of its models, and for each commit which snapshots and files
were read and with which arguments. What cannot be repeated for certain is refused in words.

Find the rows that a step of a past run wrote, and those of a query that they are compared with.

A strategy says which rows of the table are the step's: its slice, the rows of its keys, those that
were added, or the versions of a history that its query had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.engine.answers.comparing import Sides
from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.planning.files_read import is_as_it_was
from penstock.engine.planning.recorded_plan import RecordedPlan, RecordedStep
from penstock.engine.planning.saved_plan import slice_of
from penstock.engine.planning.slices import bindings_at
from penstock.engine.state.records import InputRead, ReadRecord, StepRecord
from penstock.engine.strategies.time_range import rows_in_ranges
from penstock.model.definition.model import EXPANDED, SCRIPT, Model, part_of_embedded
from penstock.model.project.loader import Loaded, model_of_text
from penstock.model.script.constants import Bindings
from penstock.model.slicing.undated import views_read, why_unrepeatable
from penstock.model.time.interval import Interval, union
from penstock.model.time.slice import Part, Slice
from penstock.model.values.strategy import Output
from penstock.spark.functions import expr
from penstock.sql.identifiers import fold, quoted
from penstock.states import PUBLISHED
from penstock.uuid7 import uuid7_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import Destination


DONE = "done"


class CannotReproduce(Exception):
    """A step cannot be made once more as it was; the text says why."""


@dataclass(frozen=True, slots=True)
class PastStep:
    """A slice that a step of a run made, or found as it would have made it.

    ``model`` is as it was defined then, ``now`` the time of the run, ``read`` what was read. The
    slice is as it was left at the snapshot ``at``, which ``wrote`` it unless nothing was to be
    changed; ``begins``: its table was made from nothing.
    """

    model: Model
    slice: Slice
    read: ReadRecord
    now: datetime
    at: int
    wrote: bool
    begins: bool = False

    @property
    def bindings(self) -> Bindings:
        return bindings_at(self.model, self.slice, self.read.arguments, self.now)


def planned_of(plan: str | None, step: StepRecord) -> tuple[RecordedPlan, RecordedStep]:
    """Return what the plan of a run says of one of its steps. Raises CannotReproduce."""
    if plan is None:
        raise CannotReproduce("the plan of the run is not recorded, or pruned")
    recorded = RecordedPlan.parse(plan)
    planned = next((each for each in recorded.steps if each.step == step.step), None)
    if planned is None:
        raise CannotReproduce("the plan of the run does not have it")
    return recorded, planned


def require_made(step: StepRecord) -> None:
    """Raise CannotReproduce where a step has published nothing."""
    if step.state not in PUBLISHED:
        reason = f": {step.reason.splitlines()[0]}" if step.reason else ""
        raise CannotReproduce(f"the run did not make it ({step.state}{reason})")


def model_then(loaded: Loaded, step: str, definition: str, parts: Mapping[str, str]) -> Model:
    """Return a model as it was defined when its definition had this hash, of which ``parts`` are
    recorded: with them macros, variables and EMBEDDED queries may have changed since, Python code
    may not.

    Raises CannotReproduce.
    """
    model = next((each for each in loaded.models if each.name == step), None)
    if model is None:
        raise CannotReproduce("the model does not exist any more: restore its file to reproduce it")
    if model.definition_hash == definition:
        return model
    if model.python is not None:
        raise CannotReproduce("its Python code has changed since, and only its hash is recorded")
    text = parts.get(SCRIPT)
    if text is None:
        raise CannotReproduce("its definition has changed since, and that of then is not recorded")
    for then in _rebuilt(loaded, model, text, parts):
        if then is not None and then.definition_hash == definition:
            return then
    differ = _what_differs(model_of_text(loaded, model.path, text), parts)
    raise CannotReproduce(
        f"its definition has changed since, and beside its script this also differs: {differ}"
    )


def _rebuilt(
    loaded: Loaded, model: Model, text: str, parts: Mapping[str, str]
) -> Iterator[Model | None]:
    """Yield what a model may have been when it had this script: by the macros, variables and
    EMBEDDED queries as they are, and as they are recorded.
    """
    yield model_of_text(loaded, model.path, text)
    then = _with_inner(loaded, parts)
    yield model_of_text(then, model.path, text)
    query, expanded = parts.get("query"), parts.get(EXPANDED)
    if query and expanded and text.count(query) == 1:
        select = query[query.rfind(";") + 1 :].lstrip()  # after ATTACH; the hash tells a wrong cut
        before = query.removesuffix(select)
        yield model_of_text(then, model.path, text.replace(query, before + expanded))


def _with_inner(loaded: Loaded, parts: Mapping[str, str]) -> Loaded:
    """Return the project with the queries of EMBEDDED models as they are recorded."""
    models = list(loaded.models)
    for number, model in enumerate(models):
        query = parts.get(part_of_embedded(model.target))
        if query is None:
            continue
        text = model.definition_parts[SCRIPT]
        if text.count(model.query.text) != 1:
            continue
        then = model_of_text(loaded, model.path, text.replace(model.query.text, query))
        models[number] = then or model
    return replace(loaded, models=tuple(models))


def _what_differs(now: Model | None, parts: Mapping[str, str]) -> str:
    """Return which parts of a definition are others than those that are recorded, in words."""
    own = {} if now is None else now.definition_parts
    names = [name for name in {**parts, **own} if parts.get(name) != own.get(name)]
    if now is None or not names:
        return "a macro, a variable, an EMBEDDED model or a setting of the project"
    return ", ".join(names)


def require_repeatable(model: Model, loaded: Loaded) -> None:
    """Raise CannotReproduce for what makes other rows each time, and for what no query tells."""
    for why in _why_not(model, loaded):
        raise CannotReproduce(why)


def _why_not(model: Model, loaded: Loaded) -> Iterator[str]:
    strategy = model.strategy
    if strategy.output is not Output.TABLE:
        yield f"{strategy} makes {strategy.output.value}, whose rows are not written by a query"
    volatile = why_unrepeatable(model, views_read(loaded.models).get(model.name, ()))
    if volatile is not None:
        yield volatile
    if model.custom is not None:
        yield "a strategy of the project decides which rows it writes"
    if model.query.after or model.upsert or model.key_expressions:
        yield "rules or statements beside its query decide which rows it writes"
    if model.reads_files:
        yield "it reads only files that no run had read before"
    if model.reads_changes and strategy.only_adds:
        yield "it reads only what had changed in its input since the run before"


def read_of(step: StepRecord, reads: Sequence[ReadRecord]) -> ReadRecord:
    """Return what a slice was made from, of all that was read for its table in the run, in the
    order of time: the last before it ended. Raises CannotReproduce.
    """
    ended = step.finished_at or datetime.max.replace(tzinfo=UTC)
    before = [each for each in reads if _time_of(each) <= ended]
    if not before:
        raise CannotReproduce("what it read is not recorded, or pruned since it was made again")
    return before[-1]


def together_with(read: ReadRecord, reads: Sequence[ReadRecord]) -> list[ReadRecord]:
    """The reads of the same commit: each of other files."""
    return [each for each in reads if each.lakes == read.lakes]


def of_these_files(reads: Sequence[ReadRecord], files: Sequence[InputRead]) -> ReadRecord:
    """Return the read whose files are called like these; the last, if none is."""
    names = {each.name for each in files}
    same = (each for each in reads if {file.name for file in files_in(each)} == names)
    return next(same, reads[-1])


def files_in(read: ReadRecord) -> list[InputRead]:
    return [each for each in read.inputs if each.kind == "file"]


def require_same_files(read: ReadRecord, now: Sequence[InputRead]) -> list[str]:
    """Raise CannotReproduce for a file that is gone, has changed or is new; return the names of
    those that nobody can tell of, which are not on this machine.
    """
    current = {each.name: each for each in now}
    before = {each.name: each for each in files_in(read)}
    for name, file in before.items():
        if name not in current:
            raise CannotReproduce(f"the file {name} that it read is gone")
        if not is_as_it_was(current[name], file):
            raise CannotReproduce(f"the file {name} has changed since it was read")
    for name in current:
        if name not in before:
            raise CannotReproduce(f"the file {name} was not there when it was made")
    return [name for name, file in before.items() if file.size is None]


def _time_of(read: ReadRecord) -> datetime:
    return uuid7_time(read.read_id) or datetime.min.replace(tzinfo=UTC)


def slice_then(step: StepRecord, model: Model) -> Slice:
    """Return the slice of a recorded step. Raises CannotReproduce where the model has none such."""
    found = slice_of(step.slice)
    if (model.partition is None) == hasattr(found, "value"):
        raise CannotReproduce(f"its slices are others now: it has no {step.slice or 'whole table'}")
    return found


def sides_of(past: PastStep, made: DataFrame, lake: Destination, partition_column: str) -> Sides:
    """Return what the step wrote, and what its query has ``made`` now, with the columns of both.

    Raises SnapshotNotFound, TableNotFound.
    """
    wrote, strategy = _of_slice(past, lake, partition_column), past.model.strategy
    made = _as_types(made, wrote)
    interval = past.slice if isinstance(past.slice, Interval) else None
    if strategy.time_column and interval is not None:
        by_time, dialect = past.model.time_range, past.model.query.dialect
        assert by_time is not None, "it has a time column"
        inside = union((interval,))
        made = rows_in_ranges(made, by_time, inside, dialect)
        wrote = rows_in_ranges(wrote, by_time, inside, dialect)
    if strategy.merges:
        wrote = _like(wrote, made, [quoted(name) for name in past.model.keys])
    if strategy.by_partition_keys:
        wrote = _like(wrote, made, past.model.layout.partitioned_by)
    if strategy.keeps_versions:  # versions of before, and those that it closed, are not its rows
        common = [name for name in made.columns if _has(wrote, name)]
        names = [quoted(name) for name in common]
        made = made.distinct()
        wrote = _like(wrote, made, names).select(*names).distinct()
    return Sides(wrote, made)


def _of_slice(past: PastStep, lake: Destination, partition_column: str) -> DataFrame:
    """The rows of the slice as they were left; of rows that are only added, those."""
    table = lake.table(table_name(past.model.target))
    if not past.model.strategy.only_adds:
        rows = table.to_df(version=past.at)
    elif past.wrote:
        rows = table.changed_rows(past.at - 1, past.at, only_new=True).df
        rows = rows.select(*map(quoted, table.info(past.at).schema.names))
    else:
        rows = table.to_df(version=past.at).limit(0)
    if isinstance(past.slice, Part):
        rows = rows.where(expr(quoted(partition_column)) == past.slice.value)
        rows = rows.drop(partition_column)
    return rows


def _has(frame: DataFrame, name: str) -> bool:
    return fold(name) in set(map(fold, frame.columns))


def _as_types(made: DataFrame, wrote: DataFrame) -> DataFrame:
    """The rows with the types of the table, as writing them gives them."""
    kinds = {fold(name): kind for name, kind in wrote.dtypes}
    columns = [
        expr(quoted(name))
        if kinds.get(fold(name), kind) == kind or "<" in kind
        else expr(quoted(name)).cast(kinds[fold(name)]).alias(name)
        for name, kind in made.dtypes
    ]
    return made.select(*columns)


def _like(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows that have one of the others' values of some expressions; NULL is a value."""
    own = [expr(key).alias(f"own_{i}") for i, key in enumerate(keys)]
    wanted = others.select(*(expr(key).alias(f"key_{i}") for i, key in enumerate(keys)))
    same = " AND ".join(f"own_{i} <=> key_{i}" for i in range(len(keys)))
    found = rows.select("*", *own).join(wanted.distinct(), expr(same), "left_semi")
    return found.drop(*(f"own_{i}" for i in range(len(keys))))
