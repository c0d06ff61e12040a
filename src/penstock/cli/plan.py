"""``penstock plan``: what a run would do, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from penstock.cli.options import (
    common_options,
    load_project,
    markdown_option,
    read_request,
    request_options,
)
from penstock.cli.output import print_json
from penstock.cli.plan_output import print_explained, print_plan
from penstock.engine.answers.plan_document import plan_document
from penstock.errors import InputError


@click.command(
    "plan",
    short_help="Show what a run would do: steps, slices, order.",
    epilog="""\b
Examples:
  penstock plan
  penstock plan --partition 2013-01-02
  penstock plan --from 2013-01-01 --to 2013-01-31
  penstock plan marts/delays_daily --explain
  penstock plan --select "marts/*" --json
  penstock plan --from 2013-01-01 --out january.json
  penstock plan --from 2013-01-01 --markdown >plan.md""",
)
@request_options
@click.option(
    "--explain",
    is_flag=True,
    help="Also show what each step needs, what shares a job, and estimates.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Save the plan to a file, for penstock run --plan FILE.",
)
@markdown_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    explain: bool,
    out: Path | None,
    project_dir: Path | None,
    as_json: bool,
    **request: Any,
) -> None:
    """Show the steps that `penstock run` with these options would take, each with its slices.

    Slices that follow each other and are made for the same reason are one range. Reasons are
    missing, failed, behind, changed, restated, forced, late, and not over yet.

    With --from and --to: how many slices of each model are missing or failed and would be made, the
    first and the last of them, and how many are there, or stale.

    A step that drops its table, alters it or replaces a view says so; so does one that would
    fail, as its table holds rows that the model would lose. Notices say what is restated, by
    auto_restatement_cron, and why.

    A step whose slices wait for a slice of an input says for which. With --explain: which slices of
    each input a slice of the step needs, and what says so, if not the kinds of the two; which
    slices share a job, or why not; and the rows and the time that past runs let expect.

    Reads the catalogs, starts no Spark and writes nothing but the file of --out. The exit code is 2
    when a step cannot work.
    """
    asked = read_request(**request)
    ctx.exit(show_plan(asked, project_dir, as_json=as_json, explain=explain, out=out))


def show_plan(
    request: Mapping[str, Any],
    project_dir: Path | None,
    *,
    as_json: bool,
    explain: bool = False,
    out: Path | None = None,
) -> int:
    """Print the plan of a request, save it to ``out``, and return the exit code."""
    with load_project(project_dir) as project:
        plan = project.plan(**request)
        estimates = project.estimates(plan) if explain else None
        if out is not None:
            project.save_plan(plan, out)
    if as_json:
        print_json(plan_document(plan, estimates))
    else:
        print_plan(plan)
        if estimates is not None:
            print_explained(plan, estimates)
    return InputError.exit_code if any(step.fails for step in plan.steps) else 0
