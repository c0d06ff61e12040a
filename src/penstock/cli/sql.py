"""``penstock sql``: a query over the project's tables."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.frames import print_frame
from penstock.cli.options import (
    debug_option,
    json_option,
    limit_option,
    load_project,
    project_option,
)
from penstock.cli.output import print_json


@click.command(
    "sql",
    short_help="Query the tables of the project.",
    epilog="""\b
Examples:
  penstock sql "SELECT * FROM airline_ranking ORDER BY place"
  penstock sql "SELECT count(*) FROM main.flights AT (VERSION => 3)" --json
  penstock sql "SELECT * FROM flights WHERE distance_km > 3000" --explain""",
)
@click.argument("text", metavar="QUERY")
@limit_option(100, "rows")
@click.option("--explain", is_flag=True, help="Say which files it would read; run nothing.")
@project_option
@json_option
@debug_option
def command(text: str, limit: int, explain: bool, project_dir: Path | None, as_json: bool) -> None:
    """Run one SELECT in Spark's SQL; AT (VERSION => n) reads an earlier snapshot."""
    with load_project(project_dir) as project:
        if not explain:
            print_frame(project.sql(text), limit, as_json=as_json)
            return
        found = project.explain(text)
    if as_json:
        print_json({"tables": found.tables})
    else:
        click.echo(str(found))
