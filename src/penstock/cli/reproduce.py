"""``penstock reproduce``: steps of a past run once more, beside their tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.diff import print_changes
from penstock.cli.options import (
    common_options,
    complete_model,
    limit_option,
    load_project,
    partition_option,
    warm_option,
)
from penstock.cli.output import print_json, say, starting
from penstock.project.table_history import SAMPLES
from penstock.rendering.text import count

if TYPE_CHECKING:
    from penstock.engine.answers.comparing import Compared
    from penstock.engine.verifying.reproduce import ReproducedStep


@click.command(
    "reproduce",
    short_help="Make steps of a past run once more, and compare the rows.",
    epilog="""\b
Examples:
  penstock reproduce last
  penstock reproduce 01a20f9c-6494 marts/airline_ranking
  penstock reproduce last clean/flights --partition 2013-01-01 --json""",
)
@click.argument("run")
@click.argument("step", required=False, shell_complete=complete_model)
@partition_option("One slice of STEP, as `penstock runs show` lists it.")
@limit_option(SAMPLES, "rows of each kind of difference")
@warm_option
@common_options
def command(
    *,
    run: str,
    step: str | None,
    partition: str | None,
    limit: int,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Make the steps of RUN, or STEP of it, once more from their inputs as they were then, and
    compare the rows with what the run wrote.

    Tables are read at the snapshots that the run read, with the definition, the arguments and the
    time of then; no table is written. A step whose inputs are gone, or whose query differs from run
    to run, is refused with the reason. RUN is an id, a part of one, or `last`. Exit code 1 if rows
    differ, 3 if none does and a step was refused.
    """
    with starting() as on_event, load_project(project_dir, on_event) as project:
        done = project.reproduce(run, step, partition=partition, samples=limit)
    if as_json:
        print_json(done)
    else:
        for each in done.steps:
            _print(each)
    if done.exit_code:
        raise SystemExit(done.exit_code)


def _print(step: ReproducedStep) -> None:
    named = f"{step.step} {step.slice}" if step.slice else step.step
    said = step.reason if step.changes is None else _counts(step.changes)
    say(f"{named}: {step.state}{f' ({said})' if said else ''}")
    for what, names in (("made now", step.columns_added), ("in the table", step.columns_dropped)):
        if names:
            say(f"  columns only {what}: {', '.join(names)}")
    for notice in step.notices:
        say(f"  {notice}")
    if step.changes is not None and step.changes.samples:
        print_changes(step.changes.samples)


def _counts(changes: Compared) -> str:
    numbers = {
        "only made now": changes.inserted,
        "only in the table": changes.deleted,
        "different": changes.updated,
        "equal": changes.same,
    }
    said = [f"{count(number, 'row')} {what}" for what, number in numbers.items() if number]
    return ", ".join(said) or "no rows"
