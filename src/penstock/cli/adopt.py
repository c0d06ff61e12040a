"""``penstock adopt``: rows that others have put into a model's table, recorded as made."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import common_options, load_project, warm_option
from penstock.cli.output import print_json, print_table, starting
from penstock.rendering.text import count


@click.command(
    "adopt",
    short_help="Record the rows of a table that another tool filled as made by its model.",
    epilog="""\b
Examples:
  penstock adopt marts/customers
  penstock adopt marts/sales --until 2024-01-31 --dry-run
  penstock adopt marts/sales --until 2024-01-31""",
)
@click.argument("model")
@click.option(
    "--until",
    metavar="DATE",
    help="The last day (or moment) to record as made; default: that of the last row.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be recorded, and do nothing.")
@warm_option
@common_options
def command(
    model: str, *, until: str | None, dry_run: bool, project_dir: Path | None, as_json: bool
) -> None:
    """Record the rows of MODEL's table that no run has written as if its runs had made them.

    For a table that was imported, or filled by another tool. Nothing of it changes: runs continue
    behind what is recorded. A model by time is adopted from its start, or its first row, to --until
    or its last row; a partitioned one slice by slice, by the column that has their values; others
    as a whole. Rows that the model could not have made are refused: keys that are NULL or come
    twice, versions that overlap, columns that do not fit.
    """
    with starting() as on_event, load_project(project_dir, on_event) as project:
        found = project.adopt(model, until, dry_run=dry_run)
    if as_json:
        print_json(found)
        return
    rows = [(each.slice or "whole table", f"{each.rows:,}") for each in found.slices]
    print_table(("slice", "rows"), rows)
    for notice in found.notices:
        click.echo(f"notice: {notice}", err=True)
    said = "would be adopted" if dry_run else "adopted"
    click.echo(f"{said}: {count(found.rows, 'row')} of {found.table}")
