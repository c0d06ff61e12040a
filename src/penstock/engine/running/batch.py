"""A batch: slices of one step that one query makes and one commit publishes; often a single one.

It begins with what is recorded, stages a candidate, tests it slice by slice, and publishes what
passes. What fails leaves the table as it was.
"""

from __future__ import annotations

from penstock.engine.planning.plan import PlannedStep
from penstock.engine.running.attempt import Attempt, known_of
from penstock.engine.running.publish import MadeSlice, execute_files, publish
from penstock.engine.running.writers import write
from penstock.engine.session.run_context import RunContext
from penstock.errors import DataFileMissing
from penstock.model.definition.graph import table_key
from penstock.model.values.strategy import Output


def execute(context: RunContext, planned: PlannedStep) -> list[MadeSlice]:
    """Make the slices of a step, once, and return what became of each; of a range of time that
    does not pass its tests as a whole, of its parts.

    Raises NotJoint for slices that are to be made one by one, Cancelled, or what the tree of errors
    has; then nothing was published.
    """
    known, required = known_of(context, planned)
    try:
        with Attempt.begin(context, planned) as attempt:
            if planned.model.strategy.output is Output.FILES:
                return execute_files(attempt, known.get(planned.only.text))
            candidate = write(attempt, known)
            found = candidate.verdicts()
            attempt.say_tests([each.checks for each in found])
            passed = [each.slice for each in found if not each.failed]
            if 0 < len(passed) < len(found):
                candidate = candidate.keep(passed)
            return publish(candidate, found, required)
    except DataFileMissing as error:
        raise _with_maker(error, context, planned) from error.__cause__


def _with_maker(
    error: DataFileMissing, context: RunContext, planned: PlannedStep
) -> DataFileMissing:
    """The error, with the model in its hint that makes the table of the missing file."""
    path, name = str(error.data.get("path")), error.data.get("table")
    for table in (planned.model.target, *planned.model.inputs):
        catalog = context.lakes[table.lake].catalog
        known = catalog.known_table(table.schema, table.table, catalog.latest())
        maker = context.plan.makers.get(table_key(table))
        if known is None or maker is None:
            continue
        if path.startswith(known.path) or name == table.qualified:
            error.hint = (
                f"restore the file, or rebuild {table}: penstock run {maker} --full-refresh"
            )
            break
    return error
