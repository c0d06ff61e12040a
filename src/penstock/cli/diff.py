"""``penstock diff``: what differs between two states of a table, or two tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import (
    common_options,
    complete_model,
    limit_option,
    load_project,
    warm_option,
)
from penstock.cli.output import cell, print_json, print_table, say, starting
from penstock.engine.answers.comparing import DELETED, INSERTED, UPDATED
from penstock.project.table_history import SAMPLES
from penstock.rendering.text import count

if TYPE_CHECKING:
    from penstock.engine.answers.comparing import RowChange, TableDiff

POINT = "SNAPSHOT|TIME|AGE|RUN"


@click.command(
    "diff",
    short_help="Compare a table with an earlier state, or with another table.",
    epilog="""\b
Examples:
  penstock diff clean/flights --from 24h
  penstock diff airline_ranking --from 3 --to 7 --json
  penstock diff clean/flights --from 2026-01-31T00:00:00Z --key carrier,flight
  penstock diff --run last
  penstock diff airlines airlines_new --key carrier""",
)
@click.argument("table", required=False, shell_complete=complete_model)
@click.argument("other", required=False, shell_complete=complete_model)
@click.option("--from", "from_", metavar=POINT, help="The earlier state.")
@click.option("--to", metavar=POINT, help="The later state [default: now].")
@click.option(
    "--run",
    metavar="RUN",
    help="What this run changed, of TABLE or of all that it made: an id, or `last`.",
)
@click.option(
    "--key",
    metavar="COLUMNS",
    help="Columns that only one row has, such as a,b [default: those of the model, or row ids].",
)
@limit_option(SAMPLES, "rows of each kind of change")
@warm_option
@common_options
def command(
    *,
    table: str | None,
    other: str | None,
    from_: str | None,
    to: str | None,
    run: str | None,
    key: str | None,
    limit: int,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Compare TABLE, a model or a table, between two points, or with the table OTHER.

    Rows that were inserted, deleted and updated are counted, with the columns that changed and some
    of the rows. A point is a snapshot, a time, an age such as 24h, or a run: the table as that left
    it. Rows that were written again as they were do not differ. `penstock diff last` is short for
    `penstock diff --run last`.
    """
    if (table, other, from_, to, run) == ("last", None, None, None, None):
        table, run = None, "last"
    with starting() as on_event, load_project(project_dir, on_event) as project:
        found = project.diff(table, other, from_=from_, to=to, run=run, key=key, samples=limit)
    if as_json:
        print_json({"tables": found})
        return
    if not found:
        say("This run changed no table.")
    for number, each in enumerate(found):
        say("\n" if number else "", nl=False)
        _print(each)


def _print(diff: TableDiff) -> None:
    found = diff.changes
    by = f", by {', '.join(diff.key)}" if diff.key else ""
    say(f"{_title(diff)}{by}")
    kinds = (found.inserted, found.deleted, found.updated)
    said = zip(kinds, (INSERTED, DELETED, UPDATED), strict=True)
    changed = [f"{number:,} {kind}" for number, kind in said if number]
    say(f"  {', '.join(changed) or 'no row differs'}{_same(diff)}")
    if found.columns:
        columns = (f"{name} {number:,}" for name, number in found.columns.items())
        say(f"  columns updated: {', '.join(columns)}")
    for what, names in (("added", diff.columns_added), ("dropped", diff.columns_dropped)):
        if names:
            say(f"  columns {what}: {', '.join(names)}")
    if found.samples:
        print_changes(found.samples)


def _same(diff: TableDiff) -> str:
    number = diff.changes.same
    if not number:
        return ""
    what = "equal" if diff.other else "written again as before"
    return f"; {count(number, 'row')} {what}"


def _title(diff: TableDiff) -> str:
    if diff.other is not None:
        return f"from {diff.table} to {diff.other}"
    if diff.run is not None:
        return f"{diff.table}, by run {diff.run}"
    return f"{diff.table}, from snapshot {diff.from_snapshot} to {diff.to_snapshot}"


def print_changes(samples: Sequence[RowChange]) -> None:
    """Print rows with what an update changed as ``old → new``."""
    columns = list(samples[0].row)
    rows = [(each.change, *(change_value(each, name) for name in columns)) for each in samples]
    print_table(("change", *columns), rows)


def change_value(change: RowChange, name: str) -> object:
    """The value of a column, of one that an update changed with the old one."""
    value = change.row[name]
    if name not in change.before:
        return value
    old, new = (cell(each) if each is not None else "NULL" for each in (change.before[name], value))
    return f"{old} → {new}"
