"""``penstock preview``: rows of a model's query, or of its table; nothing is written."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import (
    complete_model,
    debug_option,
    format_option,
    limit_option,
    load_project,
    parse_pairs,
    partition_option,
    project_option,
    spark_option,
    warm_option,
)
from penstock.cli.output import print_result, starting
from penstock.errors import ArgumentError


@click.command(
    "preview",
    short_help="Show rows of a model's query, or of its table; write nothing.",
    epilog="""\b
Examples:
  penstock preview marts/airline_ranking
  penstock preview clean/flights --partition 2013-01-02 --limit 5
  penstock preview marts/airline_ranking --table --format markdown""",
)
@click.argument("model", shell_complete=complete_model)
@click.option("--table", is_flag=True, help="Show the published table instead of the query.")
@partition_option("The partition, such as 2013-01-02.")
@click.option("--arg", "-a", "pairs", multiple=True, metavar="NAME=VALUE", help="An argument.")
@limit_option(20, "rows")
@warm_option
@spark_option
@format_option
@project_option
@debug_option
def command(
    *,
    model: str,
    table: bool,
    partition: str | None,
    pairs: tuple[str, ...],
    limit: int,
    spark: bool,
    form: str,
    project_dir: Path | None,
) -> None:
    """Show the first rows that MODEL's query returns now. Nothing is written.

    With --table they are those of the table that the model has published: the whole of it, or one
    partition. A small table is read from its files, without starting Spark.
    """
    args = parse_pairs(pairs)
    if table and args:
        raise ArgumentError(
            "--arg has no effect on the table that is published", hint="leave out --arg or --table"
        )
    with starting() as on_event, load_project(project_dir, on_event) as project:
        if table:
            result = project.read(model, partition, limit=limit, spark=spark)
        else:
            result = project.preview_rows(model, partition, limit, args)
    print_result(result, form)
