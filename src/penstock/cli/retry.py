"""``penstock retry``: rerun the failed part of past runs."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import common_options, complete_model, load_project, warm_option
from penstock.cli.output import print_json, watch
from penstock.cli.plan_output import print_plan
from penstock.cli.run_ending import print_ending, what_is_left
from penstock.engine.answers.plan_document import plan_document
from penstock.errors import ArgumentError


@click.command(
    "retry",
    short_help="Retry the failed part of a run.",
    epilog="""\b
Examples:
  penstock retry last
  penstock retry 01a20f9c-6494 --dry-run
  penstock retry --failed
  penstock retry --failed --since 7d tag:nightly""",
)
@click.argument("names", nargs=-1, metavar="[RUN|MODEL]...", shell_complete=complete_model)
@click.option(
    "--failed",
    is_flag=True,
    help="All runs that failed or were killed, in one plan; of MODEL... only, where given.",
)
@click.option(
    "--since",
    default="24h",
    show_default=True,
    metavar="AGE|TIME",
    help="With --failed: only runs since then.",
)
@click.option("--exclude", multiple=True, metavar="MODEL", help="With --failed: leave models out.")
@click.option(
    "--inputs",
    type=click.Choice(("latest",)),
    default="latest",
    show_default=True,
    help="Which rows of its inputs a retry reads: those that are there now.",
)
@click.option("--jobs", "-j", type=click.IntRange(min=1), metavar="N", help="As in run.")
@click.option("--no-wait", is_flag=True, help="As in run.")
@click.option("--dry-run", is_flag=True, help="Show what would be made, and make nothing.")
@warm_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    names: tuple[str, ...],
    failed: bool,
    since: str,
    exclude: tuple[str, ...],
    inputs: str,
    jobs: int | None,
    no_wait: bool,
    dry_run: bool,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Rerun what RUN (an id, a part of one, or `last`) planned and did not finish.

    Steps, slices, arguments, payload and the time of the run are those of RUN, not of today. What
    succeeded stays, whoever made it since; what was skipped because something above it failed is
    made too. Definitions and inputs are the latest. A retry can be retried.

    With --failed all runs that failed or were killed --since then, over all models and kinds of
    slices, or of MODEL..., in one plan. Where several runs cover a slice, the latest one's settings
    apply.

    Exit codes are those of penstock run.
    """
    if not failed and len(names) != 1:
        raise ArgumentError(
            "retry takes one run, or --failed", hint="penstock retry last, or penstock runs lists"
        )
    with load_project(project_dir) as project:
        if failed:
            plan = project.retry_failed_plan(*names, since=since, exclude=exclude)
        else:
            plan = project.retry_plan(names[0], inputs=inputs)
        if dry_run:
            if as_json:
                print_json(plan_document(plan, None))
            else:
                print_plan(plan)
            return
        with watch(as_json=as_json) as sink:
            result = project.run_retry(plan, jobs=jobs, wait=not no_wait, on_event=sink)
        left = what_is_left(project, result)
    print_ending(result, left, as_json=as_json)
    ctx.exit(result.exit_code)
