"""``penstock snapshots``: the history of a lake, without Spark."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import common_options, limit_option, load_project
from penstock.cli.output import print_answers, print_json
from penstock.cli.tables import Look


@click.command(
    "snapshots",
    short_help="List snapshots, newest first.",
    epilog="""\b
Examples:
  penstock snapshots
  penstock snapshots --lake main --limit 5 --json""",
)
@click.option("--lake", metavar="NAME", help="A lake of penstock.toml [default: all].")
@limit_option(20, "snapshots")
@common_options
def command(lake: str | None, limit: int, project_dir: Path | None, as_json: bool) -> None:
    """List snapshots, newest first: any of them can be read with AT (VERSION => id)."""
    with load_project(project_dir) as project:
        newest = project.snapshots(lake, limit)
    if as_json:
        print_json({"snapshots": newest})
        return
    look = Look(("author", "lake"))
    print_answers(newest.columns, newest, look=look, empty="No snapshots yet: nothing has run.")
