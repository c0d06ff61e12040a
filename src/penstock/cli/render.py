"""``penstock render``: a model's query as it runs, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import common_options, load_project, parse_pairs, range_options
from penstock.cli.output import print_json, say

if TYPE_CHECKING:
    from penstock.engine.rendering import Rendering


@click.command(
    "render",
    short_help="Show a model's query as it runs, macros expanded.",
    epilog="""\b
Examples:
  penstock render marts/punctuality
  penstock render clean/flights --partition 2013-01-02
  penstock render clean/flights --from 2013-01-01 --to 2013-01-31
  penstock render marts/delays --arg at_least=30 --json""",
)
@click.argument("model")
@click.option("--partition", metavar="VALUE", help="The partition, such as 2013-01-02.")
@range_options("render")
@click.option("--arg", "-a", "pairs", multiple=True, metavar="NAME=VALUE", help="An argument.")
@common_options
def command(
    *,
    model: str,
    partition: str | None,
    from_: str | None,
    to: str | None,
    pairs: tuple[str, ...],
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Show the query of MODEL as Spark gets it: macros expanded, EMBEDDED queries in their places,
    DuckDB's dialect translated, tables by their full names, and the values of the partition, the
    arguments and the times of the run in their places.

    Without a slice, the one that the next run would make. Of a range, the query of its first slice.
    Nothing is written, and no Spark starts.
    """
    with load_project(project_dir) as project:
        rendered = project.render(model, partition, parse_pairs(pairs), from_=from_, to=to)
    if as_json:
        print_json(rendered)
    else:
        _print(rendered)


def _print(rendered: Rendering) -> None:
    """SQL with comments above it that say what it is, so that all of it can be run."""
    count = len(rendered.slices)
    which = f", the first of {count} slices" if count > 1 else ""
    slice_ = f", {rendered.slice}{which}" if rendered.slice else ""
    say(f"-- {rendered.model}{slice_}")
    for name, value in rendered.values.items():
        say(f"-- {name} = {value}")
    for name, call in rendered.reads.items():
        say(f"-- {name} is {call}")
    say(rendered.sql)
    for statement in rendered.after:
        say(f"\n-- after the query\n{statement}")
