"""The rows of a batch: from its query, from what changed in its input, from a joint query of many
slices, or from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.file_reader import NoFiles
from penstock.engine.inputs.pinned_tables import Beginning
from penstock.engine.inputs.resolve import FilesRead, Resolved, files_of, resolve
from penstock.engine.python.serve import WrittenFile, scratch
from penstock.engine.python.step import Outcome, made_rows, runner_of
from penstock.engine.running.attempt import Attempt
from penstock.engine.running.new_input import Reading, reading_of, refuse_doubled
from penstock.engine.running.writing import StepRows
from penstock.engine.state.records import SliceRecord
from penstock.errors import MergeKeyError, PenstockError, QueryFailed
from penstock.model.query.render import RenderedQuery, trial_names
from penstock.model.script.sources import FileSource, QuerySource
from penstock.model.slicing.joint import Joint, joint_query, slice_columns, sliced_files
from penstock.model.slicing.slice_condition import NotJoint, SliceFilter
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.engine.inputs.sliced_files import FilesOf
    from penstock.engine.running.new_input import NewFiles


@dataclass(frozen=True, slots=True)
class SourceRows:
    """``rows`` are staged one after the other; ``files`` were written besides, and wait to be
    moved. ``inputs``: up to which snapshot the changes of each table are among them; ``new_files``
    those of a model that reads such.
    """

    rows: Iterable[StepRows]
    files: tuple[WrittenFile, ...] = ()
    inputs: Mapping[str, int] | None = None
    new_files: NewFiles | None = None


def rows_of(attempt: Attempt, known: SliceRecord | None, *, begins: bool) -> SourceRows:
    """The rows of a single slice, of which ``known`` is recorded; ``begins``: its table is new."""
    model = attempt.model
    reading = reading_of(model, known, attempt.pins) if model.reads_changes else Reading()
    attempt.notice(reading.said)
    if model.python is not None:
        outcome = run_python(attempt)
        rows = made_rows(outcome, model, attempt.table, attempt.column)
        return SourceRows(rows, outcome.files, reading.inputs)
    attempt.say("querying")
    beginning = Beginning.of(model, attempt.column) if begins else None
    if model.reads_files:
        return _rows_of_new_files(attempt, known, beginning)
    resolved = attempt.resolve(beginning, reading.given)
    if reading.given and model.strategy.merges and model.upsert.sequence is None:
        _refuse_doubled(attempt, resolved, attempt.resolve().df)
    return SourceRows((resolved,), inputs=reading.inputs)


def _rows_of_new_files(
    attempt: Attempt, known: SliceRecord | None, beginning: Beginning | None
) -> SourceRows:
    from penstock.engine.running.new_input import new_files

    chosen = new_files(attempt, known)
    attempt.notice(chosen.said)
    resolved = attempt.resolve(beginning, own_files=chosen.files)
    return SourceRows((resolved,), new_files=chosen)


def run_python(attempt: Attempt) -> Outcome:
    attempt.say("running")
    folder = attempt.held.enter_context(scratch())
    return runner_of(attempt.context, attempt.planned, attempt.pins, attempt.views, folder).run()


def _refuse_doubled(attempt: Attempt, changed: Resolved, whole: DataFrame) -> None:
    """Raises MergeKeyError."""
    model = attempt.model
    attempt.held.callback(changed.df.persist().unpersist)
    some, every = (cast_to(df, model.columns) for df in (changed.df, whole))
    try:
        refuse_doubled(model, some, every, attempt.context.lake_of(model).limits)
    except QueryFailed as error:
        raise changed.placed(error) from error.__cause__
    except MergeKeyError as error:
        error.location = model.place("unique_key")
        raise


def joint_rows(attempt: Attempt) -> Resolved:
    """The rows of many slices by one query, whose last column is the slice. Raises NotJoint."""
    model, spec = attempt.model, attempt.model.partition
    assert spec is not None, "it has slices"
    values = tuple(slice_.text for slice_ in attempt.planned.slices)
    attempt.say("querying")
    files = sliced_files(model.query)
    sliced = _files_of_slices(attempt, files) if files else {}

    def asked(text: Callable[[Joint], str]) -> Resolved:
        def shape(rendered: RenderedQuery, names: Mapping[QuerySource, str]) -> str:
            return text(joint_query(rendered, slice_columns(model.query, names)))

        bindings = attempt.planned.bindings
        return resolve(model.query, bindings, attempt.reader, own_files=sliced, shape=shape)

    names = trial_names(model.query.sources)
    own = joint_query(model.query.render(names), slice_columns(model.query, names))
    told: list[SliceFilter] = []
    for number, condition in enumerate(own.conditions):
        if condition.by_time:
            told.append(condition.by_bounds(values, spec))
            continue
        trial = asked(partial(_trial, number=number))
        told.append(condition.by_value(values, trial.df.dtypes[0][1]))
    resolved = asked(lambda joint: joint.query(attempt.column, told))
    if [fold(name) for name in resolved.df.columns].count(fold(attempt.column)) != 1:
        raise NotJoint(f"its SELECT has a column {attempt.column}")
    attempt.log(resolved)
    return resolved


def _files_of_slices(attempt: Attempt, files: Mapping[FileSource, str]) -> FilesRead:
    """The files of all slices whose path the slice is part of. Raises NotJoint."""
    from penstock.engine.inputs.sliced_files import read_together

    context, query, root = attempt.context, attempt.model.query, attempt.context.settings.root
    found: dict[str, FilesOf | PenstockError] = {}
    for slice_ in attempt.planned.slices:
        bindings = context.plan.narrowed(attempt.planned, (slice_,)).bindings
        try:
            found[slice_.text] = {each: files_of(each, query, bindings, root) for each in files}
        except PenstockError as error:  # the slice will fail on its own, in its own words
            found[slice_.text] = error
    return read_together(files, _with_files(found), context.session)


def _with_files(
    found: Mapping[str, FilesOf | PenstockError],
) -> dict[str, FilesOf | PenstockError]:
    """Leave out the slices whose files are all missing, as they may be: the query has no rows of
    them. Raises NotJoint where nothing is left, and for a slice that lacks some of its files.
    """
    left: dict[str, FilesOf | PenstockError] = {}
    for text, files in found.items():
        read = [] if isinstance(files, PenstockError) else [*files.values()]
        missing = sum(isinstance(each, NoFiles) for each in read)
        if 0 < missing < len(read):
            raise NotJoint(f"some files of {text} are missing")
        if not missing:
            left[text] = files
    if not left:
        raise NotJoint("no slice has a file")
    return left


def _trial(joint: Joint, number: int) -> str:
    return joint.trials[number]
