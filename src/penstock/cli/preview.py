"""``penstock preview``: what a model's query returns; nothing is written."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.frames import print_frame
from penstock.cli.options import (
    debug_option,
    json_option,
    limit_option,
    load_project,
    parse_pairs,
    project_option,
)


@click.command(
    "preview",
    short_help="Run a model's query and show rows; write nothing.",
    epilog="""\b
Examples:
  penstock preview marts/airline_ranking
  penstock preview clean/flights --partition 2013-01-02 --limit 5""",
)
@click.argument("model")
@click.option("--partition", metavar="VALUE", help="The partition, such as 2013-01-02.")
@click.option("--arg", "-a", "pairs", multiple=True, metavar="NAME=VALUE", help="An argument.")
@limit_option(20, "rows")
@project_option
@json_option
@debug_option
def command(
    *,
    model: str,
    partition: str | None,
    pairs: tuple[str, ...],
    limit: int,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Show the first rows that MODEL's query returns now. Nothing is written."""
    args = parse_pairs(pairs)
    with load_project(project_dir) as project:
        print_frame(project.preview(model, partition, args=args), limit, as_json=as_json)
