"""``penstock why``: why a slice is as it is, and what a run would do with it, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import common_options, complete_model, load_project, partition_option
from penstock.cli.output import clock, print_json, say_prose
from penstock.cli.paths import local
from penstock.errors import ArgumentError
from penstock.rendering.text import SHORT_ID, slice_state

if TYPE_CHECKING:
    from penstock.engine.answers.why import Why, WhyRun
    from penstock.server.explaining import FiringCause, Triggering


@click.command(
    "why",
    short_help="Say why a model ran, or did not.",
    epilog="""\b
Examples:
  penstock why clean/flights
  penstock why clean/flights 2013-01-01
  penstock why marts/airline_ranking --json""",
)
@click.argument("model", shell_complete=complete_model)
@click.argument("value", metavar="[SLICE]", required=False)
@partition_option("The same as SLICE.")
@common_options
def command(
    *,
    model: str,
    value: str | None,
    partition: str | None,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Say why MODEL, or one SLICE of it (by default the current one), is as it is.

    Shows the run that made it and the reason, its inputs and the runs that made them, what a run
    would do now and why, what it waits for, and which models read it. If the project has triggers,
    it also shows the events that fired the last run, and what the next one waits for. It starts no
    Spark.
    """
    if value is not None and partition is not None:
        raise ArgumentError("the slice is named twice", hint=f"penstock why {model} {value}")
    from penstock.rendering.wire import plain
    from penstock.server.explaining import explain_triggers

    with load_project(project_dir) as project:
        why = project.why(model, value or partition)
        triggering = explain_triggers(project.context, why.model, why.slice, datetime.now(UTC))
    if as_json:
        print_json({**plain(why), "triggers": triggering})
        return
    for line in (*lines(why), *_trigger_lines(triggering)):
        say_prose(local(line))


def lines(why: Why) -> Iterator[str]:
    """The answer for people."""
    what = f"{why.model} {why.slice}" if why.slice else why.model
    said = f": {why.reason.splitlines()[0]}" if why.reason else ""
    yield f"{what} ({why.table}) is {slice_state(why.state)}{said}"
    if why.made is not None:
        yield f"made by {_run(why.made)}"
    elif why.state == "missing":
        yield "never made, or dropped"
    if why.tried is not None and (why.made is None or why.tried.run_id != why.made.run_id):
        yield f"last tried by {_run(why.tried)}: {slice_state(why.tried.state)}"
        if why.tried.said:
            yield f"  {why.tried.said.splitlines()[0]}"
    if why.inputs:
        yield "made from"
    for each in why.inputs:
        at = "" if each.snapshot is None else f" at snapshot {each.snapshot}"
        by = f", made by {_run(each.run)}" if each.run is not None else ""
        yield f"  {each.name}{at}{by}"
    yield "now"
    for line in why.now:
        yield f"  {line}"
    for line in why.waits_for:
        yield f"  waits: {line}"
    for line in why.held_by:
        yield f"  is being made: {line}"
    yield f"read by {', '.join(why.readers) or 'no model'}"


def _trigger_lines(triggering: Triggering | None) -> Iterator[str]:
    """Yield what triggers have done, for people."""
    if triggering is None:
        return
    yield "triggers"
    latest, pending = triggering.latest, triggering.pending
    if latest is None:
        yield "  nothing has fired it yet"
    else:
        began = "" if latest.started_at is None else f" at {clock(latest.started_at)}"
        reason = f" ({latest.reason})" if latest.reason else ""
        yield f"  last fired by {_cause(latest)}{began}: {latest.state}{reason}"
    if pending is not None:
        yield f"  fired by {_cause(pending)}, and has not begun"
    for line in triggering.waits:
        yield f"  {line}"
    if triggering.due is not None:
        yield f"  due next at {clock(triggering.due)}"


def _cause(cause: FiringCause) -> str:
    """``asset (asset:main.main.orders@12 and 2 more), after raw/a > raw/b``."""
    more = f" and {len(cause.events) - 1} more" if len(cause.events) > 1 else ""
    events = f" ({cause.events[0]}{more})" if cause.events else ""
    chain = f", after {' > '.join(cause.chain)}" if cause.chain else ""
    return f"{cause.kind}{events}{chain}"


def _run(run: WhyRun) -> str:
    """``run 01a20f9c-6494 (manual by ann, 2026-01-02 02:30:05), as it was missing``."""
    how = " by ".join(each for each in (run.trigger, run.user) if each)
    said = ", ".join(each for each in (how, clock(run.at)) if each)
    why = f", as it was {run.because}" if run.because else ""
    return f"run {run.run_id[:SHORT_ID]} ({said}){why}"
