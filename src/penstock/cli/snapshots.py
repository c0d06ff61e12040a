"""``penstock snapshots``: the history of a lake, without Spark."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import (
    debug_option,
    json_option,
    limit_option,
    load_project,
    project_option,
)
from penstock.cli.output import print_json, print_table
from penstock.cli.status import clock


@click.command(
    "snapshots",
    short_help="List the snapshots of a lake, newest first.",
    epilog="""\b
Examples:
  penstock snapshots
  penstock snapshots --lake main --limit 5 --json""",
)
@click.option("--lake", metavar="NAME", help="A lake of penstock.toml [default: the only one].")
@limit_option(20, "snapshots")
@project_option
@json_option
@debug_option
def command(lake: str | None, limit: int, project_dir: Path | None, as_json: bool) -> None:
    """List snapshots, newest first: any of them can be read with AT (VERSION => id)."""
    found = load_project(project_dir).snapshots(lake)
    newest = sorted(found, key=lambda one: one.id, reverse=True)[:limit]
    if as_json:
        print_json(newest)
        return
    rows = [(one.id, clock(one.time), one.changes, one.author, one.message) for one in newest]
    print_table(
        ("snapshot", "time", "changes", "author", "message"), rows, empty="No snapshots yet."
    )
