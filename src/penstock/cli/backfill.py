"""``penstock backfill``: many slices, in the background if the project is served."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import common_options, complete_model, load_project, range_options
from penstock.cli.output import print_json, say, watch
from penstock.errors import ArgumentError
from penstock.rendering.text import count

if TYPE_CHECKING:
    from penstock.project.project import Project


@click.command(
    "backfill",
    short_help="Build many slices, in the background if the project is served.",
    epilog="""\b
Examples:
  penstock backfill clean/flights --from 2025-01-01 --to 2025-12-31
  penstock backfill clean/flights --from 2025-01-01 --all""",
)
@click.argument("model", shell_complete=complete_model)
@range_options("build")
@click.option("--all", "all_", is_flag=True, help="Also rebuild slices that exist.")
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    model: str,
    all_: bool,
    project_dir: Path | None,
    as_json: bool,
    **bounds: str | None,
) -> None:
    """Build the slices of MODEL in a range that are missing or have failed.

    If `penstock serve` serves the project, this command queues the slices and ends. They run newest
    first, and take at most the `backfill_share` of the slots. `penstock backfills` shows their
    progress. Otherwise this command builds the slices itself, as `penstock run --from --to` does.
    """
    if not any(bounds.values()):
        raise ArgumentError("a backfill needs a range", hint="add --from, and --to for its end")
    with load_project(project_dir) as project:
        queued = _hand_over(project, model, bounds, all_=all_)
        if queued is None:
            ctx.exit(_run(project, model, bounds, all_=all_, as_json=as_json))
    backfill_id, number = queued
    if as_json:
        print_json({"backfill": backfill_id, "slices": number})
    elif number:
        say(f"{count(number, 'slice')} queued: penstock backfills {backfill_id[-12:]}")
    else:
        say("nothing is missing in this range: penstock status shows its slices")


def _hand_over(
    project: Project, model: str, bounds: Mapping[str, str | None], *, all_: bool
) -> tuple[str, int] | None:
    """Queue the slices for whoever serves the project; None if nobody does, or it has no slices."""
    from penstock.server.backfilling import queue_backfill
    from penstock.server.http_services import read_lease
    from penstock.server.opening import open_agenda

    target = project.context.model(model)
    if target.partition is None:
        return None  # intervals are built in batches, by one run
    store = open_agenda(project.context)
    if read_lease(store) is None:
        return None
    return queue_backfill(project.context, store, target, bounds, all_=all_)


def _run(
    project: Project,
    model: str,
    bounds: Mapping[str, str | None],
    *,
    all_: bool,
    as_json: bool,
) -> int:
    from penstock.cli.run_ending import print_ending, what_is_left

    options: dict[str, Any] = {**bounds, "all_": all_, "trigger": "backfill"}
    with watch(as_json=as_json) as sink:
        result = project.run(model, **options, on_event=sink)
        remains = what_is_left(project, result)
    print_ending(result, remains, as_json=as_json)
    return result.exit_code
