"""Report past runs: lists of them, what is recorded of each, and why a slice is as it is."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError, CatalogUnreachable
from penstock.project.planning import build_request, plan_request
from penstock.project.states import report_status
from penstock.settings.quantities import is_duration, seconds_of

if TYPE_CHECKING:
    from penstock.engine.answers.runs import PastRuns, RunDetail, RunLogLines
    from penstock.engine.answers.why import Why
    from penstock.project.context import ProjectContext

LAST_RUNS = 20  # that a list shows


def moment_since(since: str | datetime | None, now: datetime | None = None) -> datetime | None:
    """The moment that ``24h`` before now, or a time with its zone, is. Raises ArgumentError."""
    from penstock.engine.planning.run_arguments import fired

    if isinstance(since, str) and is_duration(since):
        return (now or datetime.now(UTC)) - timedelta(seconds=seconds_of(since))
    try:
        return None if since is None else fired(since)
    except ArgumentError as error:
        if "time zone" in error.message:
            raise
        raise ArgumentError(
            f"{str(since)!r} is neither an age nor a time",
            hint='write an age, such as "24h" or "7d", or a time: 2026-11-27T22:00Z',
        ) from None


def list_runs(
    context: ProjectContext,
    model: str | None = None,
    *,
    failed: bool = False,
    since: str | datetime | None = None,
    limit: int = LAST_RUNS,
    all_environments: bool = False,
) -> PastRuns:
    """List the latest runs, newest first.

    Args:
        context: The project.
        model: List only runs that built slices of this model, or tried to.
        failed: List only runs that failed or were killed.
        since: An age such as ``24h``, or a time.
        limit: The largest number of runs.
        all_environments: List the runs of environments with other tables as well.

    Returns:
        The runs.

    Raises:
        ArgumentError: An argument is wrong.
        CatalogUnreachable: A catalog cannot be opened.
    """
    from penstock.engine.answers.logs import find_log
    from penstock.engine.answers.runs import past_runs
    from penstock.engine.state.run_history import AskedRuns

    target = None if model is None else context.model(model).target
    asked = AskedRuns(
        limit,
        moment_since(since),
        failed,
        None if target is None else target.qualified,
        None if all_environments else context.settings.runs_in.suffix,
    )
    try:
        catalogs = context.existing_catalogs()
    except CatalogUnreachable as error:
        directory = context.settings.retention.directory
        if directory is not None and find_log(directory, "last") is not None:
            error.hint = f"{error.hint}; penstock logs last shows a run without the catalog"
        raise
    return past_runs(catalogs, asked, None if target is None else target.lake)


def describe_run(context: ProjectContext, run: str = "last") -> RunDetail:
    """Return everything that is recorded of a run.

    Args:
        context: The project.
        run: An id, a part with which exactly one id begins or ends, or ``last``.

    Returns:
        The run.

    Raises:
        ArgumentError: No run is called so, or several are.
    """
    from penstock.engine.answers.runs import run_detail
    from penstock.engine.state.run_log import log_of

    catalogs, directory = context.existing_catalogs(), context.settings.retention.directory
    detail = run_detail(catalogs, find_run_id(context, run))
    if directory is None:
        return detail
    return detail.with_log(log_of(directory, detail.run.run_id))


def read_log(context: ProjectContext, run: str = "last") -> RunLogLines:
    """Return the log of a run, or of the last run of a model.

    Args:
        context: The project.
        run: A run as in `describe_run`, or a model, whose own steps are read.

    Returns:
        The lines.

    Raises:
        ArgumentError: This machine has no such log.
    """
    from penstock.engine.answers.logs import find_log
    from penstock.engine.answers.runs import RunLogLines, no_log

    directory = context.settings.retention.directory
    model = next((each for each in context.models if each.name == run), None)
    path = None if model is not None else find_log(directory, run)
    if path is not None:
        return RunLogLines(path, None)
    if model is None:
        with suppress(ArgumentError):
            model = context.model(run)
    if model is None:
        try:
            run_id = find_run_id(context, run)
        except ArgumentError as error:
            error.hint = f"{error.hint}; a model is named as penstock status has it"
            raise
        raise no_log(context.existing_catalogs(), run_id)
    latest = list_runs(context, model.name, limit=1)
    if not latest:
        raise ArgumentError(f"no run of {model.name} is recorded", hint="penstock run makes it")
    path = find_log(directory, latest[0].run_id)
    if path is None:
        raise no_log(context.existing_catalogs(), latest[0].run_id)
    return RunLogLines(path, model.name)


def explain_state(context: ProjectContext, model: str, partition: str | None = None) -> Why:
    """Explain the state of a table, or of a slice.

    Args:
        context: The project.
        model: The model.
        partition: The slice; None for the whole table.

    Returns:
        The run that built it, its inputs, what a run would do now, and its readers.

    Raises:
        ArgumentError: The model is unknown.
        PartitionError: The model cannot have the slice.
    """
    from penstock.engine.answers.why import Why, chosen, history, now, waits
    from penstock.engine.planning.plan import without_slices
    from penstock.model.time.slice import Part, Slice

    shown = context.model(model)
    if partition is not None and not shown.slicing and shown.by_time is None:
        raise without_slices(shown.name, partition)
    status = report_status(context, [shown.name])[0]
    planned, request = build_request(context, [shown.name], {"partition": partition})
    plan = plan_request(planned, request)
    step = next((each for each in plan.steps if each.name == shown.name), None)
    slice_: Slice | None = None
    if partition is not None:
        slice_ = Part(partition) if shown.partition is not None else None
        if step is not None and step.slices and shown.by_time is not None:
            slice_ = step.slices[0]
    text = None if slice_ is None else str(slice_)
    known = chosen(status.slices, text)
    state = status.state if partition is None else "missing"
    until = waits(step)
    makers = {str(each.target): each for each in context.models}
    of = history(shown, slice_, context.existing_catalogs(), makers)
    return Why(
        model=shown.name,
        table=str(shown.target),
        slice=text,
        state=state if known is None else known.state,
        reason=None if known is None else known.reason,
        made=of.made,
        tried=of.tried,
        inputs=of.inputs,
        now=tuple(now(step, slice_)),
        waits_for=until["waiting"],
        held_by=until["held"],
        readers=context.graph.children()[shown.name],
    )


def find_run_id(context: ProjectContext, text: str) -> str:
    """Return the id of the run that a text names."""
    from penstock.engine.answers.runs import run_id_of

    return run_id_of(context.existing_catalogs(), text, context.settings.runs_in.suffix)
