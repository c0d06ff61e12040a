"""``penstock plan``: what a run would do, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import common_options, load_project, read_request, request_options
from penstock.cli.output import print_json, print_table, say
from penstock.cli.paths import local
from penstock.cli.tables import Look
from penstock.engine.planning.ranges import said
from penstock.engine.planning.stages import as_dict
from penstock.errors import InputError
from penstock.progress.lines import state_text

if TYPE_CHECKING:
    from penstock.engine.planning.plan import PlannedStep
    from penstock.engine.planning.ranges import Tally


@click.command(
    "plan",
    short_help="Show what a run would do: steps, slices, order.",
    epilog="""\b
Examples:
  penstock plan
  penstock plan --partition 2013-01-02
  penstock plan --from 2013-01-01 --to 2013-01-31
  penstock plan --select "marts/*" --json""",
)
@request_options
@common_options
@click.pass_context
def command(
    ctx: click.Context, /, *, project_dir: Path | None, as_json: bool, **request: Any
) -> None:
    """Show the steps that `penstock run` with these options would take, each with its slice.

    With --from and --to: how many slices of each model are missing or failed and would be made, the
    first and the last of them, and how many are there, or stale.

    A step that drops its table, alters it or replaces a view says so; so does one that would
    fail, as its table holds rows that the model would lose. Notices say what is restated, by
    auto_restatement_cron, and why.

    Reads the catalogs, starts no Spark and writes nothing. The exit code is 2 when a step cannot
    work.
    """
    with load_project(project_dir) as project:
        plan = project.plan(**read_request(**request))
    steps = [_step(step) for step in plan.steps]
    if as_json:
        print_json({"steps": steps, "notices": plan.notices})
    else:
        for notice in plan.notices:
            say(local(f"notice: {notice}"), err=True)
        columns = ("step", "table", "strategy", "slice", "state")
        rows = [[local(step[name] or "") for name in columns] for step in steps]
        print_table(columns, rows, look=Look(("strategy", "table"), ("state",)))
    if any(step.fails for step in plan.steps):
        ctx.exit(InputError.exit_code)


def _step(step: PlannedStep) -> dict[str, Any]:
    state = "skipped" if step.skipped else "failed" if step.fails else "planned"
    tally = [] if step.tally is None else [f"{said(step.tally)}{_way(step)}"]
    planned = "; ".join([*tally, *map(str, step.stages)])
    shown = {
        "step": step.name,
        "table": str(step.model.target),
        "strategy": step.model.strategy.name,
        "slice": step.slice,
        "state": state_text(state, step.skipped or step.fails or planned),
        "after": step.after,
        "restated": step.again,
    }
    if step.tally is not None:
        shown |= _of_range(step, step.tally)
    return shown | ({"stages": [*map(as_dict, step.stages)]} if step.stages else {})


def _way(step: PlannedStep) -> str:
    """Return how many slices are made, and why not together."""
    if len(step.slices) < 2:
        return ""
    return "; in one job" if step.apart is None else f"; one by one, as {step.apart}"


def _of_range(step: PlannedStep, tally: Tally) -> dict[str, Any]:
    first, last = (step.slices[0], step.slices[-1]) if step.slices else (None, None)
    return {
        "slices": tally.to_make,
        "first": first and str(first),
        "last": last and str(last),
        "states": tally.states,
        "together": step.apart is None and tally.to_make > 1,
        "apart": step.apart,
        "early": tally.early,
        "later": tally.later,
    }
