"""``penstock run``: run the models of a project."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from penstock.cli.options import (
    common_options,
    load_project,
    no_wait_option,
    read_request,
    request_options,
    warm_option,
)
from penstock.cli.output import EXIT_INTERRUPTED, watch
from penstock.cli.plan import show_plan
from penstock.cli.run_ending import print_ending, what_is_left
from penstock.errors import ArgumentError, PenstockError


@click.command(
    "run",
    short_help="Run the models: stage, test, publish.",
    epilog="""\b
Examples:
  penstock run
  penstock run --partition 2013-01-02
  penstock run --from 2013-01-01 --to 2013-12-31
  penstock run marts/airline_ranking --arg min_flights=500
  penstock run raw/flights --full-refresh --partition 2013-01-02
  penstock run --payload '{"region": "eu"}' --json
  penstock run --plan january.json""",
)
@request_options
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run up to N steps at once [default: by cores].",
)
@click.option(
    "--new-catalog",
    is_flag=True,
    help="Create a new catalog even if the data path holds files of a lake.",
)
@no_wait_option
@click.option("--dry-run", is_flag=True, help="Show what would run, as penstock plan does.")
@click.option(
    "--plan",
    "plan",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Run exactly the plan that penstock plan --out FILE saved.",
)
@warm_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    jobs: int | None,
    new_catalog: bool,
    no_wait: bool,
    plan: Path | None,
    dry_run: bool,
    project_dir: Path | None,
    as_json: bool,
    **request: Any,
) -> None:
    """Run the models in the order of their graph.

    Each step stages what it writes, tests it, and publishes it in one commit. A step that fails
    leaves its table as it was; what depends on it is skipped. With --json each line is an event;
    the last holds the result.

    --from and --to make the slices of a range that are missing or have failed, with --all all of
    them. A slice that fails stops no other: only the same slices of its readers are skipped. Run
    the command again after a failure, Ctrl-C or a kill: it continues with what is left.

    A slice that another run is making is waited for, and not made again if that run has made it.

    The exit code is 0 when all is done (or there is nothing to do), 1 when something failed, 2 for
    a wrong request, 3 when something waits that was asked for, 4 when a saved plan is out of date,
    130 after Ctrl-C.

    --plan runs a saved plan as it is, and takes no other request. Where what it was made from has
    changed since (a definition, slices that were made meanwhile, rows of a table that it reads),
    nothing runs, and what has changed is named.

    --full-refresh rebuilds the tables of the named models with their current definitions. Of a
    partitioned model every slice is dropped, and only the one of this run is made. Tests run before
    publication as always, and earlier snapshots keep the rows of before.
    """
    asked = read_request(**request)
    if dry_run:
        _require_no_saved_plan(plan)
        ctx.exit(show_plan(asked, project_dir, as_json=as_json))
    with load_project(project_dir) as project, watch(as_json=as_json) as sink:
        options: dict[str, Any] = {"jobs": jobs, "new_catalog": new_catalog, "wait": not no_wait}
        options["plan"] = plan
        result = project.run(**asked, **options, on_event=sink)
        left = what_is_left(project, result)
    print_ending(result, left, as_json=as_json)
    if "pyspark" in sys.modules and result.exit_code != EXIT_INTERRUPTED:
        from penstock.cli.prepare import prepare_later  # late: most runs find an archive

        with suppress(OSError, PenstockError):  # the run has ended, whatever becomes of this
            prepare_later(project.settings.spark)
    ctx.exit(result.exit_code)


def _require_no_saved_plan(plan: Path | None) -> None:
    """:raises ArgumentError: a saved plan is named beside --dry-run"""
    if plan is not None:
        raise ArgumentError(
            "--dry-run shows the plan of a request, and --plan runs a saved one",
            hint=f"the plan is in {plan}: leave one of the two options out",
        )
