"""``penstock state``: the records of runs, and how long they stay."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import click

from penstock.cli.options import common_options, load_project
from penstock.cli.output import print_json, say
from penstock.rendering.text import count


@click.group(
    "state",
    short_help="Remove old records and logs of runs.",
    epilog="""\b
Examples:
  penstock state prune --dry-run
  penstock state prune""",
)
def command() -> None:
    """Look after the records of runs in the catalogs, and their logs."""


@command.command(
    "prune",
    epilog="""\b
Examples:
  penstock state prune --dry-run
  penstock state prune --json""",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@common_options
@click.pass_context
def prune(ctx: click.Context, *, dry_run: bool, project_dir: Path | None, as_json: bool) -> None:
    """Remove records and logs of runs that are older, or more, than penstock.toml keeps.

    `keep` and `keep_runs` of [run] are for records in the catalogs, those of [logs] for logs.
    `keep` of [run] is also for events of `penstock serve`, and for what they have fired. The
    latest record of each slice stays whatever its age. What cannot be removed is named, the rest is
    removed, and the exit code is 1. Runs remove some of what is old at their end, so that this is
    needed after settings have changed.
    """
    from penstock.server.pruning import Pruned
    from penstock.server.retention import prune_agenda

    with load_project(project_dir) as project:
        pruned = project.prune(dry_run=dry_run)
        agenda = prune_agenda(project.context, datetime.now(UTC), dry_run=dry_run)
    if as_json:
        document = {part.name: getattr(pruned, part.name) for part in fields(pruned)}
        print_json({**document, "agenda": agenda})
    else:
        verb = "would be removed" if dry_run else "removed"
        for name, of in pruned.lakes.items():
            parts = ((of.runs, "run"), (of.steps, "step"), (of.tests, "test result"))
            counts = ", ".join(count(number, noun) for number, noun in parts)
            say(f"lake {name}: {counts} {verb}")
        say(f"{count(pruned.logs, 'log')} {verb}")
        if agenda != Pruned():
            counts = f"{count(agenda.firings, 'firing')}, {count(agenda.events, 'event')}"
            say(f"agenda of penstock serve: {counts} {verb}")
        for failure in pruned.failures:
            say(f"not removed: {failure}", err=True)
    ctx.exit(1 if pruned.failures else 0)
