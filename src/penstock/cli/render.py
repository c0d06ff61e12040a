"""``penstock render``: a model's query as it runs, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import (
    common_options,
    load_project,
    parse_pairs,
    partition_option,
    range_options,
)
from penstock.cli.output import print_json, say

if TYPE_CHECKING:
    from penstock.engine.answers.rendering import Rendering


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
@partition_option("The partition, such as 2013-01-02.")
@range_options("render")
@click.option("--arg", "-a", "pairs", multiple=True, metavar="NAME=VALUE", help="An argument.")
@click.option(
    "--spark",
    is_flag=True,
    help="Print the query in Spark's SQL, even if it is written in another dialect.",
)
@common_options
def command(
    *,
    model: str,
    partition: str | None,
    from_: str | None,
    to: str | None,
    pairs: tuple[str, ...],
    spark: bool,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Show the query of MODEL as it runs: macros expanded, EMBEDDED queries in their places, tables
    by their full names, and the values of the partition, the arguments and the times of the run in
    their places. With --spark what Spark gets of a query in DuckDB's dialect.

    Without a slice, the one that the next run would make. Of a range, the query of its first slice.
    Nothing is written, and no Spark starts.
    """
    with load_project(project_dir) as project:
        rendered = project.render(model, partition, parse_pairs(pairs), from_=from_, to=to)
    if as_json:
        print_json(rendered)
    else:
        _print(rendered, spark=spark)


def _print(rendered: Rendering, *, spark: bool) -> None:
    """SQL with comments above it that say what it is, so that all of it can be run."""
    count = len(rendered.slices)
    which = f", the first of {count} slices" if count > 1 else ""
    slice_ = f", {rendered.slice}{which}" if rendered.slice else ""
    say(f"-- {rendered.model}{slice_}")
    for name, value in rendered.values.items():
        say(f"-- {name} = {value}".replace("\n", "\\n"))
    for name, call in rendered.reads.items() if spark else ():
        say(f"-- {name} is {call}")
    say(rendered.spark if spark and rendered.spark else rendered.sql)
    for statement in rendered.after:
        say(f"\n-- after the query\n{statement}")
