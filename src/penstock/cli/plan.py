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
    from collections.abc import Iterator

    from penstock.engine.planning.plan import Plan, PlannedStep
    from penstock.engine.planning.ranges import Tally


@click.command(
    "plan",
    short_help="Show what a run would do: steps, slices, order.",
    epilog="""\b
Examples:
  penstock plan
  penstock plan --partition 2013-01-02
  penstock plan --from 2013-01-01 --to 2013-01-31
  penstock plan marts/delays_daily --explain
  penstock plan --select "marts/*" --json""",
)
@request_options
@click.option(
    "--explain", is_flag=True, help="Also show which slices of its inputs each step needs."
)
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    explain: bool,
    project_dir: Path | None,
    as_json: bool,
    **request: Any,
) -> None:
    """Show the steps that `penstock run` with these options would take, each with its slice.

    With --from and --to: how many slices of each model are missing or failed and would be made, the
    first and the last of them, and how many are there, or stale.

    A step that drops its table, alters it or replaces a view says so; so does one that would
    fail, as its table holds rows that the model would lose. Notices say what is restated, by
    auto_restatement_cron, and why.

    A step whose slices wait for a slice of an input says for which. With --explain: which slices of
    each input a slice of the step needs, and what says so, if not the kinds of the two.

    Reads the catalogs, starts no Spark and writes nothing. The exit code is 2 when a step cannot
    work.
    """
    with load_project(project_dir) as project:
        plan = project.plan(**read_request(**request))
    steps = [_step(step) for step in plan.steps]
    needs = [need for step in plan.steps for need in _needs(step, plan)] if explain else []
    if as_json and explain:
        print_json({"steps": steps, "notices": plan.notices, "needs": needs})
    elif as_json:
        print_json({"steps": steps, "notices": plan.notices})
    else:
        for notice in plan.notices:
            say(local(f"notice: {notice}"), err=True)
        columns = ("step", "table", "strategy", "slice", "state")
        rows = [[local(step[name] or "") for name in columns] for step in steps]
        print_table(columns, rows, look=Look(("strategy", "table"), ("state",)))
        if explain:
            say("")
            of_inputs = [[local(need[name]) for name in _NEEDS] for need in needs]
            print_table(
                _NEEDS, of_inputs, look=Look((), ("needs",)), empty="No input is a model's."
            )
    if any(step.fails for step in plan.steps):
        ctx.exit(InputError.exit_code)


_NEEDS = ("step", "input", "needs")


def _needs(step: PlannedStep, plan: Plan) -> Iterator[dict[str, str]]:
    for edge in plan.edges.get(step.name, ()):
        through = f", through {', '.join(edge.through)}" if edge.through else ""
        yield {"step": step.name, "input": edge.upstream.name, "needs": f"{edge.need}{through}"}


def _step(step: PlannedStep) -> dict[str, Any]:
    waiting = len(step.waits) == len(step.slices) > 0
    state = "skipped" if step.skipped else "failed" if step.fails else "planned"
    state = "waiting" if waiting and not step.skipped else state
    tally = [] if step.tally is None else [f"{said(step.tally)}{_way(step)}"]
    waits = [] if waiting else [f"waiting: {why}" for why in dict.fromkeys(step.waits.values())]
    planned = "; ".join([*tally, *waits, *map(str, step.stages)])
    planned = next(iter(step.waits.values())) if waiting else planned
    shown: dict[str, Any] = {
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
    if step.waits:
        shown["waits"] = {str(slice_): why for slice_, why in step.waits.items()}
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
