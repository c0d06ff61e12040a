"""Record what the slices of a batch are made from: tables, files, arguments and data tests."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.distribution import VERSION
from penstock.engine.inputs.pinned_tables import Pins
from penstock.engine.planning.files_read import files_of
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.records import InputRead, ReadRecord
from penstock.model.script.file_uris import depends_on_slice
from penstock.uuid7 import new_uuid7


def read_records(context: RunContext, planned: PlannedStep, pins: Pins) -> Mapping[str, ReadRecord]:
    """Return the records of what slices read, by their texts: each its own where its files are, and
    where some lack something.
    """
    slices = planned.slices
    by_slice = any(depends_on_slice(each.path) for each in planned.model.query.files)
    if len(slices) == 1 or not (by_slice or planned.without):
        record = read_record(context, planned, pins)
        return dict.fromkeys((slice_.text for slice_ in slices), record)
    narrowed = ((each, context.plan.narrowed(planned, (each,))) for each in slices)
    return {slice_.text: read_record(context, own, pins) for slice_, own in narrowed}


def read_record(context: RunContext, planned: PlannedStep, pins: Pins) -> ReadRecord:
    """Return the record of what one attempt reads, under an id of its own."""
    model, root = planned.model, context.settings.root
    lakes = {table.lake for table in model.inputs} | {model.target.lake}
    return ReadRecord(
        read_id=new_uuid7(),
        target=model.target.qualified,
        run_id=context.run_id,
        lakes={lake: at for lake, at in pins.versions.items() if lake in lakes},
        inputs=(
            *(InputRead("table", str(table)) for table in model.changing_inputs),
            *(files_of(model, planned.bindings, root) if model.query.files else ()),
        ),
        arguments=model.given(context.plan.args),
        tests=model.terms,
        version=VERSION,
        missing=planned.without.get(planned.slices[0]),
        settings=context.conf,
    )
