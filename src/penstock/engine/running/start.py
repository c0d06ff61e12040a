"""The start of a batch: what is recorded of its slices, and the table that it finds, makes way for,
or refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from penstock.engine.history.load_fingerprint import last_load
from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.running.attempt import Attempt
from penstock.engine.running.history_guard import refuse_no_history
from penstock.engine.running.redefinition import (
    listed,
    made_since,
    refuse_foreign,
    refuse_lost_rows,
    refuse_other_slices,
)
from penstock.engine.running.view import clear_name
from penstock.engine.session.world import World
from penstock.engine.state.records import Requirement, SliceRecord
from penstock.model.definition.model import Model
from penstock.model.joint.slice_condition import NotJoint
from penstock.model.time.interval import Interval

Known = Mapping[str, SliceRecord]  # records of slices, by their texts


@dataclass(frozen=True, slots=True)
class Start:
    """``known`` are the records that count of the slices of a batch, by their texts; ``first``:
    there is no table; ``anew``: it is dropped and made from nothing.
    """

    known: Known = field(default_factory=dict)
    first: bool = False
    anew: bool = False

    @classmethod
    def of(cls, known: SliceRecord | None, *, first: bool = False, anew: bool = False) -> Start:
        return cls({} if known is None else {known.slice: known}, first, anew)


def known_of(world: World, planned: PlannedStep) -> tuple[Known, Requirement | None]:
    """The records of a batch's slices, and what its commit requires of those that are there."""
    model, texts = planned.model, tuple(slice_.text for slice_ in planned.slices)
    state, target = world.states[model.target.lake], model.target.qualified
    depends = _depends_on_records(model)
    if len(texts) > 1 or (depends and isinstance(planned.only, Interval)):
        records: Sequence[SliceRecord] = state.slices(target)
    else:
        known = state.slice(target, texts[0])
        records = [] if known is None else [known]
    required = Requirement.of(target, texts, records) if depends else None
    return {record.slice: record for record in records}, required


def _depends_on_records(model: Model) -> bool:
    """Tell whether what a model makes follows from the records of its slices, and would be wrong on
    top of what another run recorded meanwhile. Others find that out by the rows.
    """
    return model.strategy.builds_on_slices or model.reads_changes


def start_table(attempt: Attempt, known: SliceRecord | None) -> Start:
    """The table of a single slice. Raises DefinitionChanged for one that has to be dropped first,
    unless the run was asked to.
    """
    if clear_name(attempt.tx, attempt.model, known, anew=attempt.rebuilds):
        known = None
    if not attempt.table.exists:
        return Start(first=True)
    if _drops(attempt, known):
        return Start(anew=True)
    return Start.of(known)


def _drops(attempt: Attempt, known: SliceRecord | None) -> bool:
    """Drop the table where it is to be made from nothing; whether it was."""
    model, table, target = attempt.model, attempt.table, attempt.target
    if attempt.rebuilds:
        records = attempt.state.slices(target)
        if records:
            what = "restatement" if attempt.planned.again else "full refresh"
            attempt.notice(f"{what} drops {listed(records)}, which earlier snapshots keep")
        table.drop()
        return True
    if model.strategy.by_statements:  # what becomes of the rows is up to the script
        return False
    others = attempt.state.slices(target, unless=model.slicing)
    if refuse_other_slices(model, others, table, attempt.column):
        table.drop()
        return True
    refuse_foreign(model, table, partial(attempt.state.is_recorded, target))
    if model.history is not None:
        refuse_no_history(model, last_load(attempt.state.slices(target)), table)
        return False
    attempt.notice(refuse_lost_rows(model, known, table, attempt.place))
    return False


def start_joint(attempt: Attempt, known: Known) -> Start:
    """The table of many slices. Raises NotJoint for one that others made."""
    model, table = attempt.model, attempt.table
    if not table.exists:
        if attempt.tx.kind_of(table_name(model.target)) is not None:
            raise NotJoint("its name is a view's")
        return Start(first=True)
    if not table.fits_slices(attempt.column):
        raise NotJoint("files of its table hold rows of several slices")
    for record in known.values():
        if record.strategy != model.strategy.name or not record.is_slice_of(model):
            raise NotJoint(f"its slice {record.slice} was made in another way")
    since = made_since(table)
    if not any(each.snapshot_id >= since for each in known.values()) and table.count_rows():
        raise NotJoint("its table has rows that no run has written")
    return Start(known)
