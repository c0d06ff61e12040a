"""``penstock sql``: a query over the project's tables, or statements on one of its lakes."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import (
    debug_option,
    format_option,
    limit_option,
    load_project,
    project_option,
    spark_option,
    warm_option,
)
from penstock.cli.output import print_json, print_result, say, starting
from penstock.settings.keys import DIALECTS


@click.command(
    "sql",
    short_help="Query and change the tables of the project.",
    epilog="""\b
Examples:
  penstock sql "SELECT * FROM airline_ranking ORDER BY place"
  penstock sql "SELECT carrier, airline FROM airline_ranking LIMIT 3" --format csv
  penstock sql "SELECT count(*) FROM main.flights AT (VERSION => 3)" --json
  penstock sql "SELECT * FROM flights WHERE distance_km > 3000" --explain
  penstock sql "CREATE TABLE notes (id INTEGER, text VARCHAR); INSERT INTO notes VALUES (1, 'a')"
  penstock sql "SELECT * EXCLUDE (text) FROM notes" --dialect duckdb
  penstock sql --file changes.sql --lake main""",
)
@click.argument("text", metavar="SQL", required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the statements from a file.",
)
@click.option(
    "--dialect",
    type=click.Choice(DIALECTS),
    help="The dialect of the SQL [default: the project's, or spark].",
)
@click.option("--lake", help="The lake that statements run on [default: main, or the only one].")
@limit_option(100, "rows")
@click.option(
    "--explain", is_flag=True, help="Show which files the query would read, without running it."
)
@warm_option
@spark_option
@format_option
@project_option
@debug_option
def command(
    *,
    text: str | None,
    path: Path | None,
    dialect: str | None,
    lake: str | None,
    limit: int,
    explain: bool,
    spark: bool,
    form: str,
    project_dir: Path | None,
) -> None:
    """Run a query or other statements, with ; between them; the rows of the last are shown.

    AT (VERSION => n) reads an earlier snapshot. A plain SELECT of a small table is answered from
    its files, without starting Spark.
    """
    if (text is None) == (path is None):
        raise click.UsageError("give the SQL, or --file with it")
    sql = text if text is not None else path.read_text() if path is not None else ""
    with starting() as on_event, load_project(project_dir, on_event) as project:
        if not explain:
            result = project.query(sql, lake=lake, limit=limit, spark=spark, dialect=dialect)
            print_result(result, form)
            return
        explained = project.explain(sql, dialect=dialect)
    if form == "json":
        print_json({"tables": explained.tables})
    else:
        say(str(explained))
