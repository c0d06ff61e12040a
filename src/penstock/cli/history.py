"""``penstock history``: a row through time."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.diff import change_value
from penstock.cli.options import common_options, complete_model, load_project, warm_option
from penstock.cli.output import clock, print_json, print_table, starting
from penstock.engine.answers.comparing import RowChange


@click.command(
    "history",
    short_help="Show a row through time.",
    epilog="""\b
Examples:
  penstock history marts/airline_ranking --key carrier=AA
  penstock history orders --key id=7,region=eu --json""",
)
@click.argument("table", shell_complete=complete_model)
@click.option(
    "--key", metavar="COLUMN=VALUE", required=True, help="The row: values of columns, with commas."
)
@warm_option
@common_options
def command(table: str, *, key: str, project_dir: Path | None, as_json: bool) -> None:
    """Show each version of a row of TABLE, a model or a table: when, by which run, what changed."""
    with starting() as on_event, load_project(project_dir, on_event) as project:
        versions = project.row_history(table, key)
    if as_json:
        print_json({"versions": versions})
        return
    columns = list(versions[0].row) if versions else []
    rows, last = [], dict[str, object]()
    for each in versions:
        before = {name: last[name] for name in each.changed if name in last}
        change = RowChange(each.change, each.row, before)
        values = [change_value(change, name) for name in columns]
        who = each.model or each.author or ""
        rows.append((each.snapshot, clock(each.time), each.change, who, each.run, *values))
        last = dict(each.row)
    print_table(
        ("snapshot", "time", "change", "by", "run", *columns), rows, empty="No such row is known."
    )
