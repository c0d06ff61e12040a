"""``penstock rollback``: a model's table as it was, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.diff import POINT
from penstock.cli.options import common_options, complete_model, load_project
from penstock.cli.output import print_json, say, starting
from penstock.rendering.text import count

if TYPE_CHECKING:
    from penstock.engine.answers.read_later import Reader
    from penstock.project.maintaining import RolledBackTable

_SHOWN = 10  # slices that are named


@click.command(
    "rollback",
    short_help="Make a model's table what it was.",
    epilog="""\b
Examples:
  penstock rollback marts/airline_ranking --to 24h --dry-run
  penstock rollback clean/flights --to 7 --downstream
  penstock rollback clean/flights --to 01a20f9c-6494""",
)
@click.argument("model", shell_complete=complete_model)
@click.option("--to", metavar=POINT, required=True, help="The state to go back to.")
@click.option("--downstream", is_flag=True, help="Also roll back the tables that read it.")
@click.option("--dry-run", is_flag=True, help="Show what would be done; write nothing.")
@click.option("--no-wait", is_flag=True, help="Fail if a run makes some of it.")
@common_options
def command(
    *,
    model: str,
    to: str,
    downstream: bool,
    dry_run: bool,
    no_wait: bool,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Make the table of MODEL what it was at a snapshot, at a time, some time ago, or as a run left
    it.

    It is a new snapshot, so that a rollback can be rolled back. Slices that were made since are
    missing again, and the next run of their range makes them. Models that have read what is taken
    back are behind; with --downstream their tables go back to the same moment. A run that is making
    some of a table is waited for; with --no-wait that is an error, with exit code 3. Starts no
    Spark.
    """
    with starting() as on_event, load_project(project_dir, on_event) as project:
        done = project.rollback(model, to, downstream=downstream, dry_run=dry_run, wait=not no_wait)
    if as_json:
        print_json(done)
        return
    for table in done.tables:
        for text in _lines(table, dry_run=dry_run):
            say(text)
    for reader in done.behind:
        say(f"behind: {_reader(reader)}")
    if dry_run:
        say("Nothing was written.")


def _lines(table: RolledBackTable, *, dry_run: bool) -> Iterator[str]:
    if not table.differs:
        yield f"{table.table} is as it was at snapshot {table.to}"
        return
    verb = "would be" if dry_run else "is"
    at = "" if table.snapshot is None else f", snapshot {table.snapshot}"
    yield f"{table.table} {verb} as it was at snapshot {table.to}{at}{_rows(table)}"
    if table.columns_changed:
        yield "  columns are those of then"
    for what, slices in (("missing", table.slices_missing), ("back", table.slices_back)):
        if slices:
            yield f"  {what}: {_named(slices)}"


def _rows(table: RolledBackTable) -> str:
    if table.rows is None or table.rows_before is None:
        return ""
    return f": {count(table.rows, 'row')} instead of {table.rows_before:,}"


def _named(slices: tuple[str, ...]) -> str:
    more = f" and {len(slices) - _SHOWN:,} more" if len(slices) > _SHOWN else ""
    return ", ".join(slices[:_SHOWN]) + more


def _reader(reader: Reader) -> str:
    named = f" {_named(reader.slices)}" if reader.slices else ""
    return f"{reader.model}{named}" + (f" ({reader.reason})" if reader.reason else "")
